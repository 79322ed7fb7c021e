#include "train/sources.h"

static const int stored_types[] = { [DATA_SAID] = -1,
                                    [DATA_UINT16] = U16,
                                    [DATA_UINT32] = U32,
                                    [DATA_INT32] = I32,
                                    [DATA_INT64] = I64 };

static enum status check(struct corpus *data, const struct config *c, struct err *e)
{
    const struct tokens *f = c->data.document_mask ? corpus_without_documents(data) : NULL;

    if (f)
        return err_set(e, E_INPUT,
                       "data.document_mask = .true., but %s (%s) does not say where documents end: "
                       "give end_of_document, the id that ends them, or convert the file",
                       f->path, f->format);
    if (c->model.vocab_size == 0)
        return data->vocab_size
                   ? OK
                   : err_set(e, E_INPUT,
                             "model.vocab_size = 0 takes the data's, but %s (%s) does not say it: "
                             "give vocab_size",
                             data->file[0].path, data->file[0].format);
    return corpus_limit(data, c->model.vocab_size, e);
}

static enum status open_files(struct corpus *data, const struct config *c, const char *const *paths,
                              int n, struct err *e)
{
    struct tokens_stated stated = { stored_types[c->data.data_dtype], c->data.end_of_document };
    enum status st = corpus_open(data, paths, n, c->train.sequence_length, &stated, e);

    if (st == OK && (st = check(data, c, e)) != OK)
        corpus_close(data);
    return st;
}

enum status sources_open_train(struct corpus *t, const struct config *c, struct err *e)
{
    const char *paths[CONFIG_TEXT_LIST];

    for (int i = 0; i < c->data.train.n; i++)
        paths[i] = c->data.train.v[i];
    return open_files(t, c, paths, c->data.train.n, e);
}

enum status sources_open_validation(struct corpus *v, const struct config *c, struct err *e)
{
    const char *path = c->data.validation;

    return open_files(v, c, &path, 1, e);
}
