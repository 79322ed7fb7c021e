/* The commands of pretrain-data that take a token file of any format. */
#ifndef TOOLS_PRETRAIN_DATA_H
#define TOOLS_PRETRAIN_DATA_H
#include "base/options.h"

extern const struct option_row data_stated_rows[2], data_peek_rows[5], data_convert_rows[5],
    data_merge_rows[4], data_stat_rows[3];
enum status data_run_info(const struct options *o, struct err *e) LOCAL;
enum status data_run_peek(const struct options *o, struct err *e) LOCAL;
enum status data_run_check(const struct options *o, struct err *e) LOCAL;
enum status data_run_convert(const struct options *o, struct err *e) LOCAL;
enum status data_run_merge(const struct options *o, struct err *e) LOCAL;
enum status data_run_stat(const struct options *o, struct err *e) LOCAL;
#endif
