/* What the emulation tells the sanitizers about its fibers and copies. Its own files are compiled
 * without them but with -DCUEMU_ASAN or -DCUEMU_TSAN, as the kernels are. */
#ifndef CUEMU_SANITIZE_H
#define CUEMU_SANITIZE_H
#include <cstddef>

#ifdef CUEMU_ASAN
extern "C" {
void __sanitizer_start_switch_fiber(void **fake_stack, const void *bottom, size_t bytes);
void __sanitizer_finish_switch_fiber(void *fake_stack, const void **bottom, size_t *bytes);
void __asan_poison_memory_region(const volatile void *p, size_t bytes);
void __asan_unpoison_memory_region(const volatile void *p, size_t bytes);
void *__asan_region_is_poisoned(void *p, size_t bytes);
}
#define ASAN(...) __VA_ARGS__
#else
#define ASAN(...)
#endif

#ifdef CUEMU_TSAN
extern "C" {
void *__tsan_get_current_fiber(void);
void *__tsan_create_fiber(unsigned flags);
void __tsan_switch_to_fiber(void *fiber, unsigned flags);
void __tsan_acquire(void *p);
void __tsan_release(void *p);
void __tsan_read_range(void *p, unsigned long bytes);
void __tsan_write_range(void *p, unsigned long bytes);
}
#define TSAN(...) __VA_ARGS__
#else
#define TSAN(...)
#endif

namespace cuemu
{

/* Copies and fills that no sanitizer intercepts. */
inline void raw_copy(void *to, const void *from, size_t bytes)
{
    char *t = static_cast<char *>(to);
    const char *f = static_cast<const char *>(from);

    for (; bytes >= 8; bytes -= 8, t += 8, f += 8) {
        unsigned long long v;
        __builtin_memcpy(&v, f, 8);
        __builtin_memcpy(t, &v, 8);
        asm volatile("" ::: "memory"); /* or the compiler makes memcpy of the loop */
    }
    for (; bytes; bytes--, t++, f++) {
        *t = *f;
        asm volatile("" ::: "memory");
    }
}

inline void raw_fill(void *to, int byte, size_t bytes)
{
    char *t = static_cast<char *>(to);
    unsigned long long v = 0x0101010101010101ull * (unsigned char)byte;

    for (; bytes >= 8; bytes -= 8, t += 8) {
        __builtin_memcpy(t, &v, 8);
        asm volatile("" ::: "memory");
    }
    for (; bytes; bytes--, t++) {
        *t = (char)byte;
        asm volatile("" ::: "memory");
    }
}

} // namespace cuemu
#endif
