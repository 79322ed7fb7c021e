/* Lists as text. */
#include "base/arena.h"
#include "schedule/lists.h"
#include <stdio.h>
#include <string.h>

static const char *const names[ACT_KINDS] = {
    [ACT_F] = "F",       [ACT_B] = "B",       [ACT_I] = "I",       [ACT_W] = "W",
    [ACT_SEND_F] = "sF", [ACT_RECV_F] = "rF", [ACT_SEND_B] = "sB", [ACT_RECV_B] = "rB",
    [ACT_MOVE_F] = "mF", [ACT_MOVE_B] = "mB", [ACT_REDUCE] = "R",
};

char *schedule_action_text(char *buf, size_t size, const struct schedule *s, const struct action *a)
{
    const char *name = a->kind < ACT_KINDS ? names[a->kind] : "?";

    if (a->kind == ACT_REDUCE)
        snprintf(buf, size, "%s%d", name, a->chunk);
    else if (s->chunks > 1)
        snprintf(buf, size, "%s%d.%d", name, a->mb, a->chunk);
    else
        snprintf(buf, size, "%s%d", name, a->mb);
    return buf;
}

char *schedule_print(const struct schedule *s, int mark_rank, int mark)
{
    enum { WORD = 24 }; /* " sF" + mb + "." + chunk */
    static const char arrow[] = " <--";
    size_t room = sizeof arrow, at = 0;
    char *text;

    for (int r = 0; r < s->pp; r++)
        room += WORD * ((size_t)s->n[r] + 1);
    text = mem_take(room);
    for (int r = 0; r < s->pp; r++) {
        at += (size_t)snprintf(text + at, room - at, "pp%d:", r);
        for (int i = 0; i < s->n[r]; i++) {
            char word[WORD];
            schedule_action_text(word, sizeof word, s, &s->list[r][i]);
            at += (size_t)snprintf(text + at, room - at, " %s%s", word,
                                   r == mark_rank && i == mark ? arrow : "");
        }
        at += (size_t)snprintf(text + at, room - at, "\n");
    }
    return text;
}
