/* ST STM32H747I-DISCO (UM2411): USART1 on PA9 and PA10 goes to the ST-LINK; mark: PJ0, D7 of the
 * Arduino header. 400 MHz of its Cortex-M7: with the SMPS the board is wired for, VOS1 is the
 * highest. */
#define VARIANT_NAME "stm32h747i_disco"
#define VARIANT_IN_QEMU 0
#define USART_BASE 0x40011000
#define UART_INTERRUPT 37
#define UART_HZ 100000000u
#define UART_FACTOR 1u
#define UART_FUNCTION 7
#define UART_ENR 0x580244f0u  /* APB2ENR */
#define UART_EN (1u << 4)
#define TX_PORT 0x58020000
#define TX_PIN 9
#define RX_PORT 0x58020000
#define RX_PIN 10
#define MARK_PORT 0x58022400
#define MARK_PIN 0
#define PIN_BLOCKS (1u | 1u << 9)
#define CPU_HZ 400000000u
#define FAST() 1
#define PLL_N 400u
#define PLL_N_SLOW PLL_N
#define PLL_P 2u
#define BUS_DIVIDER 8u
#define FLASH_WAITS 2u
#define SUPPLY_MASK 0x3fu
#define SUPPLY 4u             /* SMPS */
#define VOS 3u                /* scale 1 */
#define UNIQUE_ID 0x1ff1e800
#define MONITOR_FEATURES 0
#define PART_EVENTS_AT_ONCE CORE_EVENTS_AT_ONCE
uint32_t find_cpu_hz(void);
