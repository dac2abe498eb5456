/* MPS3 with the AN547 image: Cortex-M55 in an SSE-300 (Arm DAI 0547); secure aliases. */
#define VARIANT_NAME "mps3-an547"
#define UART_BASE 0x59303000
#define SYSTEM_COUNTER_BASE 0x58100000
#define UART_RX_INTERRUPT 33
#define CPU_HZ 32000000u
#define TIMER_HZ 32000000u
#define PERIPHERAL_HZ 25000000u
