/* ST NUCLEO-L4R5ZI (UM2179): LPUART1 on PG7 and PG8 goes to the ST-LINK; mark: PF13, D7 of the
 * Arduino header. Registers: RM0432. */
#define VARIANT_NAME "nucleo_l4r5zi"
#define VARIANT_IN_QEMU 0
#define USART_BASE 0x40008000
#define UART_INTERRUPT 70
#define UART_HZ 120000000u
#define UART_FACTOR 256ull  /* a low-power UART divides by BRR / 256 */
#define UART_FUNCTION 8
#define TX_PORT 0x48001800
#define TX_PIN 7
#define RX_PORT 0x48001800
#define RX_PIN 8
#define MARK_PORT 0x48001400
#define MARK_PIN 13
#define CPU_HZ 120000000u
#define FLASH_ACR 0x40022000
#define UNIQUE_ID 0x1fff7590
#define MONITOR_FEATURES 0
#define PART_EVENTS_AT_ONCE CORE_EVENTS_AT_ONCE
