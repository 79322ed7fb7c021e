#include "input/namelist.h"

#include "base/arena.h"
#include "input/scan.h"

#include <string.h>

/* A whole number above 0 and the blanks around it; 0 if there is none. */
static int64_t scan_index(struct scan *p)
{
    size_t from = scan_skip_blank(p, p->at), to = from;
    int64_t v;

    while (to < p->s->n && p->s->text[to] >= '0' && p->s->text[to] <= '9')
        to++;
    p->at = scan_skip_blank(p, to);
    return value_read_int(p->s->text + from, to - from, &v) == VALUE_FINE ? v : 0;
}

/* (i) or (i:j) */
static void scan_subscript(struct scan *p, struct assignment *a)
{
    size_t start = p->at++;
    int colon;

    a->lo = scan_index(p);
    colon = scan_peek(p) == ':';
    if (colon) {
        p->at++;
        a->hi = scan_index(p);
    }
    if (scan_peek(p) != ')' || a->lo < 1 || (colon && a->hi < a->lo)) {
        SCAN_COMPLAIN(p, start, "an index is written (2) or (2:4), counted from 1");
    } else {
        p->at = scan_skip_blank(p, p->at + 1);
        if (scan_peek(p) == '(')
            SCAN_COMPLAIN(p, p->at, "a part of a text cannot be set");
    }
    while (p->muted && !scan_at_end(p) && scan_peek(p) != '=' && scan_peek(p) != '\n')
        p->at++;
}

static void complain_no_equals(struct scan *p, const struct assignment *a)
{
    const char *name = p->s->text + a->name_at;

    if (scan_peek(p) == '%')
        SCAN_COMPLAIN(p, p->at, "`%%`: no key has components");
    else if (value_is_word(name, a->name_n, "end")) {
        SCAN_COMPLAIN(p, a->name_at, "a group ends with `/`, not with `end`");
        p->lost = 1;
    } else
        SCAN_COMPLAIN(p, a->name_at, "expected `=` after `%s`", complaint_quote(name, a->name_n).s);
}

/* name [(index)] = values */
static void scan_statement(struct scan *p)
{
    struct assignment a = { .source = p->s, .name_at = p->at };
    int commas;

    p->muted = 0;
    p->n = 0;
    p->at = scan_skip_name(p, p->at);
    a.name_n = p->at - a.name_at;
    p->at = scan_skip_blank(p, p->at);
    if (scan_peek(p) == '(')
        scan_subscript(p, &a);
    if (scan_peek(p) == '%' || scan_peek(p) != '=') {
        complain_no_equals(p, &a);
        while (scan_peek(p) == '%')
            p->at = scan_skip_blank(p, scan_skip_name(p, p->at + 1));
    }
    if (scan_peek(p) == '=')
        p->at++;
    commas = scan_values(p);
    if (p->group < 0)
        return;
    a.values = p->values;
    a.n = p->n;
    a.bad = p->muted;
    if (!a.bad && !a.n && !commas && !p->s->is_set)
        complaint_warn(p->r->complaints, p->s, a.name_at, "`%s` has no value: it keeps its default",
                       complaint_quote(p->s->text + a.name_at, a.name_n).s);
    reading_assign(p->r, p->group, &a);
}

/* From behind the group's name to its end. */
static void scan_group(struct scan *p)
{
    p->lost = 0;
    for (;;) {
        char c;

        p->at = scan_skip_blank(p, p->at);
        c = scan_peek(p);
        p->muted = 0;
        p->n = 0;
        if (scan_at_end(p) || (scan_opens(c) && scan_is_letter(scan_peek_at(p, p->at + 1)) &&
                               !scan_is_group_end(p, p->at))) {
            struct quote q = complaint_quote(p->name, p->name_n);

            if (p->group >= 0 && !p->lost)
                complaint_add(p->r->complaints, p->s, p->opened,
                              "&%s is not closed: a `/` must end it", q.s);
            break;
        }
        if (c == '/' || scan_is_group_end(p, p->at)) {
            p->at = c == '/' ? p->at + 1 : p->at + 4;
            break;
        }
        if (c == ',') {
            p->at++;
        } else if (scan_is_letter(c)) {
            scan_statement(p);
        } else {
            struct quote q =
                complaint_quote(p->s->text + p->at, scan_skip_word(p, p->at + 1) - p->at);

            if (c != ';' && c != '#' && !scan_opens(c))
                SCAN_COMPLAIN(p, p->at, "expected a key or `/`, found `%s`", q.s);
            if (scan_is_separator(c) && c != '\'' && c != '"')
                scan_stray(p);
            scan_values(p);
        }
    }
    if (p->group >= 0)
        reading_close_group(p->r, p->group);
}

/* Set p->group; complain about a name that is not ours. */
static void find_group(struct scan *p)
{
    const struct table *t = p->r->table;
    struct quote q = complaint_quote(p->name, p->name_n);
    int g = table_group_index(t, p->name, p->name_n);

    p->group = -1;
    if (p->name_n >= 5 && value_is_word(p->name, 5, "user_"))
        return;
    if (g < 0 && complaints_full(p->r->complaints))
        complaint_add(p->r->complaints, p->s, p->opened, "no group &%s", q.s);
    else if (g < 0)
        complaint_add(p->r->complaints, p->s, p->opened, "no group &%s%s", q.s,
                      table_hint_group(t, p->name, p->name_n).s);
    else if (t->groups[g].later)
        complaint_add(p->r->complaints, p->s, p->opened, "&%s is not in this build", q.s);
    else if (p->r->seen[g] >= t->groups[g].most)
        complaint_add(p->r->complaints, p->s, p->opened,
                      t->groups[g].most > 1 ? "too many groups &%s"
                                            : "&%s is here twice: put its keys into one",
                      q.s);
    else
        p->group = g;
}

/* At & or $. */
static void scan_opening(struct scan *p)
{
    char mark[2] = { scan_peek(p), 0 };

    p->opened = p->at++;
    if (scan_is_group_end(p, p->opened)) {
        complaint_add(p->r->complaints, p->s, p->opened, "`%send` closes no group", mark);
        p->at += 3;
        return;
    }
    if (!scan_is_letter(scan_peek(p))) {
        complaint_add(p->r->complaints, p->s, p->opened,
                      "the name of a group must follow the `%s` directly", mark);
        while (scan_peek(p) == ' ' || scan_peek(p) == '\t')
            p->at++;
    }
    p->name = p->s->text + p->at;
    p->name_n = scan_is_letter(scan_peek(p)) ? scan_skip_name(p, p->at) - p->at : 0;
    p->at += p->name_n;
    p->group = -1;
    if (p->name_n)
        find_group(p);
    if (p->group >= 0)
        reading_open_group(p->r, p->group, p->s, p->opened);
    scan_group(p);
}

void namelist_read(struct reading *r, const struct source *s)
{
    struct scan p = { .r = r, .s = s };

    if (s->n >= 3 && memcmp(s->text, "\xef\xbb\xbf", 3) == 0)
        p.at = 3;
    for (;;) {
        p.at = scan_skip_blank(&p, p.at);
        if (scan_at_end(&p))
            break;
        if (scan_opens(scan_peek(&p))) {
            scan_opening(&p);
        } else {
            size_t end = scan_skip_line(&p, p.at);

            complaint_warn(r->complaints, s, p.at, "text outside of a group is ignored: `%s`",
                           complaint_quote(s->text + p.at, end - p.at).s);
            p.at = end;
        }
    }
    mem_give(p.values);
}

void namelist_read_set(struct reading *r, const struct source *s)
{
    struct scan p = { .r = r, .s = s };
    size_t dot = scan_skip_name(&p, 0);
    int g;

    if (dot == 0 || scan_peek_at(&p, dot) != '.' || !scan_is_statement(&p, dot + 1)) {
        complaint_add(r->complaints, s, 0,
                      "expected GROUP.KEY=VALUE, such as --set optim.learning_rate=1e-3");
        return;
    }
    g = table_group_index(r->table, s->text, dot);
    if (g < 0)
        complaint_add(r->complaints, s, 0, "no group &%s%s", complaint_quote(s->text, dot).s,
                      table_hint_group(r->table, s->text, dot).s);
    else if (r->table->groups[g].later)
        complaint_add(r->complaints, s, 0, "&%s is not in this build", r->table->groups[g].name);
    else if (r->table->groups[g].most > 1)
        complaint_add(r->complaints, s, 0,
                      "&%s may be there several times: set its keys in the deck",
                      r->table->groups[g].name);
    if (g < 0 || r->table->groups[g].later || r->table->groups[g].most > 1)
        return;
    p.group = g;
    p.at = dot + 1;
    scan_statement(&p);
    if (!p.muted && !scan_at_end(&p))
        complaint_add(r->complaints, s, p.at, "nothing may follow the value");
    else if (!p.muted && !p.n)
        complaint_add(r->complaints, s, p.at, "a value is missing behind the =");
    mem_give(p.values);
}
