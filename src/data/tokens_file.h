/* The constants of the token file, shared by its reader and its writer. */
#ifndef DATA_TOKENS_FILE_H
#define DATA_TOKENS_FILE_H

#define TOKENS_MAGIC  "\x89HDF\r\n\x1a\n"
#define TOKENS_FORMAT "pretrain tokens"
enum {
    TOKENS_VERSION = 1,
    TOKENS_HEAD = 1 << 20,         /* bytes before the tokens: HDF5's metadata     */
    TOKENS_VOCAB_MAX = 0x7fffffff, /* ids are int32 in the program                 */
    TOKENS_U16_MAX = 65536         /* larger vocabularies are stored as uint32     */
};
#endif
