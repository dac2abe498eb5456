/* Nordic nRF5340 DK, application core, secure: UARTE0 on P0.20 and P0.22 goes to the debugger's serial
 * port; mark: P1.09, D7 of the Arduino header. The network core, which has the sensor of die temperature,
 * stays off. */
#define VARIANT_NAME "nrf5340dk"
#define CPU_HZ 128000000u
#define CLOCK_BASE 0x50005000u
#define UARTE_BASE 0x50008000u
#define UARTE_INTERRUPT 8
#define TX_PIN 20u
#define RX_PIN 22u
#define P0 0x50842500u
#define MARK_PORT 0x50842800u
#define MARK_PIN 9u
#define PIN_OUT 0x004u
#define PIN_OUTSET 0x008u
#define PIN_OUTCLR 0x00cu
#define PIN_DIRSET 0x018u
#define DEVICE_ID 0x00ff0204u
#define CACHE 0x50001000u
#define SWITCH_CACHE_ON() (REGISTER(CACHE + 0x50c) = 1u, REGISTER(CACHE + 0x500) = 1u)
#define EMPTY_CACHE() (REGISTER(CACHE + 0x504) = 1u)  /* INVALIDATE */
#define MONITORS 4u
#define MONITOR_BASE (CACHE + 0x400u)  /* PROFILING[0]: the flash */
