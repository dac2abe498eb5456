/* ST STM32N6570-DK: the Cortex-M55 beside the NPU, secure as the boot ROM leaves it. USART1 on PE5 and PE6
 * goes to the ST-LINK; mark: PD6, D7 of the Arduino header. 800 MHz at the overdrive voltage; a board
 * before revision C sets that over I2C, which this does not: build it with -DCORE_600. */
#define VARIANT_NAME "stm32n6570_dk"
#define VARIANT_IN_QEMU 0
#define USART_BASE 0x52001000
#define UART_INTERRUPT 159
#define UART_HZ 64000000u     /* the HSI, whatever the buses run at */
#define UART_FACTOR 1u
#define UART_FUNCTION 7
#define TX_PORT 0x56021000
#define TX_PIN 5
#define RX_PORT 0x56021000
#define RX_PIN 6
#define MARK_PORT 0x56020c00
#define MARK_PIN 6
#ifdef CORE_600
#define CPU_HZ 600000000u
#else
#define CPU_HZ 800000000u
#endif
#define UNIQUE_ID 0x56009014
#define MONITOR_FEATURES 0
#define PART_EVENTS_AT_ONCE CORE_EVENTS_AT_ONCE
