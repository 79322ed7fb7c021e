/* The vector types, dim3 and their constructors; for C and C++. */
#ifndef CUEMU_VECTOR_TYPES_H
#define CUEMU_VECTOR_TYPES_H

#define CUEMU_VECTORS(T, name, align1, align2, align4)       \
    struct name##1                                           \
    {                                                        \
        T x;                                                 \
    }                                                        \
    __attribute__((aligned(align1)));                        \
    struct name##2                                           \
    {                                                        \
        T x, y;                                              \
    }                                                        \
    __attribute__((aligned(align2)));                        \
    struct name##3                                           \
    {                                                        \
        T x, y, z;                                           \
    };                                                       \
    struct name##4                                           \
    {                                                        \
        T x, y, z, w;                                        \
    }                                                        \
    __attribute__((aligned(align4)));                        \
    typedef struct name##1 name##1;                          \
    typedef struct name##2 name##2;                          \
    typedef struct name##3 name##3;                          \
    typedef struct name##4 name##4;                          \
    static inline name##2 make_##name##2(T x, T y)           \
    {                                                        \
        name##2 v;                                           \
        v.x = x, v.y = y;                                    \
        return v;                                            \
    }                                                        \
    static inline name##3 make_##name##3(T x, T y, T z)      \
    {                                                        \
        name##3 v;                                           \
        v.x = x, v.y = y, v.z = z;                           \
        return v;                                            \
    }                                                        \
    static inline name##4 make_##name##4(T x, T y, T z, T w) \
    {                                                        \
        name##4 v;                                           \
        v.x = x, v.y = y, v.z = z, v.w = w;                  \
        return v;                                            \
    }

CUEMU_VECTORS(signed char, char, 1, 2, 4)
CUEMU_VECTORS(unsigned char, uchar, 1, 2, 4)
CUEMU_VECTORS(short, short, 2, 4, 8)
CUEMU_VECTORS(unsigned short, ushort, 2, 4, 8)
CUEMU_VECTORS(int, int, 4, 8, 16)
CUEMU_VECTORS(unsigned, uint, 4, 8, 16)
CUEMU_VECTORS(float, float, 4, 8, 16)
CUEMU_VECTORS(long long, longlong, 8, 16, 16)
CUEMU_VECTORS(unsigned long long, ulonglong, 8, 16, 16)
CUEMU_VECTORS(double, double, 8, 16, 16)
#undef CUEMU_VECTORS

struct dim3 {
    unsigned x, y, z;
#ifdef __cplusplus
    constexpr dim3(unsigned nx = 1, unsigned ny = 1, unsigned nz = 1) : x(nx), y(ny), z(nz)
    {
    }
#endif
};
typedef struct dim3 dim3;
#endif
