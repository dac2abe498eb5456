/* The board's side of the conversation: frames in a session, text outside. */
#ifndef TWIN_SESSION_H
#define TWIN_SESSION_H

#include <stdint.h>

void handle_byte(uint8_t byte);

#endif
