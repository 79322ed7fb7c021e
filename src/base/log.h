/* What a person reads. Only the speaker (rank 0, or a tool) prints; say() also goes to the log
 * file. */
#ifndef BASE_LOG_H
#define BASE_LOG_H
#include "base/err.h"

void log_speaker(int speaks) LOCAL;           /* 0: this rank is silent (die() excepted) */
/* Append to path from now on, first what was said before; NULL closes. */
enum status log_open(const char *path, struct err *e) LOCAL;
/* stdout and log file, adds a newline */
void say(const char *fmt, ...) LOCAL __attribute__((format(printf, 1, 2)));
/* replaces the live line; nothing unless stdout, or mpirun's, is a terminal */
void say_live(const char *fmt, ...) LOCAL __attribute__((format(printf, 1, 2)));
/* "warning: ..." on stderr and log file */
void warn(const char *fmt, ...) LOCAL __attribute__((format(printf, 1, 2)));
/* "pretrain: ..." on stderr and log file; a tool says its own name */
void log_program(const char *name) LOCAL;
void complain(const char *fmt, ...) LOCAL __attribute__((format(printf, 1, 2)));

/* "1,234,567" into buf (at least 32 bytes); returns buf */
const char *log_thousands(char *buf, int64_t n) LOCAL;
/* "3:38" or "2:03:38" or "4 d 02:03" */
const char *log_duration(char *buf, double seconds) LOCAL;
#endif
