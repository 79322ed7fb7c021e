/* Token files of other programs, mapped as they are. Called by tokens.c only.
 * Megatron: NAME.bin, raw, and NAME.idx; datatrove, nanotron: NAME.ds, raw, and NAME.ds.index;
 * llm.c: a header of 1,024 bytes, then uint16 or uint32; raw: nothing but tokens.
 *
 * Their hash: XXH3-128 over the element size, the number of tokens and of documents (int64 each;
 * where no documents are listed, -1 - the id that was stated to end them), the first and the last
 * MiB of the tokens (all, if there are no more), 64 blocks of 4 KiB evenly spaced between, and 64
 * evenly spaced starts of documents. */
#ifndef DATA_TOKENS_FOREIGN_H
#define DATA_TOKENS_FOREIGN_H
#include "base/file.h"
#include "data/tokens.h"

/* f: t->path, open; head: its first n bytes. *known 0: none of these formats. */
enum status tokens_foreign_open(struct tokens *t, struct file *f, const void *head, size_t n,
                                const struct tokens_stated *stated, int *known,
                                struct err *e) LOCAL;
#endif
