/* SentencePiece models by libsentencepiece, which is C++: behind functions of C. Only where
 * configure found it (HAVE_SENTENCEPIECE). Read-only once open, shared by threads. */
#ifndef TEXT_SENTENCEPIECE_H
#define TEXT_SENTENCEPIECE_H
#include "base/types.h"

#ifdef __cplusplus
extern "C" {
#endif

struct spm;

/* bytes: of a .model. NULL: why, [room], says what is wrong. */
struct spm *spm_open(const void *bytes, size_t n, char *why, size_t room) LOCAL;
void spm_close(struct spm *s) LOCAL; /* NULL is fine */

int spm_size(const struct spm *s) LOCAL;
const char *spm_text(const struct spm *s, int id, size_t *n) LOCAL;
/* A control symbol, such as <s>, or the unknown one: no text gives the first. */
int spm_is_special(const struct spm *s, int id) LOCAL;
int spm_begin(const struct spm *s) LOCAL; /* of a text; -1: none */
int spm_end(const struct spm *s) LOCAL;

/* The ids of a whole text, which is UTF-8; take gets all of them. Returns 0: the library failed. */
int spm_encode(const struct spm *s, const char *text, size_t n,
               void (*take)(void *to, const int *ids, size_t n), void *to) LOCAL;

#ifdef __cplusplus
}
#endif
#endif
