/* Raspberry Pi Pico 2, one of its Cortex-M33. Registers: ports/REGISTERS.md. */
#define VARIANT_NAME "rpi_pico2"
#define CPU_HZ 150000000u
#define POST_DIVIDER 5u
#define RESETS 0x40020000u
#define RESET_BITS (1u << 6 | 1u << 9 | 1u << 26)
#define PLL_RESET (1u << 14)
#define PLL 0x40050000u
#define CLOCKS 0x40010000u
#define XOSC 0x40048000u
#define UART 0x40070000u
#define UART_INTERRUPT 33
#define IO_BANK0 0x40028000u
#define PADS_BANK0 0x40038000u
#define SIO_SET 0xd0000018u
#define SIO_CLEAR 0xd0000020u
#define SIO_XOR 0xd0000028u
#define SIO_OE_SET 0xd0000038u
#define XIP 0x400c8000u
