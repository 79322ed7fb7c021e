#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "train/run.h"

static volatile sig_atomic_t asked;
/* Blocked but while we look, in this thread and in those made later: kernels of oneDNN 2.6 put the
 * stack pointer into small buffers of the heap, and the kilobytes that the system writes there for
 * a handler destroy what lies below. */
static sigset_t signals;

static void on_signal(int sig)
{
    (void)sig;
    asked = 1;
}

void watch_start(void)
{
    static const int stops[] = { SIGINT, SIGTERM, SIGUSR1 };
    struct sigaction a;

    memset(&a, 0, sizeof a);
    a.sa_handler = on_signal;
    a.sa_flags = SA_RESTART;
    sigemptyset(&signals);
    for (int i = 0; i < COUNT_OF(stops); i++) {
        sigaction(stops[i], &a, NULL);
        sigaddset(&signals, stops[i]);
    }
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    signal(SIGPIPE, SIG_IGN); /* whoever reads our output may go: the run goes on */
}

static void let_signals_in(void)
{
    pthread_sigmask(SIG_UNBLOCK, &signals, NULL);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
}

int watch_stop_asked(const char *directory, int rank)
{
    char path[CONFIG_TEXT + 8];

    let_signals_in();
    if (asked || rank != 0)
        return asked != 0;
    snprintf(path, sizeof path, "%s/STOP", directory);
    return file_exists(path);
}
