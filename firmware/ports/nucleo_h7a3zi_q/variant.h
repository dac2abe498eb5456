/* ST NUCLEO-H7A3ZI-Q (UM2408): USART3 on PD8 and PD9 goes to the ST-LINK; mark: PG12, D7 of the
 * Arduino header. 280 MHz, SMPS, VOS0. */
#define VARIANT_NAME "nucleo_h7a3zi_q"
#define VARIANT_IN_QEMU 0
#define USART_BASE 0x40004800
#define UART_INTERRUPT 39
#define UART_HZ 140000000u
#define UART_FACTOR 1u
#define UART_FUNCTION 7
#define AHB4ENR_PLACE 0x140
#define UART_ENR 0x58024548u  /* APB1LENR */
#define UART_EN (1u << 18)
#define TX_PORT 0x58020c00
#define TX_PIN 8
#define RX_PORT 0x58020c00
#define RX_PIN 9
#define MARK_PORT 0x58021800
#define MARK_PIN 12
#define PIN_BLOCKS (1u << 3 | 1u << 6)
#define CPU_HZ 280000000u
#define FAST() 1
#define PLL_N 280u
#define PLL_N_SLOW PLL_N
#define PLL_P 2u
#define BUS_DIVIDER 0u
#define FLASH_WAITS 6u
#define SUPPLY_MASK 0x3fu
#define SUPPLY 4u             /* SMPS */
#define VOS 3u                /* scale 0 */
#define UNIQUE_ID 0x08fff800
#define MONITOR_FEATURES 0
#define PART_EVENTS_AT_ONCE CORE_EVENTS_AT_ONCE
uint32_t find_cpu_hz(void);
