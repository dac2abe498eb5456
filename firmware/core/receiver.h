/* Bytes from the line: a ring buffer filled by the port, emptied by the session. */
#ifndef TWIN_RECEIVER_H
#define TWIN_RECEIVER_H

#include <stdint.h>

uint32_t byte_waits(void);      /* polls the port */
int32_t take_byte(void);        /* -1: none */

#endif
