/* The post-processor: ids in front of a text and behind it. */
#ifndef TEXT_TEMPLATE_H
#define TEXT_TEMPLATE_H
#include "text/buffer.h"
#include "text/part.h"

struct template
{
    struct ids front, back;
};
/* The part is null: nothing. E_FILE names what is not supported. */
enum status template_read(struct template *t, const struct part *from, struct err *e) LOCAL;
void template_free(struct template *t) LOCAL;
#endif
