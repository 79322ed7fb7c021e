#include "base/err.h"

#include "base/trace.h"
#include "tests/tap.h"

#include <sys/wait.h>
#include <unistd.h>

static char words[8192]; /* what the last child said on stderr */

static int run_child(void (*f)(void))
{
    int status = 0, fd[2];
    size_t n = 0;
    ssize_t k;
    pid_t child;

    if (pipe(fd) != 0)
        return -1;
    child = fork();
    if (child == 0) {
        dup2(fd[1], STDERR_FILENO);
        f();
        _exit(0);
    }
    close(fd[1]);
    while ((k = read(fd[0], words + n, sizeof words - 1 - n)) > 0)
        n += (size_t)k;
    words[n] = 0;
    close(fd[0]);
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void die_alone(void)
{
    die(E_PEER, "no %s", "answer");
}

static void say_hook(int code)
{
    dprintf(STDERR_FILENO, "hook %d\n", code);
}

static void die_hooked(void)
{
    die_set_hook(say_hook, 3);
    for (int i = 0; i < 20; i++)
        trace_note("forward", i, 1, 7);
    die(E_FILE, "lost");
}

static void die_long(void)
{
    static char text[9000];

    memset(text, 'x', sizeof text - 1);
    die(E_FILE, "%s", text);
}

static void die_bug(void)
{
    BUG_IF(1 + 1 == 2);
}

static void hook_exits(int code)
{
    _exit(code + 1);
}

static void die_in_hook(void)
{
    die_set_hook(hook_exits, 0);
    die(E_FILE, "x");
}

static int count_lines(const char *s)
{
    int n = 0;

    for (; *s; s++)
        n += *s == '\n';
    return n;
}

static void test_err(void)
{
    struct err e = { "" };
    char big[5000];

    tap_ok(err_set(&e, E_FILE, "%s: %d", "a", 1) == E_FILE && strcmp(e.text, "a: 1") == 0, "set");
    tap_ok(err_set(&e, E_INPUT, "b") == E_INPUT && strcmp(e.text, "a: 1") == 0, "the first wins");
    err_prefix(&e, "in %s", "file");
    tap_ok(strcmp(e.text, "in file: a: 1") == 0, "prefix");
    tap_ok(err_set(NULL, E_FILE, "x") == E_FILE, "nobody wants to know");
    memset(big, 'y', sizeof big - 1);
    big[sizeof big - 1] = 0;
    e.text[0] = 0;
    err_set(&e, E_FILE, "%s", big);
    err_prefix(&e, "%s", big);
    tap_ok(strlen(e.text) == sizeof e.text - 1 && strstr(e.text, ": yyy"), "long text is cut");
}

int main(void)
{
    tap_plan(14);
    test_err();
    tap_ok(run_child(die_alone) == E_PEER, "die exits with its code");
    tap_ok(strcmp(words, "pretrain: no answer\n") == 0, "in one line");
    tap_ok(run_child(die_hooked) == E_FILE, "with a hook");
    tap_ok(strncmp(words, "pretrain: rank 3: lost\n", 23) == 0, "the rank is named");
    tap_ok(count_lines(words) == 1 + 16 + 1 && strstr(words, "step 7: forward 19 1\n"),
           "then the last 16 actions");
    tap_ok(strstr(words, "hook 3\n") == words + strlen(words) - 7, "then the hook");
    tap_ok(run_child(die_in_hook) == E_FILE + 1, "the hook ends the process");
    tap_ok(run_child(die_long) == E_FILE && count_lines(words) == 1, "a long line is one line");
    tap_ok(run_child(die_bug) == E_BUG && strstr(words, "err.c:") && strstr(words, "1 + 1 == 2"),
           "BUG_IF says where");
    return tap_done();
}
