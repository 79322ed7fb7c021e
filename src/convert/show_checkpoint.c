#include "convert/show_checkpoint.h"

#include "base/arena.h"
#include "base/file.h"
#include "base/log.h"
#include "hf/json_text.h"

#include <stdio.h>
#include <string.h>

static void print_layout(char text[96], const struct checkpoint *c)
{
    snprintf(text, 96, "%d = pp %d x dp %d x cp %d x tp %d, zero %d", c->ranks, c->pp, c->dp, c->cp,
             c->tp, c->scalars.zero_stage);
}

static double mib_of(const struct checkpoint *c)
{
    int64_t bytes = 0;

    for (int i = 0; i < c->nslabs; i++)
        bytes += box_count(&c->slab[i].box) * (int64_t)dtype_size(c->slab[i].dtype);
    return (double)bytes / (1 << 20);
}

static void list_one(const char *dir, int64_t step)
{
    struct checkpoint c;
    struct err why = { "" };
    char layout[96], samples[32], tokens[32];

    if (checkpoint_open(&c, dir, &why) != OK) {
        say("%10lld  bad: %s", (long long)step, why.text);
        return;
    }
    print_layout(layout, &c);
    say("%10lld %14s %18s %10.1f  %s", (long long)step, log_thousands(samples, c.scalars.samples),
        log_thousands(tokens, c.scalars.tokens), mib_of(&c), layout);
    checkpoint_close(&c);
}

enum status show_checkpoint_list(const char *run_dir, struct err *e)
{
    int64_t *steps;
    int n;
    enum status st = checkpoint_steps(run_dir, &steps, &n, e);

    if (st == OK && !file_is_dir(run_dir))
        st = err_set(e, E_FILE, "%s: there is no such directory", run_dir);
    if (st == OK && !n)
        say("%s: no checkpoints", run_dir);
    if (n)
        say("%10s %14s %18s %10s  %s", "step", "samples", "tokens", "data MiB", "written by ranks");
    for (int i = n - 1; i >= 0 && st == OK; i--) {
        struct json_text path = { 0 };

        json_text_add(&path, "%s/step_%08lld", run_dir, (long long)steps[i]);
        list_one(path.s, steps[i]);
        mem_give(path.s);
    }
    mem_give(steps);
    return st;
}

/* "  64 x 32  float32  2 slabs  NAME" of the tensor whose slabs begin at i; returns how many it
 * has. */
static int show_tensor(const struct checkpoint *c, int i)
{
    const struct checkpoint_slab *s = &c->slab[i];
    char shape[80] = "";
    int n = 1;

    while (i + n < c->nslabs && c->slab[i + n].kind == s->kind &&
           strcmp(c->slab[i + n].name, s->name) == 0)
        n++;
    for (int d = 0; d < s->nd; d++)
        snprintf(shape + strlen(shape), sizeof shape - strlen(shape), "%s%lld", d ? " x " : "",
                 (long long)s->global[d]);
    if (s->kind == CHECKPOINT_WEIGHTS)
        say("  %18s  %-8s %5d  %s", shape, dtype_name(s->dtype), n, s->name);
    return n;
}

enum status show_checkpoint(const char *dir, struct err *e)
{
    struct checkpoint c;
    char text[96], number[32];
    enum status st = checkpoint_open(&c, dir, e);

    if (st != OK)
        return st;
    print_layout(text, &c);
    say("%s", c.dir);
    say("step      %s, attempt %lld", log_thousands(number, c.scalars.step),
        (long long)c.scalars.attempt);
    say("samples   %s", log_thousands(number, c.scalars.samples));
    say("tokens    %s", log_thousands(number, c.scalars.tokens));
    say("adam_t    %s", log_thousands(number, c.scalars.adam_t));
    if (c.scalars.loss.scale > 0)
        say("loss scale %g", c.scalars.loss.scale);
    say("ranks     %s", text);
    say("data      hash %s, end of documents %lld", c.data_hash[0] ? c.data_hash : "none",
        (long long)c.eod);
    say("texts     input_nml %zu bytes, tokenizer_json %zu bytes",
        c.input_nml ? strlen(c.input_nml) : 0, c.tokenizer_bytes);
    say("files     %d with %.1f MiB of data, weights and two moments", c.nfiles, mib_of(&c));
    say("  %18s  %-8s %5s  %s", "shape", "type", "slabs", "name (of the weights)");
    for (int i = 0; i < c.nslabs;)
        i += show_tensor(&c, i);
    checkpoint_close(&c);
    return OK;
}

enum status show_checkpoint_digest(const char *dir, struct err *e)
{
    struct checkpoint c;
    char digest[33];
    enum status st = checkpoint_open(&c, dir, e);

    if (st != OK)
        return st;
    st = checkpoint_digest(&c, digest, e);
    checkpoint_close(&c);
    if (st == OK)
        say("%s", digest);
    return st;
}
