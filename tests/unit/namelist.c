/* The grammar, row by row, over a table of its own. */
#include "input/namelist.h"

#include "base/arena.h"
#include "base/file.h"
#include "base/log.h"
#include "input/text.h"
#include "tests/tap.h"

#include <inttypes.h>
#include <unistd.h>

struct scene {
    int64_t i, k;
    double x, y;
    int b;
    char s[CONFIG_TEXT];
    int choice;
    struct config_ints a;
    struct config_texts t;
    struct part {
        int64_t n;
        char name[CONFIG_TEXT];
    } part[3];
    int parts;
};

static const struct table_group groups[] = {
    { .name = "g", .most = 1 },
    { .name = "h", .most = 1 },
    { .name = "part",
      .most = 3,
      .stride = sizeof(struct part),
      .count_at = offsetof(struct scene, parts) },
    { .name = "future", .most = 1, .later = 1 },
};

#define ROW(g, n, t, d, l, h, c, where)                                                         \
    {                                                                                           \
        .group = g, .name = n, .type = t, .def = d, .lo = l, .hi = h, .unit = "", .choices = c, \
        .aliases = "", .help = "", .at = offsetof(struct scene, where)                          \
    }
static const struct table_key keys[] = {
    ROW("g", "i", TABLE_INT, "7", -1e6, 1e6, "", i),
    ROW("g", "x", TABLE_REAL, "0.5", -1e300, 1e300, "", x),
    ROW("g", "y", TABLE_REAL, "0.5", -1e308, 1e308, "", y),
    ROW("g", "b", TABLE_BOOL, ".false.", 0, 0, "", b),
    ROW("g", "s", TABLE_TEXT, "old", 0, 0, "", s),
    ROW("g", "choice", TABLE_CHOICE, "one", 0, 0, "one|two|!three", choice),
    ROW("g", "a", TABLE_INTS, "0", -1e6, 1e6, "", a),
    ROW("g", "texts", TABLE_TEXTS, "", 0, 0, "", t),
    ROW("h", "k", TABLE_INT, "7", 0, 1e6, "", k),
    ROW("part", "n", TABLE_INT, "5", 0, 1e6, "", part[0].n),
    ROW("part", "name", TABLE_TEXT, "none", 0, 0, "", part[0].name),
};
static const struct table_later later[] = { { "g", "coming" } };
static const struct table table = { groups, COUNT_OF(groups), keys, COUNT_OF(keys),
                                    later,  COUNT_OF(later) };

/* What differs from the defaults. */
static char *show(const struct scene *z)
{
    struct text o = { 0 };

    text_put(&o, "%s", "");
    if (z->i != 7)
        text_put(&o, "i=%" PRId64 " ", z->i);
    if (z->x != 0.5)
        text_put(&o, "x=%.17g ", z->x);
    if (z->y != 0.5)
        text_put(&o, "y=%.17g ", z->y);
    if (z->b)
        text_put(&o, "b=T ");
    if (strcmp(z->s, "old"))
        text_put(&o, "s=[%s] ", z->s);
    if (z->choice)
        text_put(&o, "choice=%d ", z->choice);
    if (z->a.n != 1 || z->a.v[0])
        for (int i = 0; i < z->a.n; i++)
            text_put(&o, "%s%" PRId64 "%s", i ? "," : "a=", z->a.v[i], i + 1 < z->a.n ? "" : " ");
    for (int i = 0; i < z->t.n; i++)
        text_put(&o, "%s[%s]%s", i ? "," : "t=", z->t.v[i], i + 1 < z->t.n ? "" : " ");
    if (z->k != 7)
        text_put(&o, "k=%" PRId64 " ", z->k);
    for (int i = 0; i < z->parts; i++)
        text_put(&o, "part=%" PRId64 "[%s] ", z->part[i].n, z->part[i].name);
    if (o.n)
        o.s[--o.n] = 0;
    return o.s;
}

static struct scene z;
static struct table_mark marks[COUNT_OF(keys)];
static struct complaints complaints;

static void read_deck(const char *deck, size_t n, const char *set, struct err *e)
{
    int seen[COUNT_OF(groups)] = { 0 };
    struct reading r = { &table, (char *)&z, marks, seen, &complaints };
    struct source s = { "deck", deck, n, 0 };
    struct source o = { set, set, set ? strlen(set) : 0, 1 };

    memset(&z, 0, sizeof z);
    memset(marks, 0, sizeof marks);
    memset(&complaints, 0, sizeof complaints);
    e->text[0] = 0;
    table_set_defaults(&table, (char *)&z, 0);
    namelist_read(&r, &s);
    if (set)
        namelist_read_set(&r, &o);
    complaints_report(&complaints, e);
}

/* gives: what the values become; error: part of the one complaint; warnings: how many. */
static const struct row {
    const char *deck, *gives, *error;
    int warnings;
} rows[] = {
    /* groups */
    { "&g i=1 /", "i=1", NULL, 0 },
    { "&G I=1 /", "i=1", NULL, 0 },
    { "&g i=1 &end", "i=1", NULL, 0 },
    { "&g i=1 &END", "i=1", NULL, 0 },
    { "$g i=1 $end", "i=1", NULL, 0 },
    { "$g i=1 /", "i=1", NULL, 0 },
    { "   &g i=1 / &h k=2 /", "i=1 k=2", NULL, 0 },
    { "&g i=1/&h k=2/", "i=1 k=2", NULL, 0 },
    { "&g\ni=1\n/", "i=1", NULL, 0 },
    { "&g, i=1 /", "i=1", NULL, 0 },
    { "&g/", "", NULL, 0 },
    { "& g i=1 /", NULL, "deck:1:1: error: the name of a group must follow the `&` directly", 0 },
    { "& \n i=1 /", NULL, "the name of a group must follow", 0 },
    { "&g i=1\nend\n", NULL, "a group ends with `/`, not with `end`", 0 },
    { "&end", NULL, "`&end` closes no group", 0 },
    { "&g i=1 /", "i=1", NULL, 0 },
    { "&g i=1", NULL, "deck:1:1: error: &g is not closed", 0 },
    { "&g i=1\n&h k=2 /", NULL, "deck:1:1: error: &g is not closed", 0 },
    { "&g i=1 & x=2 /", NULL, "unexpected `&`", 0 },
    { "", "", NULL, 0 },
    { "\n\n", "", NULL, 0 },
    { "\xef\xbb\xbf! c\n&g i=1 /", "i=1", NULL, 0 },
    { "hello\n&g i=1 /", "i=1", NULL, 1 },
    { "# hello\n&g i=1 /\nbye i=2", "i=1", NULL, 2 },
    { "&g i=1 / bye", "i=1", NULL, 1 },
    { "&pert n=1 /", NULL, "no group &pert; did you mean &part?", 0 },
    { "&zzzzzz i=1 j=2 /", NULL, "no group &zzzzzz", 0 },
    { "&user_mine anything = 'x/y' ; # 3 /\n&g i=1 /", "i=1", NULL, 0 },
    { "&user_mine a = 'it''s /' /\n&g i=1 /", "i=1", NULL, 0 },
    { "&g i=1 /\n&g x=1 /", NULL, "deck:2:1: error: &g is here twice", 0 },
    { "&future z=1 /", NULL, "&future is not in this build", 0 },
    { "&g s='&h k=3 /' /", "s=[&h k=3 /]", NULL, 0 },
    { "&g s='a'\n/\n&h\n  k=3\n/", "s=[a] k=3", NULL, 0 },
    /* repeatable groups */
    { "&part n=1 / &part name='b' / &part n=3, name='c' /", "part=1[none] part=5[b] part=3[c]",
      NULL, 0 },
    { "&part / &part / &part / &part /", NULL, "too many groups &part", 0 },
    /* name = value */
    { "&g i\n=\n3 /", "i=3", NULL, 0 },
    { "&g i = ! note\n 3 /", "i=3", NULL, 0 },
    { "&g i=1,x=2. b=T /", "i=1 x=2 b=T", NULL, 0 },
    { "&g i=1\tx=2.\r\nb=T\r\n/\r\n", "i=1 x=2 b=T", NULL, 0 },
    { "&g i=1, x=2., /", "i=1 x=2", NULL, 0 },
    { "&g i 1 /", NULL, "deck:1:4: error: expected `=` after `i`", 0 },
    { "&g i=1\nx 2.\nb=T /", NULL, "deck:2:1: error: expected `=` after `x`", 0 },
    { "&g i==1 /", NULL, "unexpected `=`", 0 },
    { "&g i=1; x=2 /", NULL, "`;` does not separate values here", 0 },
    { "&g i=1 # note\n x=2 /", NULL, "`#` starts no comment here: use `!`", 0 },
    { "&g # note\n x=2 /", NULL, "`#` starts no comment here: use `!`", 0 },
    { "&g 3 = 4 /", NULL, "expected a key or `/`, found `3`", 0 },
    { "&g 'i' = 4 /", NULL, "expected a key or `/`, found", 0 },
    { "&g j=1 /", NULL, "no key `j` in &g", 0 },
    { "&g k=1 /", NULL, "no key `k` in &g; it belongs to &h", 0 },
    { "&g chioce='two' /", NULL, "no key `chioce` in &g; did you mean `choice`?", 0 },
    { "&g coming=1 /", NULL, "`coming` is not in this build", 0 },
    { "&g i%j=1 /", NULL, "`%`: no key has components", 0 },
    { "&g d%i%j=1 /", NULL, "`%`: no key has components", 0 },
    /* comments */
    { "! c\n&g ! c\n i=1 ! c = 3 /\n ! c\n/ ! c\n", "i=1", NULL, 0 },
    { "&g s='a!b' ! c\n/", "s=[a!b]", NULL, 0 },
    { "&g a = 1, ! note\n2 /", "a=1,2", NULL, 0 },
    { "&g a = 1 ! note\n,2 ! n\n 3/", "a=1,2,3", NULL, 0 },
    /* nulls */
    { "&g i= /", "", NULL, 1 },
    { "&g i=\n x=2 /", "x=2", NULL, 1 },
    { "&g i= , x=2 /", "x=2", NULL, 0 },
    { "&g i = ,\n/", "", NULL, 0 },
    { "&g a=,2 /", "a=0,2", NULL, 0 },
    { "&g a=1,,3 /", NULL, "element 2 of `a` has no value", 0 },
    { "&g a=1,2,, /", "a=1,2", NULL, 0 },
    { "&g i=,5 /", NULL, "`i` takes one value; found 2", 0 },
    /* repeats */
    { "&g a=3*7 /", "a=7,7,7", NULL, 0 },
    { "&g a=2*7,1 /", "a=7,7,1", NULL, 0 },
    { "&g texts=3*'ab' /", "t=[ab],[ab],[ab]", NULL, 0 },
    { "&g a=1*,9 /", "a=0,9", NULL, 0 },
    { "&g a=2*,9 /", NULL, "element 2 of `a` has no value", 0 },
    { "&g a=4*1, a(2)=2* 5 /", "a=1,1,1,5", NULL, 1 },
    { "&g i=1*3 /", "i=3", NULL, 0 },
    { "&g i=2*3 /", NULL, "`i` takes one value; found 2", 0 },
    { "&g a=0*3 /", NULL, "a repeat count is a whole number above 0", 0 },
    { "&g a=3 * 7 /", NULL, "a repeat count is a whole number above 0", 0 },
    { "&g a=*7 /", NULL, "a repeat count is a whole number above 0", 0 },
    { "&g a=99999999999999999999*7 /", NULL, "a repeat count is a whole number above 0", 0 },
    { "&g a=1000000000*7 /", NULL, "too many values for `a`: at most 256", 0 },
    { "&g i=9223372036854775807*7, 9223372036854775807*7 /", NULL, "`i` takes one value", 0 },
    /* logicals */
    { "&g b=.true. /", "b=T", NULL, 0 },
    { "&g b=.TRUE. /", "b=T", NULL, 0 },
    { "&g b=true /", "b=T", NULL, 0 },
    { "&g b=T /", "b=T", NULL, 0 },
    { "&g b=t i=1 /", "i=1 b=T", NULL, 0 },
    { "&g b=.true. b=.false. /", "", NULL, 1 },
    { "&g b=.true. b=F /", "", NULL, 1 },
    { "&g b=true/", "b=T", NULL, 0 },
    { "&g b=.tralala. /", NULL, "`b` needs .true. or .false.; found .tralala.", 0 },
    { "&g b=Foo /", NULL, "`b` needs .true. or .false.; found Foo", 0 },
    { "&g b=yes /", NULL, "write .true., not yes", 0 },
    { "&g b=off /", NULL, "write .false., not off", 0 },
    { "&g b=1 /", NULL, "write .true., not 1", 0 },
    { "&g b='.true.' /", NULL, "`b` needs .true. or .false.; found '.true.'", 0 },
    { "&g b='yes' /", NULL, "write .true., not 'yes'", 0 },
    /* integers */
    { "&g i=+3 /", "i=3", NULL, 0 },
    { "&g i=-3 /", "i=-3", NULL, 0 },
    { "&g i=003 /", "i=3", NULL, 0 },
    { "&g i=10.0 /", NULL, "`i` needs an integer: write 10, not 10.0", 0 },
    { "&g i=1e3 /", NULL, "write 1000, not 1e3", 0 },
    { "&g i=2.5 /", NULL, "`i` needs an integer; found `2.5`", 0 },
    { "&g i=0x10 /", NULL, "write 16, not 0x10", 0 },
    { "&g i=1_8 /", NULL, "write 1, not 1_8", 0 },
    { "&g i=1_000 /", NULL, "write 1000, not 1_000", 0 },
    { "&g i=-_8 /", NULL, "`i` needs an integer; found `-_8`", 0 },
    { "&g i=z'ff' /", NULL, "write the number in decimal, not as z'...'", 0 },
    { "&g i=99999999999999999999 /", NULL, "too large for an integer", 0 },
    { "&g i=2000000 /", NULL, "`i` = 2000000 is out of range: -1000000 to 1000000", 0 },
    { "&g i='3' /", NULL, "`i` needs an integer, without quotes; found '3'", 0 },
    { "&g i=- /", NULL, "`i` needs an integer; found `-`", 0 },
    { "&g i=1,000 /", NULL, "`i` takes one value; found 2", 0 },
    /* reals */
    { "&g x=.25 /", "x=0.25", NULL, 0 },
    { "&g x=5. /", "x=5", NULL, 0 },
    { "&g x=5 /", "x=5", NULL, 0 },
    { "&g x=-1.5E+2 /", "x=-150", NULL, 0 },
    { "&g x=1d-1 /", "x=0.10000000000000001", NULL, 0 },
    { "&g x=1.5Q2 /", "x=150", NULL, 0 },
    { "&g x=1+3 /", "x=1000", NULL, 0 },
    { "&g x=25-2 /", "x=0.25", NULL, 0 },
    { "&g x=1e-10, y=0.0003 /", "x=1e-10 y=0.00029999999999999997", NULL, 0 },
    { "&g x=inf /", NULL, "`x` must be finite; found `inf`", 0 },
    { "&g x=-Infinity /", NULL, "`x` must be finite", 0 },
    { "&g x=NaN /", NULL, "`x` must be finite", 0 },
    { "&g x=1e400 /", NULL, "too large for a real number", 0 },
    { "&g x=1e-400 /", NULL, "too small: it would become 0", 0 },
    { "&g x=0e-400 /", "x=0", NULL, 0 },
    { "&g x=1e301 /", NULL, "`x` = 1e301 is out of range", 0 },
    { "&g x=1e /", NULL, "`x` needs a real number, such as 0.5 or 1e-3; found `1e`", 0 },
    { "&g x=. /", NULL, "`x` needs a real number", 0 },
    { "&g x=1.2.3 /", NULL, "`x` needs a real number", 0 },
    { "&g x=1_8 /", NULL, "`x` needs a real number", 0 },
    { "&g x=0x1p3 /", NULL, "`x` needs a real number", 0 },
    { "&g x=1/2 /", NULL, "`x` needs a real number, such as 0.5 or 1e-3; found `1/2`", 0 },
    { "&g x=1,5 /", NULL, "`x` takes one value; found 2", 0 },
    { "&g x=abc /", NULL, "found `abc`", 0 },
    /* text */
    { "&g s='a' /", "s=[a]", NULL, 0 },
    { "&g s=\"a\" /", "s=[a]", NULL, 0 },
    { "&g s='' /", "s=[]", NULL, 0 },
    { "&g s='it''s' /", "s=[it's]", NULL, 0 },
    { "&g s=\"it's\" /", "s=[it's]", NULL, 0 },
    { "&g s='say \"x\"' /", "s=[say \"x\"]", NULL, 0 },
    { "&g s=\"a\"\"b\" /", "s=[a\"b]", NULL, 0 },
    { "&g s='a/b!c\\n; #&$ d' /", "s=[a/b!c\\n; #&$ d]", NULL, 0 },
    { "&g s='a\tb' /", "s=[a\tb]", NULL, 0 },
    { "&g s='gr\xc3\xbc\xc3\x9f' /", "s=[gr\xc3\xbc\xc3\x9f]", NULL, 0 },
    { "&g s=abc /", NULL, "`s` needs text in quotes: write 'abc'", 0 },
    { "&g s=runs/x i=1 /", NULL, "write 'runs/x'", 0 },
    { "&g s=/tmp/x\n i=1 /", NULL, "write '/tmp/x'", 0 },
    { "&g s=../x /", NULL, "write '../x'", 0 },
    { "&g s=\xe2\x80\x98"
      "a\xe2\x80\x99 /",
      NULL, "typographic quotes", 0 },
    { "&g s='abc\n' i=1 /", NULL, "deck:1:6: error: the quote opened here is not closed", 0 },
    { "&g i=1\n s='abc\n/", NULL, "deck:2:4: error: the quote opened here is not closed", 0 },
    { "&g s='abc", NULL, "the quote opened here is not closed", 0 },
    { "&g s='a\001b' /", NULL, "control character", 0 },
    { "&g s='a'i=1 /", NULL, "deck:1:9: error: a comma or a blank is missing after 'a'", 0 },
    { "&g s='a''b'c /", NULL, "a comma or a blank is missing after 'a''b'", 0 },
    { "&g s=ab'c' /", NULL, "a comma or a blank is missing after `ab`", 0 },
    { "&g s='a','b' /", NULL, "`s` takes one value; found 2", 0 },
    { "&g s='a' 'b' /", NULL, "`s` takes one value; found 2", 0 },
    { "&g s(3:5)='XYZ' /", NULL, "`s` takes one value, not a list", 0 },
    { "&g texts(1)(3:5)='XYZ' /", NULL, "a part of a text cannot be set", 0 },
    { "&g choice='two' /", "choice=1", NULL, 0 },
    { "&g choice='tow' /", NULL, "is none of 'one', 'two'; did you mean 'two'?", 0 },
    { "&g choice='three' /", NULL, "'three' is not in this build; it takes 'one', 'two'", 0 },
    { "&g choice=two /", NULL, "`choice` needs text in quotes: write 'two'", 0 },
    /* lists */
    { "&g a=1 2 3 /", "a=1,2,3", NULL, 0 },
    { "&g a=1,2\n3 /", "a=1,2,3", NULL, 0 },
    { "&g a(2)=20,30,40 /", "a=0,20,30,40", NULL, 0 },
    { "&g a(2:4)=20,30,40 /", "a=0,20,30,40", NULL, 0 },
    { "&g a( 2 : 3 ) = 20,30 /", "a=0,20,30", NULL, 0 },
    { "&g a=1,2,3 a(2)=9 /", "a=1,9,3", NULL, 1 },
    { "&g a(1)=4 a(2)=5 /", "a=4,5", NULL, 0 },
    { "&g a(3)=4 /", NULL, "element 2 of `a` has no value", 0 },
    { "&g a(3)=4, a(2)=5 /", "a=0,5,4", NULL, 0 },
    { "&g a(2:3)=1,2,3 /", NULL, "too many values for `a`: the range ends at 3", 0 },
    { "&g a(0)=1 /", NULL, "an index is written (2) or (2:4), counted from 1", 0 },
    { "&g a(-1)=1 /", NULL, "an index is written", 0 },
    { "&g a(4:2)=1 /", NULL, "an index is written", 0 },
    { "&g a(:3)=1 /", NULL, "an index is written", 0 },
    { "&g a(2:)=1 /", NULL, "an index is written", 0 },
    { "&g a(1:5:2)=1 /", NULL, "an index is written", 0 },
    { "&g a(1,2)=1 /", NULL, "an index is written", 0 },
    { "&g a(257)=1 /", NULL, "`a` has at most 256 elements", 0 },
    { "&g a(256)=1,2 /", NULL, "too many values for `a`: at most 256", 0 },
    { "&g a(99999999999999999999)=1 /", NULL, "an index is written", 0 },
    { "&g i(1)=3 /", NULL, "`i` takes one value, not a list", 0 },
    { "&g a=1,x,3 /", NULL, "`a` needs an integer; found `x`", 0 },
    { "&g texts='a', 'b' /", "t=[a],[b]", NULL, 0 },
    { "&g texts(2)='b' /", NULL, "element 1 of `texts` has no value", 0 },
    { "&g texts(2)='b' texts(1)='a' /", "t=[a],[b]", NULL, 0 },
    /* duplicates */
    { "&g i=1\n i=2 /", "i=2", NULL, 1 },
    { "&g a=1,2\n a=3 /", "a=3", NULL, 1 },
    { "&part n=1 / &part n=2 /", "part=1[none] part=2[none]", NULL, 0 },
};

static void test_row(const struct row *r)
{
    struct err e;
    char *got;
    int right;

    read_deck(r->deck, strlen(r->deck), NULL, &e);
    got = show(&z);
    if (r->error)
        right = strstr(e.text, r->error) && complaints.n == 1;
    else
        right = !complaints.n && strcmp(got, r->gives) == 0;
    right = right && complaints.warnings == r->warnings;
    tap_ok(right, "%s", complaint_quote(r->deck, strlen(r->deck)).s);
    if (!right)
        printf("# gave '%s', %d complaints: %s; %d warnings\n", got, complaints.n, e.text,
               complaints.warnings);
    mem_give(got);
}

/* As f90nml 1.4 writes a deck: four blanks, one key a line, lower case. */
static const char f90nml_deck[] = "&g\n    i = 3\n    x = 0.0003\n    y = 1e-10\n    b = .true.\n"
                                  "    s = \"it's\"\n    choice = ,\n    a = 1, 2, 3\n"
                                  "    texts = 'a', 'b'\n/\n\n&h\n    k = ,\n/\n";
/* As gfortran writes one: upper case, a comma behind every value, numbers in columns, repeats. */
static const char gfortran_deck[] =
    "&G\n I=          3,\n X=  2.9999999999999997E-004,\n Y=  1.0000000000000000E-010,\n B=T,\n"
    " S=\"it's\",\n A= 2*7          ,          1,\n TEXTS=\"a\",\"b\",\n /\n";

static void test_writers(void)
{
    struct err e;
    char *got;

    read_deck(f90nml_deck, strlen(f90nml_deck), NULL, &e);
    got = show(&z);
    tap_ok(!complaints.n && !complaints.warnings &&
               strcmp(got, "i=3 x=0.00029999999999999997 y=1e-10 b=T s=[it's] a=1,2,3 "
                           "t=[a],[b]") == 0,
           "what f90nml writes: %s%s", got, e.text);
    mem_give(got);
    read_deck(gfortran_deck, strlen(gfortran_deck), NULL, &e);
    got = show(&z);
    tap_ok(!complaints.n && !complaints.warnings &&
               strcmp(got, "i=3 x=0.00029999999999999997 y=1e-10 b=T s=[it's] a=7,7,1 "
                           "t=[a],[b]") == 0,
           "what gfortran writes: %s%s", got, e.text);
    mem_give(got);
}

static void test_sets(void)
{
    static const struct {
        const char *set, *gives, *error;
    } sets[] = {
        { "g.i=4", "i=4", NULL },
        { "G.I = 4", "i=4", NULL },
        { "g.a=1,2", "a=1,2", NULL },
        { "g.a(2)=2", "a=9,2", NULL },
        { "g.s='x y'", "s=[x y]", NULL },
        { "g.b=T", "b=T", NULL },
        { "g.i", NULL, "expected GROUP.KEY=VALUE" },
        { "i=4", NULL, "expected GROUP.KEY=VALUE" },
        { "=", NULL, "expected GROUP.KEY=VALUE" },
        { "", NULL, "expected GROUP.KEY=VALUE" },
        { "g.i=", NULL, "a value is missing behind the =" },
        { "g.i=4 g.x=2", NULL, "unexpected `=`" },
        { "g.i=4 x=2", NULL, "nothing may follow the value" },
        { "g.i=4 /", NULL, "nothing may follow the value" },
        { "g.s=x", NULL, "`s` needs text in quotes: 'x' (in a shell: --set \"g.s='x'\")" },
        { "g.s='x", NULL, "not closed" },
        { "g.j=4", NULL, "g.j=4: error: no key `j` in &g" },
        { "pert.n=4", NULL, "no group &pert; did you mean &part?" },
        { "part.n=4", NULL, "&part may be there several times" },
    };
    static const char deck[] = "&g a(1)=9 /";

    for (int i = 0; i < COUNT_OF(sets); i++) {
        struct err e;
        char *got;

        if (strstr(sets[i].set, "g.a(2)"))
            read_deck(deck, strlen(deck), sets[i].set, &e);
        else
            read_deck("", 0, sets[i].set, &e);
        got = show(&z);
        tap_ok(sets[i].error ? strstr(e.text, sets[i].error) && complaints.n == 1
                             : !complaints.n && strcmp(got, sets[i].gives) == 0,
               "--set %s: %s%s", sets[i].set, got, e.text);
        mem_give(got);
    }
}

/* Place and text of warnings: read back from a log file. */
static void test_warning(void)
{
    static const char deck[] = "&g\n  i = 1\n  x = 2\n  i = 3\n/\n";
    char path[] = "namelist-warning.log", *text = NULL;
    struct err e;
    size_t n;

    file_remove(path, NULL);
    log_speaker(1);
    log_open(path, NULL);
    read_deck(deck, strlen(deck), NULL, &e);
    log_open(NULL, NULL);
    log_speaker(0);
    tap_ok(file_read_text(path, 4096, &text, &n, &e) == OK &&
               strstr(text, "deck:4:3: `i` was given before, on line 2; this one counts"),
           "a duplicate names both lines");
    mem_give(text);
    file_remove(path, NULL);
}

static void test_hostile(void)
{
    enum { BIG = 1 << 20 };
    static const char nul[] = "&g i=1\0 x=2 /";
    char *big = mem_take(BIG + 64);
    struct err e;

    read_deck(nul, sizeof nul - 1, NULL, &e);
    tap_ok(complaints.n > 0, "a NUL byte is refused");
    memset(big, 'x', BIG);
    memcpy(big, "&g s='", 6);
    read_deck(big, BIG, NULL, &e);
    tap_ok(complaints.n == 1, "a line of 1 MB with an open quote");
    memset(big, ' ', BIG);
    memcpy(big, "&g i=1", 6);
    memcpy(big + BIG - 2, "/\n", 2);
    read_deck(big, BIG, NULL, &e);
    tap_ok(!complaints.n && z.i == 1, "1 MB of blanks");
    for (int i = 0; i < BIG; i++)
        big[i] = "&g i=1 a(=)\n"[i % 12];
    read_deck(big, BIG, NULL, &e);
    tap_ok(complaints.n == COMPLAINTS_MAX && complaints.more > 1000 &&
               strstr(e.text, " more errors"),
           "many errors are counted");
    for (int i = 0; i < BIG; i++)
        big[i] = (char)(i * 2654435761u >> 13);
    read_deck(big, BIG, NULL, &e);
    tap_ok(complaints.warnings > 0, "a binary file");
    mem_give(big);
}

/* The caret stands under the place, also behind tabs and letters of more than one byte. */
static void test_caret(void)
{
    static const char deck[] = "&g\n\ts = '\xc3\xa4\xc3\xb6' x = abc\n/\n";
    struct err e;

    read_deck(deck, strlen(deck), NULL, &e);
    tap_ok(strstr(e.text, "deck:2:15: error: ") &&
               strstr(e.text, "\n     s = '\xc3\xa4\xc3\xb6' x = abc\n                  ^"),
           "the caret: %s", e.text);
}

int main(void)
{
    tap_plan(COUNT_OF(rows) + 2 + 19 + 1 + 5 + 1);
    log_speaker(0);
    for (int i = 0; i < COUNT_OF(rows); i++)
        test_row(&rows[i]);
    test_writers();
    test_sets();
    test_warning();
    test_hostile();
    test_caret();
    return tap_done();
}
