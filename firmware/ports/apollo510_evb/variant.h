/* Ambiq Apollo510 EVB: its J-Link passes bytes by memory (RTT). */
#define VARIANT_NAME "apollo510_evb"
#define VARIANT_FEATURES 0
