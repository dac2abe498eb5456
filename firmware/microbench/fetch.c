#include "probes.h"

/* A slide of two-byte (x86: one-byte) instructions that do nothing, entered so that `extent` bytes
 * of it run. Its end is aligned: entries at powers of two begin on lines of any cache. */
#if defined(__arm__)
#define RETURN "bx lr"
#define ENTRY_BIT 1u  /* Thumb */
#define NOP_BYTES "2"
#elif defined(__riscv)
#define RETURN "ret"
#define ENTRY_BIT 0u
#define NOP_BYTES "2"
#else
#define RETURN "ret"
#define ENTRY_BIT 0u
#define NOP_BYTES "1"
#endif
#define TEXT_OF(number) #number
#define TEXT(number) TEXT_OF(number)

__asm__(".pushsection .text.probe_slide, \"ax\"\n"
        ".balign 4096\n"
        ".rept " TEXT(SLED_BYTES) " / " NOP_BYTES "\n"
        "nop\n"
        ".endr\n"
        ".globl probe_slide_end\n"
        "probe_slide_end:\n"
        RETURN "\n"
        ".popsection\n");

extern const uint8_t probe_slide_end[];

void fetch_code(uint32_t extent, uint32_t laps)
{
    const uintptr_t entry = ((uintptr_t)probe_slide_end - extent) | ENTRY_BIT;
    void (*const slide)(void) = (void (*)(void))entry;
    for (; laps > 0; laps--)
        slide();
}
