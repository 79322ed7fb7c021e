#include "convert/stat_tokens.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/file.h"

/* A plot of PLOT_W x PLOT_H with its lower left corner at (x, Y0). */
enum { PLOT_W = 360, PLOT_H = 260, Y0 = 320, LEFT = 80, RIGHT = 540, ROOM = 1 << 16, POINTS = 200 };

struct picture {
    char *text; /* [ROOM] */
    size_t n;
};

static void put(struct picture *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void put(struct picture *p, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    p->n += (size_t)vsnprintf(p->text + p->n, ROOM - p->n, fmt, ap);
    va_end(ap);
    BUG_IF(p->n >= ROOM);
}

/* Text of a user: what XML means something by is escaped, control characters are not shown. */
static void put_text(struct picture *p, const char *s)
{
    static const char *const escapes[128] = {
        ['&'] = "&amp;", ['<'] = "&lt;", ['>'] = "&gt;", ['"'] = "&quot;"
    };

    for (size_t i = 0; s[i] && i < 2000; i++) {
        unsigned char c = (unsigned char)s[i];

        if (c < 128 && escapes[c])
            put(p, "%s", escapes[c]);
        else
            put(p, "%c", c < 32 || c == 127 ? '?' : c);
    }
}

static void put_label(struct picture *p, double x, double y, const char *anchor, const char *text)
{
    put(p, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s</text>\n", x, y, anchor, text);
}

static void put_frame(struct picture *p, int x, const char *title, const char *below,
                      const char *beside)
{
    put(p, "<path d=\"M%d %dv-%dM%d %dh%d\" stroke=\"#333\" fill=\"none\"/>\n", x, Y0, PLOT_H, x,
        Y0, PLOT_W);
    put_label(p, x + PLOT_W / 2.0, Y0 - PLOT_H - 12, "middle", title);
    put_label(p, x + PLOT_W / 2.0, Y0 + 40, "middle", below);
    put(p, "<text transform=\"translate(%d %d) rotate(-90)\" text-anchor=\"middle\">%s</text>\n",
        x - 56, Y0 - PLOT_H / 2, beside);
}

/* "1", "1k", "16M" */
static const char *short_number(char *buf, double v)
{
    static const char *const units[] = { "", "k", "M", "G", "T" };
    int u = 0;

    for (; v >= 1000 && u < 4; v /= 1000)
        u++;
    snprintf(buf, 32, "%.3g%s", v, units[u]);
    return buf;
}

static void put_lengths(struct picture *p, const struct stat_tokens *s)
{
    int from = 0, end = STAT_BINS;
    int64_t most = 1;
    char text[32];
    double width;

    put_frame(p, LEFT, "Documents by length", "tokens in a document", "documents");
    while (from < end && s->bin[from] == 0)
        from++;
    while (end > from && s->bin[end - 1] == 0)
        end--;
    for (int b = from; b < end; b++)
        most = max_i64(most, s->bin[b]);
    if (from == end)
        return;
    width = (double)PLOT_W / (end - from);
    for (int b = from; b < end; b++) {
        double h = (double)s->bin[b] / (double)most * PLOT_H, x = LEFT + (b - from) * width;

        put(p, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"#4477aa\"/>\n",
            x + 1, Y0 - h, width - 2, h);
        if ((b - from) % (1 + (end - from) / 9) == 0)
            put_label(p, x, Y0 + 18, "middle", short_number(text, exp2(b)));
    }
    for (int i = 0; i <= 4; i++)
        put_label(p, LEFT - 6, Y0 - i * PLOT_H / 4.0 + 4, "end",
                  short_number(text, (double)most * i / 4));
}

/* Both axes in powers of ten. */
static void put_ranks(struct picture *p, const struct stat_tokens *s)
{
    double top_x = ceil(log10((double)max_i64(10, s->distinct))), top_y;
    int64_t last = -1;
    char text[32];

    put_frame(p, RIGHT, "Tokens by rank", "rank of the token", "how often it comes");
    top_y = s->distinct ? ceil(log10((double)max_i64(10, s->rank[0]))) : 1;
    for (int i = 0; i <= (int)top_x; i++)
        put_label(p, RIGHT + i / top_x * PLOT_W, Y0 + 18, "middle", short_number(text, pow(10, i)));
    for (int i = 0; i <= (int)top_y; i++)
        put_label(p, RIGHT - 6, Y0 - i / top_y * PLOT_H + 4, "end", short_number(text, pow(10, i)));
    put(p, "<polyline fill=\"none\" stroke=\"#cc3311\" stroke-width=\"2\" points=\"");
    for (int i = 0; i <= POINTS && s->distinct; i++) {
        int64_t k = (int64_t)floor(pow((double)s->distinct, (double)i / POINTS)) - 1;

        if (k == last)
            continue;
        last = k;
        put(p, "%.1f,%.1f ", RIGHT + log10((double)k + 1) / top_x * PLOT_W,
            Y0 - log10((double)s->rank[k]) / top_y * PLOT_H);
    }
    put(p, "\"/>\n");
}

enum status stat_tokens_svg(const struct stat_tokens *s, const char *title, const char *path,
                            struct err *e)
{
    struct picture p = { mem_take(ROOM), 0 };
    enum status st;

    put(&p, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"960\" height=\"390\" "
            "font-family=\"sans-serif\" font-size=\"12\">\n"
            "<rect width=\"960\" height=\"390\" fill=\"#fff\"/>\n"
            "<text x=\"480\" y=\"22\" text-anchor=\"middle\" font-size=\"14\">");
    put_text(&p, title);
    put(&p, ": %" PRId64 " tokens, %" PRId64 " documents</text>\n", s->ntokens, s->ndocuments);
    put_lengths(&p, s);
    put_ranks(&p, s);
    put(&p, "</svg>\n");
    st = file_write_whole(path, p.text, p.n, e);
    mem_give(p.text);
    return st;
}
