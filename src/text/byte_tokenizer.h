/* The tokenizer that needs no training: id = byte, 256 = <|endoftext|>, vocabulary 257. */
#ifndef TEXT_BYTE_TOKENIZER_H
#define TEXT_BYTE_TOKENIZER_H
#include "base/types.h"
enum { BYTE_EOD = 256, BYTE_VOCAB = 257 };
/* A valid tokenizer.json (ByteLevel BPE without merges) that encodes every byte to its value. */
const char *byte_tokenizer_json(void) LOCAL;
#endif
