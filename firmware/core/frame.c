#include "frame.h"

#include "checksum.h"

#define HEADER_BYTES ((uint32_t)sizeof(struct wire_header))

static uint32_t read_u32(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16
           | (uint32_t)bytes[3] << 24;
}

static uint32_t encode_cobs(const uint8_t *body, uint32_t count, uint8_t *line)
{
    uint32_t code_at = 0, at = 1;
    for (uint32_t i = 0; i < count; i++) {
        if (body[i] != 0)
            line[at++] = body[i];
        const uint32_t full = at - code_at == 255;
        if (body[i] == 0 || (full && i + 1 < count)) {
            line[code_at] = (uint8_t)(at - code_at);
            code_at = at++;
        }
    }
    line[code_at] = (uint8_t)(at - code_at);
    return at;
}

/* Returns the bytes decoded, or 0 when a block runs over the end. */
static uint32_t decode_cobs(const uint8_t *line, uint32_t count, uint8_t *body)
{
    uint32_t at = 0, written = 0;
    while (at < count) {
        const uint32_t code = line[at++];
        if (code == 0 || at + code - 1 > count)
            return 0;
        for (uint32_t i = 1; i < code; i++)
            body[written++] = line[at++];
        if (code < 255 && at < count)
            body[written++] = 0;
    }
    return written;
}

uint32_t encode_frame(uint8_t *body, uint32_t count, uint8_t line[WIRE_FRAME_MAX])
{
    const uint32_t crc = checksum(body, count);
    for (uint32_t i = 0; i < 4; i++)
        body[count + i] = (uint8_t)(crc >> 8 * i);
    const uint32_t coded = encode_cobs(body, count + 4, line);
    line[coded] = 0;
    return coded + 1;
}

int32_t decode_frame(const uint8_t *line, uint32_t count, uint8_t *body)
{
    const uint32_t bytes = decode_cobs(line, count, body);
    if (bytes < HEADER_BYTES + 4 || bytes > WIRE_BODY_MAX)
        return -1;
    const uint32_t length = (uint32_t)body[6] | (uint32_t)body[7] << 8;
    if (length != bytes - HEADER_BYTES - 4)
        return -1;
    return checksum(body, bytes - 4) == read_u32(body + bytes - 4) ? (int32_t)length : -1;
}
