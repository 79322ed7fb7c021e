/* What is told of each step: a line for people, a JSON line for programs. Rank 0 only. */
#ifndef REPORT_REPORT_H
#define REPORT_REPORT_H
#include "base/file.h"

enum { REPORT_VALIDATIONS = 33 };
struct step_validation {
    const char *key;  /* in the metrics; the first is validation_loss */
    const char *said; /* on the screen; the first is the validation loss */
    double loss;
};
struct step_report {
    int64_t step, last_step, valid_tokens, tokens, samples, attempt;
    double loss, grad_norm, learning_rate;
    struct step_validation validation[REPORT_VALIDATIONS];
    int nvalidations; /* 0: none at this step */
    int skipped;
    double loss_scale; /* NAN: none */
    double seconds, tokens_per_second, flops_per_second, peak_fraction;
    double bubble;       /* share of the step that ranks waited for the pipeline, mean */
    double data_seconds; /* of the step, in which ranks read its tokens, mean; NAN: not known */
    double left;         /* seconds to the end */
};

struct metrics {
    struct file f;
    int64_t at;
};
/* Appends to path; an unfinished last line of an earlier run is ended first. */
enum status metrics_open(struct metrics *m, const char *path, struct err *e) LOCAL;
enum status metrics_write(struct metrics *m, const struct step_report *r, struct err *e) LOCAL;
enum status metrics_close(struct metrics *m, struct err *e) LOCAL;

void console_head(void) LOCAL;
void console_step(const struct step_report *r) LOCAL;
void console_live(const struct step_report *r) LOCAL;
#endif
