/* What compilers call even in freestanding code. */
#include <stddef.h>
#include <stdint.h>

void *memcpy(void *restrict to, const void *restrict from, size_t count);
void *memmove(void *to, const void *from, size_t count);
void *memset(void *to, int value, size_t count);
int memcmp(const void *left, const void *right, size_t count);

void *memcpy(void *restrict to, const void *restrict from, size_t count)
{
    uint8_t *target = to;
    const uint8_t *source = from;
    if ((((uintptr_t)target | (uintptr_t)source) & 3u) == 0) {
        for (; count >= 4; count -= 4, target += 4, source += 4)
            *(uint32_t *)(void *)target = *(const uint32_t *)(const void *)source;
    }
    while (count-- > 0)
        *target++ = *source++;
    return to;
}

void *memmove(void *to, const void *from, size_t count)
{
    uint8_t *target = to;
    const uint8_t *source = from;
    if ((uintptr_t)target - (uintptr_t)source >= count)
        return memcpy(to, from, count);
    while (count-- > 0)
        target[count] = source[count];
    return to;
}

void *memset(void *to, int value, size_t count)
{
    uint8_t *target = to;
    while (count-- > 0)
        *target++ = (uint8_t)value;
    return to;
}

int memcmp(const void *left, const void *right, size_t count)
{
    const uint8_t *a = left, *b = right;
    for (; count > 0; count--, a++, b++)
        if (*a != *b)
            return *a - *b;
    return 0;
}

#if defined(__clang__) && defined(__arm__)
/* Names of the Arm run-time ABI (IHI 0043), which clang calls. */
void __aeabi_memcpy(void *to, const void *from, size_t count);
void __aeabi_memcpy4(void *to, const void *from, size_t count);
void __aeabi_memcpy8(void *to, const void *from, size_t count);
void __aeabi_memclr(void *to, size_t count);
void __aeabi_memclr4(void *to, size_t count);
void __aeabi_memclr8(void *to, size_t count);

void __aeabi_memcpy(void *to, const void *from, size_t count)
{
    memcpy(to, from, count);
}

void __aeabi_memcpy4(void *to, const void *from, size_t count)
{
    memcpy(to, from, count);
}

void __aeabi_memcpy8(void *to, const void *from, size_t count)
{
    memcpy(to, from, count);
}

void __aeabi_memclr(void *to, size_t count)
{
    memset(to, 0, count);
}

void __aeabi_memclr4(void *to, size_t count)
{
    memset(to, 0, count);
}

void __aeabi_memclr8(void *to, size_t count)
{
    memset(to, 0, count);
}
#endif
