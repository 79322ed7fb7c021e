/* fibers.cc - CUDA threads as fibers with guarded stacks. */
#include "machine.h"
#include <cstdlib>
#include <sys/mman.h>
#include <unistd.h>

#ifndef CUEMU_UCONTEXT
/* Saves what the System V ABI lets a callee keep; then the other side's are restored. */
extern "C" void cuemu_switch(void **save, void *load);
asm(".text\n"
    ".globl cuemu_switch\n"
    ".type cuemu_switch, @function\n"
    "cuemu_switch:\n"
    "    push %rbp\n    push %rbx\n    push %r12\n    push %r13\n    push %r14\n    push %r15\n"
    "    mov %rsp, (%rdi)\n"
    "    mov %rsi, %rsp\n"
    "    pop %r15\n    pop %r14\n    pop %r13\n    pop %r12\n    pop %rbx\n    pop %rbp\n"
    "    ret\n"
    ".size cuemu_switch, .-cuemu_switch\n"
    ".section .note.GNU-stack, \"\", @progbits\n"
    ".text\n");
#endif

namespace cuemu
{

context *current;
fiber *me;
block_state running;

namespace
{

constexpr size_t STACK = 128 << 10 ASAN(<< 1) TSAN(<< 1);

#ifdef CUEMU_UCONTEXT
ucontext_t scheduler_registers;
#else
void *scheduler_stack_pointer;
#endif
ASAN(void *scheduler_fake_stack; const void *scheduler_stack; size_t scheduler_stack_bytes;)
TSAN(void *scheduler_race; char grid_begin, grid_end;)

char *stack_create()
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *m =
        mmap(nullptr, STACK + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (m == MAP_FAILED || mprotect(m, page, PROT_NONE) != 0)
        stop("no memory for the stack of a thread");
    return static_cast<char *>(m) + page;
}

void entry()
{
    ASAN(__sanitizer_finish_switch_fiber(nullptr, &scheduler_stack, &scheduler_stack_bytes);)
    TSAN(__tsan_acquire(&grid_begin);)
    (*running.thread)();
    TSAN(__tsan_release(&grid_end);)
    if (me->copies)
        stop("a thread ends with asynchronous copies that it never waited for", me);
    me->st = state::done;
    running.present[me->c.warp] &= ~(1u << me->c.lane);
    fiber_yield();
    abort();
}

} // namespace

fiber *fiber_create()
{
    return new fiber();
}

void fiber_prepare(fiber *f, int seat)
{
    f->at = &f->seats[seat];
    if (!f->at->stack) {
        f->at->stack = stack_create();
        TSAN(f->at->race = __tsan_create_fiber(0);)
    }
    ASAN(__asan_unpoison_memory_region(f->at->stack, STACK);)
#ifdef CUEMU_UCONTEXT
    getcontext(&f->registers);
    f->registers.uc_stack.ss_sp = f->at->stack;
    f->registers.uc_stack.ss_size = STACK;
    f->registers.uc_link = nullptr;
    makecontext(&f->registers, entry, 0);
#else
    void **top = reinterpret_cast<void **>(f->at->stack + STACK);
    *--top = nullptr; /* a return address: the ABI's alignment at entry */
    *--top = reinterpret_cast<void *>(entry);
    for (int i = 0; i < 6; i++)
        *--top = nullptr;
    f->stack_pointer = top;
#endif
}

void fiber_run(fiber *f)
{
    me = f;
    current = &f->c;
    ASAN(__sanitizer_start_switch_fiber(&scheduler_fake_stack, f->at->stack, STACK);)
    TSAN(__tsan_switch_to_fiber(f->at->race, 1);)
#ifdef CUEMU_UCONTEXT
    swapcontext(&scheduler_registers, &f->registers);
#else
    cuemu_switch(&scheduler_stack_pointer, f->stack_pointer);
#endif
    ASAN(__sanitizer_finish_switch_fiber(scheduler_fake_stack, nullptr, nullptr);)
}

void fiber_yield()
{
    fiber *f = me;

    ASAN(__sanitizer_start_switch_fiber(f->st == state::done ? nullptr : &f->fake_stack,
                                        scheduler_stack, scheduler_stack_bytes);)
    TSAN(__tsan_switch_to_fiber(scheduler_race, 1);)
#ifdef CUEMU_UCONTEXT
    swapcontext(&f->registers, &scheduler_registers);
#else
    cuemu_switch(&f->stack_pointer, scheduler_stack_pointer);
#endif
    ASAN(__sanitizer_finish_switch_fiber(f->fake_stack, &scheduler_stack, &scheduler_stack_bytes);)
}

void scheduler_enter()
{
    TSAN(scheduler_race = __tsan_get_current_fiber();)
    TSAN(__tsan_release(&grid_begin);)
}

void scheduler_leave()
{
    me = nullptr;
    current = nullptr;
    TSAN(__tsan_acquire(&grid_end);)
}

} // namespace cuemu
