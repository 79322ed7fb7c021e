/* Our own keys: defaults, decks good and bad, writing, comparing, help; mutated decks. */
#include "input/config.h"

#include "base/arena.h"
#include "base/file.h"
#include "base/log.h"
#include "base/rng.h"
#include "input/config_table.h"
#include "tests/tap.h"

enum { DECK_MAX = 1 << 16 };

static struct config a, b; /* too large for the stack of a test */

static char *read_file(const char *folder, const char *name, size_t *n)
{
    const char *srcdir = getenv("srcdir");
    char path[4096], *text = NULL;
    struct err e = { "" };

    snprintf(path, sizeof path, "%s/%s/%s", srcdir ? srcdir : ".", folder, name);
    if (file_read_text(path, DECK_MAX, &text, n, &e) != OK)
        printf("# %s\n", e.text);
    return text;
}

static char **list_decks(const char *folder, int *n)
{
    const char *srcdir = getenv("srcdir");
    char path[4096], **names = NULL;
    struct err e = { "" };

    *n = 0;
    snprintf(path, sizeof path, "%s/%s", srcdir ? srcdir : ".", folder);
    if (file_list(path, &names, n, &e) != OK)
        printf("# %s\n", e.text);
    return names;
}

static enum status parse(struct config *c, const char *text, struct err *e)
{
    e->text[0] = 0;
    return config_parse(c, text, strlen(text), "deck", NULL, 0, e);
}

/* ---- the table ---- */

static int default_is_right(const struct table_key *k)
{
    const char *s = table_example(k);
    size_t n = strlen(s);
    int64_t i;
    double x;
    int v, later, right;
    char name[CONFIG_DECK];

    switch (k->type) {
    case TABLE_INT:
    case TABLE_INTS:
        return value_read_int(s, n, &i) == VALUE_FINE && i >= k->lo && i <= k->hi;
    case TABLE_REAL:
        return value_read_real(s, n, &x) == VALUE_FINE && x >= k->lo && x <= k->hi;
    case TABLE_BOOL:
        return value_read_bool(s, n, &v) == VALUE_FINE;
    case TABLE_CHOICE:
        right = 0;
        for (v = 0; table_choice(k, v, &later, name); v++)
            right |= !later && strcmp(name, s) == 0;
        return right && v <= 16;
    default:
        return n < CONFIG_TEXT;
    }
}

static void test_table(void)
{
    int bad = 0;

    for (int i = 0; i < CONFIG_KEYS; i++) {
        const struct table_key *k = &config_table.keys[i];
        int fault = !default_is_right(k) || !*k->help || k->help[strlen(k->help) - 1] == '.' ||
                    table_group_index(&config_table, k->group, strlen(k->group)) < 0 ||
                    table_find(&config_table, k->group, k->name, strlen(k->name)) != k;

        if (fault)
            printf("# %s.%s\n", k->group, k->name);
        bad += fault;
    }
    tap_ok(!bad, "every default obeys its own range, names are unique");
}

/* ---- decks ---- */

static int all_same(const struct config *x, const struct config *y)
{
    for (int i = 0; i < CONFIG_KEYS; i++)
        if (!config_same(x, y, i)) {
            printf("# %s.%s differs\n", config_table.keys[i].group, config_table.keys[i].name);
            return 0;
        }
    return 1;
}

/* read -> write -> read -> write: same values, same bytes. */
static int round_trip(const char *text, size_t n, struct err *e)
{
    char *once, *twice = NULL;
    int right;

    e->text[0] = 0;
    if (config_parse(&a, text, n, "deck", NULL, 0, e) != OK)
        return 0;
    once = config_write(&a);
    right = parse(&b, once, e) == OK && all_same(&a, &b);
    if (right) {
        twice = config_write(&b);
        right = strcmp(once, twice) == 0;
    }
    mem_give(once);
    mem_give(twice);
    return right;
}

static void test_good(char **names, int n)
{
    for (int i = 0; i < n; i++) {
        struct err e;
        size_t bytes;
        char *text = read_file("tests/decks/good", names[i], &bytes);

        tap_ok(text && round_trip(text, bytes, &e), "%s reads, writes and reads again", names[i]);
        if (text && e.text[0])
            printf("# %s\n", e.text);
        mem_give(text);
    }
}

static int count(const char *text, const char *word)
{
    int n = 0;

    for (; (text = strstr(text, word)); text += strlen(word))
        n++;
    return n;
}

/* Each "! expect: fragment" of the first lines is in the text, and there are no other errors. */
static int meets_expectations(const char *deck, const char *said)
{
    static const char mark[] = "! expect: ";
    int expected = 0, right = 1;

    for (; strncmp(deck, mark, sizeof mark - 1) == 0; expected++) {
        const char *start = deck + sizeof mark - 1;
        size_t n = strcspn(start, "\n");
        char want[512];

        snprintf(want, sizeof want, "%.*s", (int)n, start);
        if (!strstr(said, want)) {
            printf("# not said: %s\n", want);
            right = 0;
        }
        deck = start + n + (start[n] == '\n');
    }
    return right && expected > 0 && count(said, "error: ") == expected;
}

static void test_bad(char **names, int n)
{
    tap_ok(n >= 60, "there are %d wrong decks", n);
    for (int i = 0; i < n; i++) {
        struct err e = { "" };
        size_t bytes;
        char *text = read_file("tests/decks/bad", names[i], &bytes);
        int right = text && config_parse(&a, text, bytes, names[i], NULL, 0, &e) == E_INPUT &&
                    meets_expectations(text, e.text);

        tap_ok(right, "%s is refused", names[i]);
        if (!right)
            printf("# %s\n", e.text);
        mem_give(text);
    }
}

/* ---- values ---- */

static const char small[] =
    "&run directory='runs/small/' /\n"
    "&train train_steps=10 sequence_length=32 global_batch_size=12 /\n"
    "&model hidden_size=32 intermediate_size=64 num_hidden_layers=2 num_attention_heads=2 /\n"
    "&data train='t.h5' /\n&optim learning_rate=3e-4 weight_decay=1d-1 clip_grad=1 /\n";

static void test_values(void)
{
    char *sets[] = { "optim.learning_rate=2.50e-4", "train.micro_batch_size=3", "run.seed=1",
                     "run.seed=5" };
    struct err e = { "" };
    char *text;

    tap_ok(config_parse(&a, small, strlen(small), "deck", sets, 4, &e) == OK &&
               a.optim.learning_rate == 2.5e-4 && a.train.micro_batch_size == 3 && a.run.seed == 5,
           "--set overrides, in order: %s", e.text);
    tap_ok(config_given(&a, "optim", "learning_rate") &&
               config_given(&a, "train", "micro_batch_size") &&
               config_given(&a, "model", "hidden_size") && !config_given(&a, "optim", "adam_eps"),
           "what was given is known");
    tap_ok(strcmp(a.run.name, "small") == 0 && a.model.num_key_value_heads == 2 &&
               a.model.head_dim == 16 && a.model.max_position_embeddings == 32,
           "derived values are filled in");
    a.optim.adam_beta1 = 1.0 / 3;
    a.optim.clip_grad = 2;
    text = config_write(&a);
    tap_ok(strstr(text, " learning_rate = 2.50e-4\n") && strstr(text, " weight_decay = 1d-1\n") &&
               strstr(text, " adam_eps = 1e-8\n"),
           "reals stay as they were written");
    tap_ok(strstr(text, " adam_beta1 = 0.3333333333333333\n") &&
               strstr(text, " clip_grad = 2.0\n"),
           "a real that the program changed has the digits that it needs");
    mem_give(text);
    tap_ok(config_read(&a, "/nonexistent/deck.nml", NULL, 0, &e) == E_INPUT, "no deck: %s", e.text);
}

/* What only the program can know is checked by the same rules, at the same place. */
static void test_later_rules(void)
{
    char *sets[] = { "train.micro_batch_size=3" };
    struct err e = { "" };

    parse(&a, small, &e);
    a.parallel.dp = 4;
    tap_ok(config_check_rules(&a, &e) == OK, "dp = 4 fits: %s", e.text);
    a.parallel.dp = 5;
    tap_ok(config_check_rules(&a, &e) == E_INPUT &&
               strcmp(e.text, "deck:2:60: error: dp * micro_batch_size = 5 must divide "
                              "`global_batch_size` = 12; nearest that work: 10, 15") == 0,
           "dp = 5 does not: %s", e.text);
    e.text[0] = 0;
    config_parse(&a, small, strlen(small), "deck", sets, 1, &e);
    a.parallel.dp = 3;
    tap_ok(config_check_rules(&a, &e) == E_INPUT &&
               strstr(e.text, "deck:2:60: error: dp * micro_batch_size = 9 must divide"),
           "nor does dp = 3 with --set: %s", e.text);
}

/* ---- resume ---- */

static void test_compare(void)
{
    char *sets[] = { "train.global_batch_size=24",
                     "run.seed=3",
                     "optim.learning_rate=1e-3",
                     "parallel.tp=2",
                     "log.interval=7",
                     "data.train='other.h5'" };
    char *stored, *notes = NULL;
    struct err e = { "" };
    enum status st;

    parse(&a, small, &e);
    stored = config_write(&a);
    tap_ok(config_compare(&a, stored, &notes, &e) == OK && !*notes, "equal: %s", e.text);
    mem_give(notes);
    config_parse(&a, small, strlen(small), "deck", sets + 2, 4, &e);
    st = config_compare(&a, stored, &notes, &e);
    tap_ok(st == OK &&
               strcmp(notes, "parallel.tp = 2 (--set), in the checkpoint 1\n"
                             "optim.learning_rate = 1e-3 (--set), in the checkpoint 3e-4") == 0,
           "announced: %s", notes);
    mem_give(notes);
    config_parse(&a, small, strlen(small), "deck", sets, 2, &e);
    tap_ok(config_compare(&a, stored, &notes, &e) == E_INPUT &&
               strstr(e.text, "train.global_batch_size = 24 (--set), in the checkpoint 12") &&
               strstr(e.text, "run.seed = 3 (--set), in the checkpoint 42"),
           "fixed: %s", e.text);
    mem_give(notes);
    e.text[0] = 0;
    tap_ok(config_compare(&a, "&run nonsense=3 /", &notes, &e) == E_FILE &&
               strstr(e.text, "the input stored in the checkpoint"),
           "a stored text that does not parse");
    mem_give(notes);
    mem_give(stored);
}

static void test_compare_init_from(void)
{
    static const char from[] = "&run directory='runs/small/' /\n"
                               "&train train_steps=10 sequence_length=32 global_batch_size=12 /\n"
                               "&model init_from='hf' num_hidden_layers=2 /\n"
                               "&data train='t.h5' /\n&optim learning_rate=3e-4 /\n";
    char *stored, *notes = NULL;
    struct err e = { "" };

    parse(&a, small, &e);
    stored = config_write(&a);
    parse(&b, from, &e);
    tap_ok(config_compare(&b, stored, &notes, &e) == OK && strstr(notes, "weight_decay") == NULL,
           "with init_from the shape is the checkpoint's: %s", e.text);
    mem_give(notes);
    tap_ok(config_take_model(&b, stored, &e) == OK && b.model.hidden_size == 32 &&
               b.model.rms_norm_eps == 1e-5 && strcmp(b.model.init_from, "hf") == 0 &&
               config_check_rules(&b, &e) == OK,
           "and can be taken: %s", e.text);
    mem_give(stored);
}

/* ---- what is printed ---- */

static void test_texts(void)
{
    char *text = config_defaults_text(), *doc, *made = config_markdown_text();
    struct err e = { "" };
    size_t n = 0;

    tap_ok(round_trip(text, strlen(text), &e), "--print-defaults prints a deck: %s", e.text);
    for (int i = 0; i < CONFIG_KEYS; i++)
        n += strstr(text, config_table.keys[i].name) != NULL;
    tap_ok(n == CONFIG_KEYS, "with every key");
    doc = read_file("doc", "INPUT.md", &n);
    tap_ok(doc && strcmp(doc, made) == 0,
           "doc/INPUT.md is up to date (else: pretrain --print-markdown > doc/INPUT.md)");
    mem_give(text);
    mem_give(made);
    mem_give(doc);
    tap_ok(config_help("lerning_rate", &e) == E_INPUT &&
               strcmp(e.text, "no key `lerning_rate`; did you mean `learning_rate` of &optim?") ==
                   0,
           "help for a misspelt key: %s", e.text);
}

/* ---- mutated decks: never a crash, and what reads can be written and read ---- */

static uint32_t random_below(uint64_t i, uint32_t what, uint32_t n)
{
    return (uint32_t)(rng_u64(20240611, what, i) % n);
}

/* One edit of text[0..n): flip, insert, remove or repeat a piece. Returns the new length. */
static size_t mutate(char *text, size_t n, uint64_t i)
{
    static const char marks[] = "&$/'\"=,;!#()*:%.\n\r\t _\\0123eEdD+-TF\xe2\x80\x98";
    size_t at = n ? random_below(i, 1, (uint32_t)n) : 0, len = 1 + random_below(i, 2, 40);
    char c = random_below(i, 3, 4) ? marks[random_below(i, 4, sizeof marks)]
                                   : (char)random_below(i, 4, 256);

    len = len < n - at ? len : n - at;
    switch (random_below(i, 5, 4)) {
    case 0:
        if (n)
            text[at] = c;
        return n;
    case 1:
        memmove(text + at + 1, text + at, n - at);
        text[at] = c;
        return n + 1;
    case 2:
        memmove(text + at, text + at + len, n - at - len);
        return n - len;
    default:
        memmove(text + at + len, text + at, n - at);
        return n + len;
    }
}

static void test_mutants(char **names, int n)
{
    int rounds = tap_soak() ? 2000000 : 20000, read = 0, broken = 0;
    char *text = mem_take(DECK_MAX), *seed = NULL;
    size_t bytes = 0;

    for (int i = 0; i < rounds; i++) {
        int edits = 1 + (int)random_below((uint64_t)i, 6, 3);
        struct err e = { "" };
        size_t m;

        if (i % 500 == 0) {
            mem_give(seed);
            seed = read_file("tests/decks/good", names[i / 500 % n], &bytes);
            if (!seed)
                break;
        }
        memcpy(text, seed, m = bytes);
        for (int k = 0; k < edits; k++)
            m = mutate(text, m, (uint64_t)i * 8 + (uint64_t)k);
        if (config_parse(&a, text, m, "mutant", NULL, 0, &e) != OK)
            broken += !e.text[0];
        else
            broken += read++ % 8 == 0 && !round_trip(text, m, &e);
        if (broken) {
            printf("# round %d: %s\n%.*s\n", i, e.text, (int)m, text);
            break;
        }
    }
    tap_ok(!broken && read > rounds / 50 && read < rounds, "%d of %d mutants read", read, rounds);
    mem_give(seed);
    mem_give(text);
}

int main(void)
{
    int ngood, nbad;
    char **good = list_decks("tests/decks/good", &ngood);
    char **bad = list_decks("tests/decks/bad", &nbad);

    log_speaker(0);
    tap_plan(1 + ngood + 1 + nbad + 6 + 3 + 4 + 2 + 4 + 1);
    test_table();
    test_good(good, ngood);
    test_bad(bad, nbad);
    test_values();
    test_later_rules();
    test_compare();
    test_compare_init_from();
    test_texts();
    test_mutants(good, ngood);
    mem_give(good);
    mem_give(bad);
    return tap_done();
}
