/* MPS2 with the AN505 image: Cortex-M33 in an SSE-200 (Arm DAI 0505); secure aliases. */
#define VARIANT_NAME "mps2-an505"
#define UART_BASE 0x50200000
#define TIMER_BASE 0x50000000
#define UART_RX_INTERRUPT 32
#define CPU_HZ 20000000u
#define PERIPHERAL_HZ 20000000u
#define TIMER_HZ 20000000u
