/* ST NUCLEO-H723ZG (UM2407): USART3 on PD8 and PD9 goes to the ST-LINK; mark: PG12, D7 of the Arduino
 * header. 550 MHz where the option CPUFREQ_BOOST is set, else 520 MHz; LDO, VOS0. */
#define VARIANT_NAME "nucleo_h723zg"
#define VARIANT_IN_QEMU 0
#define USART_BASE 0x40004800
#define UART_INTERRUPT 39
#define UART_HZ (find_cpu_hz() / 4u)
#define UART_FACTOR 1u
#define UART_FUNCTION 7
#define UART_ENR 0x580244e8u  /* APB1LENR */
#define UART_EN (1u << 18)
#define TX_PORT 0x58020c00
#define TX_PIN 8
#define RX_PORT 0x58020c00
#define RX_PIN 9
#define MARK_PORT 0x58021800
#define MARK_PIN 12
#define PIN_BLOCKS (1u << 3 | 1u << 6)
#define CPU_HZ find_cpu_hz()
#define FAST() (REGISTER(0x52002070) & 4u)  /* FLASH_OPTSR2_CUR */
#define PLL_N 275u
#define PLL_N_SLOW 260u
#define PLL_P 1u
#define BUS_DIVIDER 8u        /* half of the core's clock */
#define FLASH_WAITS 3u
#define SUPPLY_MASK 7u
#define SUPPLY 2u             /* LDO */
#define VOS 0u                /* scale 0 */
#define UNIQUE_ID 0x1ff1e800
#define MONITOR_FEATURES 0
#define PART_EVENTS_AT_ONCE CORE_EVENTS_AT_ONCE
uint32_t find_cpu_hz(void);
