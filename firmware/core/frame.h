/* Frames: COBS coding, checksum, and their check on arrival. */
#ifndef TWIN_FRAME_H
#define TWIN_FRAME_H

#include <stdint.h>

#include "wire.h"

/* Encode a body of at most WIRE_BODY_MAX - 4 bytes, header included: its checksum is appended to
 * `body`, which must have room. Returns the bytes written to `line`, the delimiter included. */
uint32_t encode_frame(uint8_t *body, uint32_t count, uint8_t line[WIRE_FRAME_MAX]);

/* Decode a line without its delimiter into `body` (room for `count` bytes). Returns the payload's
 * length, or -1 when the line is no valid frame. */
int32_t decode_frame(const uint8_t *line, uint32_t count, uint8_t *body);

#endif
