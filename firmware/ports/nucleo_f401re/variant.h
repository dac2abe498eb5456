/* ST NUCLEO-F401RE (UM1724): USART2 on PA2 and PA3 goes to the ST-LINK; mark: PA8, D7 of the Arduino
 * header. Registers: RM0368. */
#define VARIANT_NAME "nucleo_f401re"
#define VARIANT_IN_QEMU 0
#define USART_V1
#define USART_BASE 0x40004400
#define UART_INTERRUPT 38
#define UART_HZ 42000000u
#define UART_FACTOR 1u
#define UART_FUNCTION 7
#define TX_PORT 0x40020000
#define TX_PIN 2
#define RX_PORT 0x40020000
#define RX_PIN 3
#define MARK_PORT 0x40020000
#define MARK_PIN 8
#define CPU_HZ 84000000u
#define FLASH_ACR 0x40023c00
#define UNIQUE_ID 0x1fff7a10
#define MONITOR_FEATURES 0
#define PART_EVENTS_AT_ONCE CORE_EVENTS_AT_ONCE
