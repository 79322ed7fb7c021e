/* streams.cc - streams and events. CUEMU_STREAMS=eager runs work when it is queued; lazy as late as
 * the program's waits allow, so that a missing wait shows as stale data; ahead: the program's first
 * stream is lazy, others are eager and overtake it where they do not wait for it. To the race
 * detector a stream is a thread of its own. */
#include "machine.h"
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <deque>
#include <memory>
#include <sys/syscall.h>
#include <unistd.h>

struct work {
    std::function<bool()> run; /* false: it waits for another process, ask again */
    char queued;               /* ordered after the call that queued it */
};

struct CUstream_st {
    int device;
    unsigned number;
    bool blocking, alive;
    bool first; /* that the program made */
    bool busy; /* its first work runs */
    std::deque<std::unique_ptr<work>> queue;
    unsigned long long queued, done;
    unsigned long long shared_until; /* the last work that other processes may wait for */
    void *race;
    char finished; /* ordered before who waits for the whole stream */
};

/* One call of cudaEventRecord. */
struct record {
    CUstream_st *stream;
    bool done;
    double ms;
    char reached;
};

struct CUevent_st {
    int device;
    bool timed;
    std::shared_ptr<record> last;
};

namespace cuemu
{

namespace
{

/* Never freed: work that is still queued elsewhere may wait for them. */
std::vector<CUstream_st *> &streams = *new std::vector<CUstream_st *>;
std::vector<CUstream_st *> &null_streams = *new std::vector<CUstream_st *>; /* by device */
std::vector<CUevent_st *> &events = *new std::vector<CUevent_st *>;
CUstream_st *at_work;

CUstream_st *create(int device, bool blocking)
{
    CUstream_st *s = new CUstream_st();

    s->device = device;
    s->number = (unsigned)streams.size();
    s->blocking = blocking;
    s->alive = true;
    streams.push_back(s);
    return s;
}

CUstream_st *null_stream()
{
    size_t device = (size_t)device_of_thread();

    while (null_streams.size() <= device)
        null_streams.push_back(create((int)null_streams.size(), false));
    return null_streams[device];
}

bool is_null(const CUstream_st *s)
{
    return (size_t)s->device < null_streams.size() && null_streams[(size_t)s->device] == s;
}

CUstream_st *resolve(cudaStream_t s)
{
    return s ? s : null_stream();
}

bool lazy(const CUstream_st *s)
{
    static const char *const modes[] = { "eager", "lazy", "ahead" };
    static int chosen = -1;

    if (chosen < 0) {
        const char *mode = getenv("CUEMU_STREAMS");
        chosen = 0;
        while (mode && *mode && chosen < 3 && strcmp(mode, modes[chosen]))
            chosen++;
        if (chosen == 3)
            stop("CUEMU_STREAMS is neither eager nor lazy nor ahead");
    }
    return chosen == 1 || (chosen == 2 && s->first);
}

bool execute(CUstream_st *s, work &w)
{
    CUstream_st *before = at_work;
#ifdef CUEMU_TSAN
    void *caller = __tsan_get_current_fiber();
    if (!s->race)
        s->race = __tsan_create_fiber(0);
    __tsan_switch_to_fiber(s->race, 1);
    __tsan_acquire(&w.queued);
#endif
    at_work = s;
    memory_open();
    bool over = w.run();
    if (over)
        w.run = nullptr; /* what it holds is freed here, by the stream */
    memory_close();
    at_work = before;
    TSAN(__tsan_release(&s->finished); __tsan_switch_to_fiber(caller, 1);)
    return over;
}

/* Run the stream's first work. False if there is none or it cannot finish now. */
bool step(CUstream_st *s)
{
    if (s->queue.empty() || s->busy)
        return false;
    s->busy = true;
    bool over = execute(s, *s->queue.front());
    s->busy = false;
    if (over) {
        s->queue.pop_front();
        s->done++;
    }
    return over;
}

bool reaches(CUstream_st *s, unsigned long long done)
{
    while (s->done < done)
        if (!step(s))
            return false;
    return true;
}

/* The host waits for work that waits for another process, which may wait for other streams of this
 * one. */
void stall()
{
    struct timespec nap = { 0, 50000 };

    if (!progress())
        nanosleep(&nap, nullptr);
}

void run_until(CUstream_st *s, unsigned long long done)
{
    while (!reaches(s, done))
        stall();
}

void drain(CUstream_st *s)
{
    run_until(s, s->queued);
    TSAN(__tsan_acquire(&s->finished);)
}

void append(CUstream_st *s, std::function<bool()> f)
{
    std::unique_ptr<work> w(new work{ std::move(f), 0 });

    TSAN(__tsan_release(&w->queued);)
    s->queued++;
    s->queue.push_back(std::move(w));
    if (!lazy(s))
        reaches(s, s->queued);
}

/* Work of `s` from now on comes after what `other` holds now. */
void append_wait(CUstream_st *s, CUstream_st *other)
{
    unsigned long long until = other->queued;

    append(s, [=] {
        bool over = reaches(other, until);
        TSAN(__tsan_acquire(&other->finished);)
        return over;
    });
}

/* The null stream and blocking streams wait for each other. */
void order_with_null(CUstream_st *s)
{
    if (is_null(s)) {
        for (size_t i = 0; i < streams.size(); i++)
            if (streams[i]->blocking && streams[i]->alive && streams[i]->device == s->device)
                append_wait(s, streams[i]);
    } else if (s->blocking && (size_t)s->device < null_streams.size()) {
        append_wait(s, null_streams[(size_t)s->device]);
    }
}

template <class T> bool known(const std::vector<T *> &all, const T *one)
{
    for (const T *other : all)
        if (other == one)
            return true;
    return false;
}

double milliseconds()
{
    struct timespec t;

    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t); /* no sanitizer intercepts it */
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

} // namespace

bool stream_usable(cudaStream_t s)
{
    return !s || (known(streams, s) && s->alive && s->device == device_of_thread());
}

unsigned stream_number()
{
    return at_work ? at_work->number : 0;
}

static CUstream_st *place_for_work(cudaStream_t stream)
{
    CUstream_st *s = resolve(stream);

    if (at_work)
        stop("work of a stream queues work");
    if (!known(streams, s) || !s->alive)
        stop("work for a stream that does not exist");
    order_with_null(s);
    return s;
}

void enqueue(cudaStream_t stream, std::function<void()> f)
{
    append(place_for_work(stream), [f] {
        f();
        return true;
    });
}

static void enqueue_wait(cudaStream_t stream, std::function<bool()> f)
{
    append(place_for_work(stream), std::move(f));
}

void enqueue_shared(cudaStream_t stream, std::function<bool()> f)
{
    CUstream_st *s = place_for_work(stream);

    s->shared_until = s->queued + 1;
    append(s, std::move(f));
}

bool progress()
{
    bool moved = false;

    if (at_work)
        return false;
    for (size_t i = 0; i < streams.size(); i++) {
        unsigned long long before = streams[i]->done;
        reaches(streams[i], streams[i]->shared_until);
        moved |= streams[i]->done > before;
    }
    return moved;
}

void synchronize_all()
{
    for (size_t i = streams.size(); i-- > 0;)
        if (streams[i]->device == device_of_thread())
            drain(streams[i]);
}

} // namespace cuemu

using namespace cuemu;

static cudaError_t usable(cudaStream_t s)
{
    if (device_error() != cudaSuccess)
        return failed(device_error());
    if (!stream_usable(s))
        return failed(cudaErrorInvalidResourceHandle);
    return cudaSuccess;
}

static cudaError_t usable(cudaEvent_t e)
{
    if (device_error() != cudaSuccess)
        return failed(device_error());
    if (!known(events, e))
        return failed(cudaErrorInvalidResourceHandle);
    return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize(void)
{
    if (device_error() == cudaSuccess)
        synchronize_all();
    return failed(device_error());
}

cudaError_t cudaStreamCreate(cudaStream_t *stream)
{
    return cudaStreamCreateWithFlags(stream, cudaStreamDefault);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
    if (device_error() != cudaSuccess)
        return failed(device_error());
    if (flags > cudaStreamNonBlocking)
        return failed(cudaErrorInvalidValue);
    null_stream(); /* has the device's lowest number */
    static bool more;
    *stream = create(device_of_thread(), flags != cudaStreamNonBlocking);
    (*stream)->first = !more;
    more = true;
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int)
{
    return cudaStreamCreateWithFlags(stream, flags);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    if (!stream || usable(stream) != cudaSuccess)
        return failed(cudaErrorInvalidResourceHandle);
    run_until(stream, stream->queued);
    stream->alive = false;
    return cudaSuccess;
}

/* A program that asks again and again gets there: every question runs one piece of work. */
cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    if (usable(stream) != cudaSuccess)
        return cudaPeekAtLastError();
    CUstream_st *s = resolve(stream);
    if (s->done < s->queued) {
        if (!step(s))
            progress();
        return failed(cudaErrorNotReady);
    }
    drain(s);
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    if (usable(stream) != cudaSuccess)
        return cudaPeekAtLastError();
    drain(resolve(stream));
    return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn, void *data)
{
    if (usable(stream) != cudaSuccess)
        return cudaPeekAtLastError();
    enqueue(stream, [=] { fn(data); });
    return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
    return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    if (device_error() != cudaSuccess)
        return failed(device_error());
    if (flags > (cudaEventBlockingSync | cudaEventDisableTiming))
        return failed(cudaErrorInvalidValue);
    *event = new CUevent_st{ device_of_thread(), !(flags & cudaEventDisableTiming), nullptr };
    events.push_back(*event);
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    if (usable(event) != cudaSuccess)
        return cudaPeekAtLastError();
    for (size_t i = 0; i < events.size(); i++)
        if (events[i] == event)
            events.erase(events.begin() + (long)i);
    delete event;
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    if (usable(event) != cudaSuccess || usable(stream) != cudaSuccess)
        return cudaPeekAtLastError();
    if (event->device != device_of_thread())
        return failed(cudaErrorInvalidResourceHandle);
    std::shared_ptr<record> r(new record{ resolve(stream), false, 0, 0 });
    event->last = r;
    enqueue(stream, [r] {
        r->done = true;
        r->ms = milliseconds();
        TSAN(__tsan_release(&r->reached);)
    });
    return cudaSuccess;
}

static bool reached(record &r)
{
    while (!r.done)
        if (!step(r.stream))
            return false;
    TSAN(__tsan_acquire(&r.reached);)
    return true;
}

/* An event that was never recorded is complete. */
cudaError_t cudaEventQuery(cudaEvent_t event)
{
    if (usable(event) != cudaSuccess)
        return cudaPeekAtLastError();
    if (event->last && !event->last->done) {
        if (!step(event->last->stream))
            progress();
        return failed(cudaErrorNotReady);
    }
    if (event->last)
        reached(*event->last);
    return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    if (usable(event) != cudaSuccess)
        return cudaPeekAtLastError();
    while (event->last && !reached(*event->last))
        stall();
    return cudaSuccess;
}

/* A wait is for the record that is the last one now. */
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned)
{
    if (usable(event) != cudaSuccess || usable(stream) != cudaSuccess)
        return cudaPeekAtLastError();
    std::shared_ptr<record> r = event->last;
    if (r)
        enqueue_wait(stream, [r] { return reached(*r); });
    return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end)
{
    if (usable(start) != cudaSuccess || usable(end) != cudaSuccess)
        return cudaPeekAtLastError();
    if (!start->last || !end->last || !start->timed || !end->timed)
        return failed(cudaErrorInvalidResourceHandle);
    if (!start->last->done || !end->last->done)
        return failed(cudaErrorNotReady);
    *ms = (float)(end->last->ms - start->last->ms);
    return cudaSuccess;
}
