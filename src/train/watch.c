#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "train/run.h"

static volatile sig_atomic_t asked;

static void on_signal(int sig)
{
    (void)sig;
    asked = 1;
}

void watch_start(void)
{
    static const int signals[] = { SIGINT, SIGTERM, SIGUSR1 };
    struct sigaction a;

    memset(&a, 0, sizeof a);
    a.sa_handler = on_signal;
    a.sa_flags = SA_RESTART;
    for (int i = 0; i < COUNT_OF(signals); i++)
        sigaction(signals[i], &a, NULL);
    signal(SIGPIPE, SIG_IGN); /* whoever reads our output may go: the run goes on */
}

int watch_stop_asked(const char *directory, int rank)
{
    char path[CONFIG_TEXT + 8];

    if (asked || rank != 0)
        return asked != 0;
    snprintf(path, sizeof path, "%s/STOP", directory);
    return file_exists(path);
}
