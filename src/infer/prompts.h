/* Prompts from files, and the texts that answer them. */
#ifndef INFER_PROMPTS_H
#define INFER_PROMPTS_H
#include "infer/work.h"

/* Rank 0: items of w, in the order of the lines. jsonl: {"prompt": text} or {"ids": [...]}; any
 * other file: a text, a prompt a line, empty lines passed over. An empty prompt is the
 * end-of-document token. E_FILE, with the line. */
enum status prompts_read(struct work *w, struct err *e) LOCAL;
/* As a JSON string; what is not UTF-8 becomes U+FFFD, a byte at a time. */
void prompts_put_text(struct json_text *to, const char *s, size_t n) LOCAL;
#endif
