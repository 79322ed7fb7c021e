/* pretrain-ckpt: looks at checkpoints. */
#include "base/options.h"
#include "convert/show_checkpoint.h"

static enum status run_list(const struct options *o, struct err *e)
{
    return show_checkpoint_list(options_operands(o)[0], e);
}

static enum status run_inspect(const struct options *o, struct err *e)
{
    return show_checkpoint(options_operands(o)[0], e);
}

static enum status run_digest(const struct options *o, struct err *e)
{
    return show_checkpoint_digest(options_operands(o)[0], e);
}

static enum status run_later(const struct options *o, struct err *e)
{
    (void)o;
    return err_set(
        e, E_INPUT,
        "pretrain-ckpt: verify, diff and selftest are not in this build; digest reads a checkpoint "
        "whole and finds damage");
}

static const struct command commands[] = {
    { "list", "RUN", 1, 1,
      "List the checkpoints of a run's directory, also those that are not good.", NULL, 0,
      run_list },
    { "inspect", "CHECKPOINT", 1, 1,
      "Show counters, layout and tensors of a checkpoint (a step_* folder).", NULL, 0,
      run_inspect },
    { "digest", "CHECKPOINT", 1, 1,
      "Print one XXH3-128 over step, samples, masters and moments of the whole tensors.\n"
      "It does not depend on the layout. Every block that is read is checked.",
      NULL, 0, run_digest },
    { "verify", "CHECKPOINT", 0, -1, "Not in this build.", NULL, 0, run_later },
    { "diff", "A B", 0, -1, "Not in this build.", NULL, 0, run_later },
    { "selftest", "DIR", 0, -1, "Not in this build.", NULL, 0, run_later },
};

int main(int argc, char **argv)
{
    const struct program p = { "pretrain-ckpt", "Look at checkpoints.",
                               "pretrain-ckpt " PACKAGE_VERSION, commands, COUNT_OF(commands) };

    return program_main(&p, argc, argv);
}
