/* Renesas EK-RA6M4: its J-Link passes bytes by memory (RTT); it has no serial port of the board's. */
#define VARIANT_NAME "ek_ra6m4"
#define VARIANT_FEATURES WIRE_F_COLD
