/* The twin's firmware as a Zephyr module. */
#ifndef TWIN_ZEPHYR_H
#define TWIN_ZEPHYR_H

/* Answers the host over the UART chosen as zephyr,console, for ever. */
void twin_zephyr_run(void);

#endif
