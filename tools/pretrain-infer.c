/* pretrain-infer: evaluation and generation by many ranks. */
#include "base/options.h"
#include "infer/infer.h"
#include "parallel/comm_mpi.h"

/* Each command takes a run of these. */
static const struct option_row rows[] = {
    /* generate */
    { "max-new-tokens", 0, "N", OPTION_OPTIONAL, NULL, "of each prompt, at most [128]" },
    { "temperature", 0, "T", OPTION_OPTIONAL, NULL,
      "logits are divided by it; 0: always the most likely token [0]" },
    { "top-k", 0, "K", OPTION_OPTIONAL, NULL, "draw from the K most likely tokens [all]" },
    { "top-p", 0, "P", OPTION_OPTIONAL, NULL,
      "and from the fewest whose probabilities add to P [1]" },
    { "seed", 0, "N", OPTION_OPTIONAL, NULL, "of the draws [42]" },
    { "no-cache", 0, NULL, OPTION_OPTIONAL, NULL,
      "compute every token anew from all before it: slow, to check" },
    /* all */
    { "output", 'o', "OUT", OPTION_REQUIRED, NULL, "the results; while it works, OUT.parts" },
    { "tp", 0, "T", OPTION_OPTIONAL, NULL, "ranks that share each layer [1]" },
    { "pp", 0, "P", OPTION_OPTIONAL, NULL, "ranks that share the layers out [1]" },
    { "dp", 0, "D", OPTION_OPTIONAL, NULL, "copies of the model [what is left of the ranks]" },
    { "dtype", 0, "TYPE", OPTION_OPTIONAL, "float32|bfloat16|float16|float64",
      "to compute in [a checkpoint's own; float32]; float64: the slow reference" },
    { "device", 0, "DEVICE", OPTION_OPTIONAL, "auto|cpu|cuda", "auto, cpu or cuda [auto]" },
    { "threads", 0, "N", OPTION_OPTIONAL, NULL, "of each rank [cores / ranks of a node]" },
    { "batch", 0, "N", OPTION_OPTIONAL, NULL,
      "sequences in one pass; results can depend on it in the last digits" },
    /* logits and nll */
    { "sequence-length", 0, "S", OPTION_OPTIONAL, NULL,
      "of a token file's windows [that of the training, or all positions of the model]" },
    { "document-mask", 0, "YES", OPTION_OPTIONAL, "yes|no",
      "of a token file: attention and positions restart at documents [as in training]" },
    /* nll */
    { "stride", 0, "N", OPTION_OPTIONAL, NULL,
      "tokens from one window to the next; a later window scores its last N [S]" },
    { "each-token", 0, NULL, OPTION_OPTIONAL, NULL, "of a token file: also token_nll, a list" },
};
enum { GENERATE_ROWS = 6, ALL_ROWS = 8, LENGTH_ROWS = 2, NLL_ROWS = 2 };

/* Its errors are said by rank 0. */
static enum status run(const struct options *o, infer_parse *parse, infer_command *command,
                       struct err *e)
{
    struct infer_options x;
    struct comm *world;
    enum status st = parse(&x, o, e);

    if (st != OK)
        return st;
    world = comm_mpi_start(NULL, NULL);
    st = command(world, &x);
    comm_mpi_end(world);
    return st;
}

static enum status run_logits(const struct options *o, struct err *e)
{
    return run(o, infer_parse_logits, infer_logits, e);
}
static enum status run_nll(const struct options *o, struct err *e)
{
    return run(o, infer_parse_nll, infer_nll, e);
}
static enum status run_generate(const struct options *o, struct err *e)
{
    return run(o, infer_parse_generate, infer_generate, e);
}

#define MODEL_TEXT "MODEL: a checkpoint (step_*) or a Hugging Face folder. "

static const struct command commands[] = {
    { "logits", "MODEL INPUT...", 2, -1,
      "Logits of every token.\n" MODEL_TEXT "INPUT: a token\n"
      "file, cut into windows of S tokens, or jsonl lines {\"ids\": [1, 2, 3]}, a sequence\n"
      "each. OUT: NAME.safetensors or NAME.h5 with two tensors: logits, float32 (with\n"
      "--dtype float64: float64) [sequences, S, vocabulary], and lengths; behind a\n"
      "sequence's length logits are 0.",
      rows + GENERATE_ROWS, ALL_ROWS + LENGTH_ROWS, run_logits },
    { "nll", "MODEL INPUT...", 2, -1,
      "Negative log likelihoods of documents, or of answers to choose from.\n" MODEL_TEXT
      "INPUT: a token\n"
      "file, whose windows of S tokens are read; each token stands after those before it in\n"
      "its window. OUT: jsonl, a line for each document: document, first_token, tokens,\n"
      "counted, nll (their sum, in nats), perplexity. The file's first token does not count,\n"
      "nor does with the document mask that of any document.\n"
      "Or INPUT: jsonl lines of questions, with texts or lists of ids:\n"
      "{\"context\": \"2 + 2 is\", \"choices\": [\" 4\", \" 5\"], \"answer\": 0}\n"
      "OUT: a line for each: log_likelihoods of the choices (sums), per_token (means), pick\n"
      "and pick_per_token (the largest of each).",
      rows + GENERATE_ROWS, ALL_ROWS + LENGTH_ROWS + NLL_ROWS, run_nll },
    { "generate", "MODEL INPUT...", 2, -1,
      "Continues prompts.\n" MODEL_TEXT "INPUT: jsonl\n"
      "lines {\"prompt\": \"a text\"} or {\"ids\": [1, 2, 3]}, or a text with a prompt a line.\n"
      "OUT: jsonl, in the order of the prompts: index, prompt_tokens, ids (the new ones), text\n"
      "(if the model has a tokenizer), finish: eos, or length when --max-new-tokens are made\n"
      "or all positions are taken.",
      rows, GENERATE_ROWS + ALL_ROWS, run_generate },
};

int main(int argc, char **argv)
{
    const struct program p = { "pretrain-infer",
                               "Evaluates and runs models: mpirun -np N pretrain-infer ...",
                               "pretrain-infer " PACKAGE_VERSION, commands, COUNT_OF(commands) };

    return program_main(&p, argc, argv);
}
