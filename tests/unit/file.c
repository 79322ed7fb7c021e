#include "base/file.h"

#include "base/arena.h"
#include "tests/tap.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char root[256];
static char path_text[4][512];

/* root/name, good for four calls */
static const char *in_root(const char *name)
{
    static int turn;
    char *p = path_text[turn++ % 4];

    snprintf(p, sizeof *path_text, "%s/%s", root, name);
    return p;
}

static int fails(enum status st, struct err *e, const char *text)
{
    int good = st == E_FILE && strstr(e->text, text);

    if (!good)
        printf("# status %d: %s\n", (int)st, e->text);
    e->text[0] = 0;
    return good;
}

static void test_read_write(void)
{
    struct err e = { "" };
    struct file f;
    char buf[8] = "";
    const void *at;
    size_t n;
    int good;

    tap_ok(file_open(&f, in_root("a"), FILE_CREATE, &e) == OK, "create %s", e.text);
    good =
        file_write_at(&f, "world", 5, 6, &e) == OK && file_write_at(&f, "hello ", 6, 0, &e) == OK;
    tap_ok(good && file_size(&f) == 11, "write in any order");
    tap_ok(file_read_at(&f, buf, 4, 4, &e) == OK && memcmp(buf, "o wo", 4) == 0, "read back");
    tap_ok(fails(file_read_at(&f, buf, 4, 9, &e), &e, "truncated"), "past the end");
    tap_ok(file_truncate(&f, 5, &e) == OK && file_size(&f) == 5, "truncate");
    tap_ok(file_sync(&f, &e) == OK && file_close(&f, &e) == OK && file_close(&f, &e) == OK,
           "sync, close, close");
    tap_ok(fails(file_open(&f, in_root("a"), FILE_CREATE, &e), &e, "exists"), "create twice");
    file_open(&f, in_root("a"), FILE_APPEND, &e);
    tap_ok(file_append(&f, " you", 4, &e) == OK && file_size(&f) == 9, "append");
    file_close(&f, &e);
    file_open(&f, in_root("a"), FILE_READ, &e);
    tap_ok(file_map(&f, &at, &n, &e) == OK && n == 9 && memcmp(at, "hello you", 9) == 0, "map");
    file_unmap(at, n);
    tap_ok(fails(file_write_at(&f, "x", 1, 0, &e), &e, "cannot write"), "write to a reader");
    file_close(&f, &e);
    file_open(&f, in_root("a"), FILE_UPDATE, &e);
    tap_ok(file_write_at(&f, "H", 1, 0, &e) == OK && file_size(&f) == 9, "update");
    file_close(&f, &e);
    file_open(&f, in_root("a"), FILE_REPLACE, &e);
    tap_ok(file_map(&f, &at, &n, &e) == OK && n == 0, "replace; an empty map");
    file_unmap(at, n);
    file_close(&f, &e);
}

static void test_refusals(void)
{
    struct err e = { "" };
    struct file f;
    char *longest = mem_take(5000);

    memset(longest, 'p', 4999);
    tap_ok(fails(file_open(&f, in_root("none"), FILE_READ, &e), &e, "check the path"), "absent");
    tap_ok(fails(file_open(&f, in_root("none"), FILE_UPDATE, &e), &e, "No such file"), "no update");
    tap_ok(fails(file_open(&f, root, FILE_READ, &e), &e, "not a regular file"), "a directory");
    mkfifo(in_root("pipe"), 0600);
    tap_ok(fails(file_open(&f, in_root("pipe"), FILE_READ, &e), &e, "not a regular"), "a pipe");
    tap_ok(fails(file_open(&f, longest, FILE_READ, &e), &e, "longer than"), "a long path");
    tap_ok(fails(file_rename(in_root("none"), in_root("b"), &e), &e, "rename to"), "rename");
    tap_ok(file_open(&f, "/dev/full", FILE_UPDATE, &e) != OK ||
               fails(file_append(&f, "x", 1, &e), &e, "free some space"),
           "a full disk");
    file_close(&f, NULL);
    tap_ok(fails(file_write_whole(in_root("no/dir"), "x", 1, &e), &e, "no/dir"), "no directory");
    mem_give(longest);
}

/* The limit is a process's own: the child says how it went by its exit code. */
static void test_size_limit(void)
{
    int status = 0;
    pid_t child = fork();

    if (child == 0) {
        struct rlimit limit = { 4096, 4096 };
        struct err e = { "" };
        char text[8192] = "";
        int refused;

        setrlimit(RLIMIT_FSIZE, &limit);
        refused = file_write_whole(in_root("big"), text, sizeof text, &e) == E_FILE;
        _exit(refused && strstr(e.text, "ulimit") && !file_exists(in_root("big")) ? 0 : 1);
    }
    waitpid(child, &status, 0);
    tap_ok(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the file size limit is an error");
}

static void test_whole(void)
{
    struct err e = { "" };
    char *text, **names;
    size_t n;
    int count;

    tap_ok(file_make_dirs(in_root("d/e//f/"), &e) == OK && file_is_dir(in_root("d/e/f")) &&
               file_make_dirs(in_root("d/e/f"), &e) == OK,
           "make directories %s", e.text);
    tap_ok(fails(file_make_dirs(in_root("a/b"), &e), &e, "cannot make"), "through a file");
    file_write_whole(in_root("d/two"), "old", 3, &e);
    tap_ok(file_write_whole(in_root("d/two"), "text", 4, &e) == OK, "write whole %s", e.text);
    tap_ok(file_write_whole(in_root("d/one"), "", 0, &e) == OK, "write nothing %s", e.text);
    tap_ok(file_read_text(in_root("d/two"), 4, &text, &n, &e) == OK && n == 4 &&
               strcmp(text, "text") == 0,
           "read whole %s", e.text);
    mem_give(text);
    tap_ok(fails(file_read_text(in_root("d/two"), 3, &text, &n, &e), &e, "more than 3") && !text,
           "too large");
    tap_ok(file_read_text("/proc/self/status", 1 << 20, &text, &n, &e) == OK && n == strlen(text) &&
               strstr(text, "Pid:"),
           "a file that does not know its size");
    mem_give(text);
    tap_ok(file_list(in_root("d"), &names, &count, &e) == OK && count == 3 &&
               strcmp(names[0], "e") == 0 && strcmp(names[1], "one") == 0 &&
               strcmp(names[2], "two") == 0,
           "sorted list, no leftovers");
    mem_give(names);
    tap_ok(fails(file_list(in_root("none"), &names, &count, &e), &e, "list") && !names, "no list");
}

static void test_remove(void)
{
    struct err e = { "" };

    tap_ok(file_rename(in_root("d/two"), in_root("d/e/three"), &e) == OK &&
               !file_exists(in_root("d/two")) && file_sync_dir(in_root("d"), &e) == OK,
           "rename %s", e.text);
    tap_ok(symlink(root, in_root("d/e/f/link")) == 0 && file_exists(in_root("d/e/f/link")), "link");
    tap_ok(file_remove_tree(in_root("d"), &e) == OK && !file_exists(in_root("d")) &&
               file_exists(in_root("a")),
           "remove a tree, not what its links point to %s", e.text);
    tap_ok(file_remove(in_root("none"), &e) == OK && file_remove_tree(in_root("none"), &e) == OK,
           "what is absent is removed");
    tap_ok(file_remove_tree(root, &e) == OK && !file_is_dir(root), "remove all %s", e.text);
}

int main(void)
{
    const char *tmp = getenv("TMPDIR");

    snprintf(root, sizeof root, "%s/pretrain-file.XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(root))
        return 99;
    tap_plan(12 + 8 + 1 + 9 + 5);
    test_read_write();
    test_refusals();
    test_size_limit();
    test_whole();
    test_remove();
    return tap_done();
}
