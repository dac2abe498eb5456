/* Raspberry Pi Pico. Registers: RP2040 datasheet, sections named beside them. */
#define VARIANT_NAME "rpi_pico"
#define CPU_HZ 125000000u
#define POST_DIVIDER 6u
#define RESETS 0x4000c000u      /* 2.14 */
#define RESET_BITS (1u << 5 | 1u << 8 | 1u << 22)
#define PLL_RESET (1u << 12)
#define PLL 0x40028000u         /* 2.18 */
#define CLOCKS 0x40008000u      /* 2.15 */
#define XOSC 0x40024000u        /* 2.16 */
#define UART 0x40034000u        /* 4.2 */
#define UART_INTERRUPT 20
#define IO_BANK0 0x40014000u    /* 2.19 */
#define SIO_SET 0xd0000014u     /* 2.3.1 */
#define SIO_CLEAR 0xd0000018u
#define SIO_XOR 0xd000001cu
#define SIO_OE_SET 0xd0000024u
#define XIP 0x14000000u         /* 2.6.3 */
