#include "base/log.h"

#include "base/arena.h"
#include "base/file.h"
#include "tests/tap.h"

#include <unistd.h>

static void test_numbers(void)
{
    static const struct {
        int64_t n;
        const char *text;
    } thousands[] = {
        { 0, "0" },
        { 999, "999" },
        { 1000, "1,000" },
        { 1234567, "1,234,567" },
        { -100000, "-100,000" },
        { INT64_MIN, "-9,223,372,036,854,775,808" },
    };
    static const struct {
        double s;
        const char *text;
    } times[] = {
        { 0, "0:00" },
        { 218, "3:38" },
        { 7418, "2:03:38" },
        { 59.6, "1:00" },
        { 4 * 86400 + 7380, "4 d 02:03" },
        { -3, "0:00" },
        { 1e300, "?" },
    };
    char buf[32];

    for (int i = 0; i < COUNT_OF(thousands); i++)
        tap_ok(strcmp(log_thousands(buf, thousands[i].n), thousands[i].text) == 0, "%s", buf);
    for (int i = 0; i < COUNT_OF(times); i++)
        tap_ok(strcmp(log_duration(buf, times[i].s), times[i].text) == 0, "%s", buf);
}

/* Everything the functions write, gathered through a redirected stdout and stderr. */
static void speak(const char *log, const char *out)
{
    static char line[5000];
    int keep_out = dup(STDOUT_FILENO), keep_err = dup(STDERR_FILENO);

    memset(line, 'z', sizeof line - 1);
    fflush(stdout);
    if (!freopen(out, "w", stdout))
        return;
    dup2(STDOUT_FILENO, STDERR_FILENO);
    say("before");
    log_open(log, NULL);
    say("%d said", 1);
    say_live("never in a file");
    warn("careful");
    complain("wrong");
    say("%s", line);
    log_speaker(0);
    say("silent");
    log_speaker(1);
    log_open(NULL, NULL);
    say("after");
    log_open("/dev/full", NULL);
    say("lost");
    say("lost");
    log_open(NULL, NULL);
    fflush(stdout);
    dup2(keep_out, STDOUT_FILENO);
    dup2(keep_err, STDERR_FILENO);
}

int main(void)
{
    static const char head[] = "before\n1 said\nwarning: careful\npretrain: wrong\nzzz";
    char root[] = "/tmp/pretrain-log.XXXXXX", log[64], out[64], *text, *lost;
    struct err e = { "" };
    size_t n;

    if (!mkdtemp(root))
        return 99;
    snprintf(log, sizeof log, "%s/log.txt", root);
    snprintf(out, sizeof out, "%s/out.txt", root);
    tap_plan(13 + 5);
    test_numbers();
    speak(log, out);
    tap_ok(file_read_text(log, 1 << 20, &text, &n, &e) == OK && strstr(text, head) == text,
           "the log file has all that was said before and while it was open");
    tap_ok(n == sizeof head - 4 + 5000, "a long line is whole");
    mem_give(text);
    tap_ok(file_read_text(out, 1 << 20, &text, &n, &e) == OK && strstr(text, "before\n1 said\n"),
           "so has the terminal");
    tap_ok(!strstr(text, "silent") && !strstr(text, "never") && strstr(text, "zz\nafter\n"),
           "a rank that does not speak is silent");
    lost = strstr(text, "no more lines go to the log file");
    tap_ok(lost && !strstr(lost + 1, "no more lines"), "a full disk is said once");
    mem_give(text);
    file_remove_tree(root, &e);
    return tap_done();
}
