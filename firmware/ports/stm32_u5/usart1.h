/* What ST's boards with an STM32U5 share: USART1 on PA9 and PA10 goes to the ST-LINK; mark: PF13, D7
 * of the Arduino header. Registers: RM0456, with TrustZone off (as delivered). */
#define VARIANT_IN_QEMU 0
#define USART_BASE 0x40013800
#define UART_INTERRUPT 61
#define UART_HZ 160000000u
#define UART_FACTOR 1u
#define UART_FUNCTION 7
#define TX_PORT 0x42020000
#define TX_PIN 9
#define RX_PORT 0x42020000
#define RX_PIN 10
#define MARK_PORT 0x42021400
#define MARK_PIN 13
#define CPU_HZ 160000000u
#define UNIQUE_ID 0x0bfa0700
#define MONITOR_FEATURES WIRE_F_CACHE_MONITOR
#define PART_EVENTS_AT_ONCE WIRE_EVENTS_MAX
