/* What a library of loops has beside them. LOOPS: checksum of the sources, then a signature a line. */
#include <stddef.h>

#ifdef _WIN32
#define EXPORT /* Where nothing is named, everything is exported. */
#define HIDDEN
int DllMainCRTStartup(void *library, unsigned reason, void *reserved) { return 1; }
#else
#define EXPORT __attribute__((visibility("default")))
#define HIDDEN __attribute__((visibility("hidden")))
#endif

EXPORT const char *const twin_loops = LOOPS;

/* Compilers call these two by name. */
HIDDEN void *memset(void *to, int value, size_t count) {
    for (size_t place = 0; place < count; place++) ((unsigned char *)to)[place] = (unsigned char)value;
    return to;
}

HIDDEN void *memcpy(void *restrict to, const void *restrict from, size_t count) {
    for (size_t place = 0; place < count; place++)
        ((unsigned char *)to)[place] = ((const unsigned char *)from)[place];
    return to;
}

#ifdef __x86_64__
#include <cpuid.h>
#endif

/* 3 where processor and system have all of x86-64-v3, else 0. */
EXPORT int twin_level(void) {
#ifdef __x86_64__
    unsigned a, b, c, d, low, high;
    const unsigned first = 1u << 0 | 1u << 9 | 1u << 12 | 1u << 13 | 1u << 19 | 1u << 20 | 1u << 22
        | 1u << 23 | 1u << 27 | 1u << 28 | 1u << 29; /* SSE3 to SSE4.2, FMA, MOVBE, AVX, F16C */
    const unsigned second = 1u << 3 | 1u << 5 | 1u << 8; /* BMI1, AVX2, BMI2 */
    if (!__get_cpuid(1, &a, &b, &c, &d) || (c & first) != first) return 0;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (b & second) != second) return 0;
    if (!__get_cpuid(0x80000001u, &a, &b, &c, &d) || !(c & 1u << 5)) return 0; /* LZCNT */
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    if ((low & 0x6) != 0x6) return 0;
    return 3;
#else
    return 0;
#endif
}
