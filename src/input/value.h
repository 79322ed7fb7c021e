/* Literals of a namelist, as gfortran reads them. */
#ifndef INPUT_VALUE_H
#define INPUT_VALUE_H
#include "base/types.h"

enum value_kind { VALUE_NULL, VALUE_WORD, VALUE_TEXT };
struct value {
    enum value_kind kind;
    size_t at, n;   /* its bytes in the source, quotes included */
    int64_t repeat; /* r of r*value, else 1 */
};
enum value_fault { VALUE_FINE, VALUE_SYNTAX, VALUE_OVERFLOW, VALUE_UNDERFLOW, VALUE_NOT_FINITE };

enum value_fault value_read_int(const char *s, size_t n, int64_t *v) LOCAL;
enum value_fault value_read_real(const char *s, size_t n, double *v) LOCAL;
enum value_fault value_read_bool(const char *s, size_t n, int *v) LOCAL;
/* Quoted text into buf with a final 0, doubled quotes made single. VALUE_OVERFLOW: longer than room
 * - 1. */
enum value_fault value_read_text(const char *s, size_t n, char *buf, size_t room) LOCAL;
/* What the user should have written for an integer, e.g. "10" for 10.0, 1e1, 10_8, 0xa; "" if
 * nobody knows. */
void value_suggest_int(const char *s, size_t n, char *buf, size_t room) LOCAL;
/* The same for a logical: ".true." for yes, on, 1, .t. */
const char *value_suggest_bool(const char *s, size_t n) LOCAL;
/* Compare n bytes with a word, letter case aside. */
int value_is_word(const char *s, size_t n, const char *word) LOCAL;
#endif
