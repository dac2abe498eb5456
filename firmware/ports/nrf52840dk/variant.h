/* Nordic nRF52840 DK: UARTE0 on P0.06 and P0.08 goes to the debugger's serial port; mark: P1.08, D7 of
 * the Arduino header. The cache serves code only. */
#define VARIANT_NAME "nrf52840dk"
#define CPU_HZ 64000000u
#define CLOCK_BASE 0x40000000u
#define UARTE_BASE 0x40002000u
#define UARTE_INTERRUPT 2
#define TX_PIN 6u
#define RX_PIN 8u
#define P0 0x50000000u
#define MARK_PORT 0x50000300u
#define MARK_PIN 8u
#define PIN_OUT 0x504u
#define PIN_OUTSET 0x508u
#define PIN_OUTCLR 0x50cu
#define PIN_DIRSET 0x518u
#define DEVICE_ID 0x10000060u
#define TEMP_BASE 0x4000c000u
#define ICACHECNF REGISTER(0x4001e540)
#define SWITCH_CACHE_ON() (ICACHECNF = 1u | 1u << 8)  /* with profiling */
#define EMPTY_CACHE() (ICACHECNF = 1u << 8, SWITCH_CACHE_ON())  /* off: entries are invalid */
#define MONITORS 2u
#define MONITOR_BASE 0x4001e548u
