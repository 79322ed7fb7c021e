/* A text field of a JSON line, many times faster than by a tree of values. */
#ifndef CONVERT_JSON_FIELD_H
#define CONVERT_JSON_FIELD_H
#include "text/buffer.h"

/* line: UTF-8. 1: it is an object, jsonl_parse() would say so, and jsonl_field() give this text,
 * which is in the line or in *room. 0: see what they say; common lines never come to this. */
int json_field(const char *line, size_t n, const char *field, struct buffer *room,
               const char **text, size_t *bytes) LOCAL;
#endif
