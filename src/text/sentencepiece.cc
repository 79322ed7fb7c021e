#include "text/sentencepiece.h"

#include <sentencepiece_processor.h>

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

struct spm {
    sentencepiece::SentencePieceProcessor processor;
    std::vector<std::string> piece;
};

struct spm *spm_open(const void *bytes, size_t n, char *why, size_t room)
{
    struct spm *s = nullptr;

    try {
        s = new struct spm;
        const auto status =
            s->processor.LoadFromSerializedProto({ static_cast<const char *>(bytes), n });
        if (status.ok()) {
            for (int id = 0; id < s->processor.GetPieceSize(); id++)
                s->piece.push_back(s->processor.IdToPiece(id));
            return s;
        }
        snprintf(why, room, "%s", status.ToString().c_str());
    } catch (const std::exception &e) {
        snprintf(why, room, "%s", e.what());
    }
    delete s;
    return nullptr;
}

void spm_close(struct spm *s)
{
    delete s;
}

int spm_size(const struct spm *s)
{
    return static_cast<int>(s->piece.size());
}

const char *spm_text(const struct spm *s, int id, size_t *n)
{
    *n = s->piece[id].size();
    return s->piece[id].data();
}

int spm_is_special(const struct spm *s, int id)
{
    return s->processor.IsControl(id) || s->processor.IsUnknown(id);
}

int spm_begin(const struct spm *s)
{
    return s->processor.bos_id();
}

int spm_end(const struct spm *s)
{
    return s->processor.eos_id();
}

int spm_encode(const struct spm *s, const char *text, size_t n,
               void (*take)(void *to, const int *ids, size_t n), void *to)
{
    try {
        std::vector<int> ids;

        if (!s->processor.Encode({ text, n }, &ids).ok())
            return 0;
        take(to, ids.data(), ids.size());
        return 1;
    } catch (const std::exception &) {
        return 0;
    }
}
