/* pretrain-merge: a checkpoint of any layout becomes one model. */
#include "base/options.h"
#include "convert/export.h"

static const struct option_row rows[] = {
    { "output", 'o', "OUT", OPTION_REQUIRED, NULL, "a folder (safetensors) or a file (hdf5)" },
    { "format", 0, "FORMAT", OPTION_OPTIONAL, "safetensors|hdf5",
      "safetensors: a Hugging Face folder, the default; or hdf5" },
    { "dtype", 0, "TYPE", OPTION_OPTIONAL, "float64|float32|bfloat16|float16",
      "of the weights: float64, float32, bfloat16 or float16 [the masters']" },
    { "with-optimizer", 0, NULL, OPTION_OPTIONAL, NULL,
      "exp_avg and exp_avg_sq too, in their own type; hdf5 only" },
    { "max-shard-size", 0, "SIZE", OPTION_OPTIONAL, NULL,
      "above it the weights go into several files: 500MB, 1GiB [5GB]" },
};

static enum status run(const struct options *o, struct err *e)
{
    const char *format = options_text(o, "format"), *dtype = options_text(o, "dtype");
    struct export_options a = {
        .checkpoint = options_operands(o)[0],
        .out = options_text(o, "output"),
        .hdf5 = format && format[0] == 'h',
        .dtype = dtype ? dtype_from_name(dtype) : -1,
        .with_optimizer = options_given(o, "with-optimizer") > 0,
        .max_shard_bytes = 5000000000,
    };
    enum status st = options_bytes(o, "max-shard-size", &a.max_shard_bytes, e);

    if (st == OK && a.hdf5 && options_given(o, "max-shard-size"))
        st = err_set(e, E_INPUT, "--max-shard-size goes with --format safetensors");
    return st == OK ? export_model(&a, e) : st;
}

static const struct command commands[] = {
    { "", "CHECKPOINT", 1, 1,
      "Turns a checkpoint (a step_* folder of a run) into one model: a folder that Hugging Face's\n"
      "libraries load, or one HDF5 file. An earlier export under the same name is replaced.",
      rows, COUNT_OF(rows), run },
};

int main(int argc, char **argv)
{
    const struct program p = { "pretrain-merge", "Makes one model of a checkpoint.",
                               "pretrain-merge " PACKAGE_VERSION, commands, COUNT_OF(commands) };

    return program_main(&p, argc, argv);
}
