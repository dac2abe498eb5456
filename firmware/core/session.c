#include "session.h"

#include "checksum.h"
#include "frame.h"
#include "port.h"
#include "requests.h"
#include "text.h"

static uint8_t line[WIRE_FRAME_MAX];     /* bytes since the last delimiter */
static uint32_t line_count;
static uint32_t line_lost;               /* the line is longer than a frame may be */

static uint8_t body[WIRE_FRAME_MAX];     /* of the request: decoding never makes a line longer */
static uint8_t reply_body[WIRE_BODY_MAX];
static uint8_t reply_line[WIRE_FRAME_MAX];
static uint32_t reply_count;             /* of the stored reply, 0: none */
static uint16_t answered_sequence;
static uint32_t answered_checksum;
static uint16_t next_sequence;

static void send_stored(void)
{
    port.send(0);
    for (uint32_t i = 0; i < reply_count; i++)
        port.send(reply_line[i]);
    port.flush();
}

/* The payload stands in `reply_body` behind the header. */
static void send_reply(uint8_t type, uint16_t reply_to, uint32_t payload_bytes)
{
    const struct wire_header header = {.type = type, .flags = WIRE_REPLY,
                                       .sequence = next_sequence++, .reply_to = reply_to,
                                       .length = (uint16_t)payload_bytes};
    __builtin_memcpy(reply_body, &header, sizeof header);
    reply_count = encode_frame(reply_body, sizeof header + payload_bytes, reply_line);
    send_stored();
}

static void handle_request(const struct wire_header *header)
{
    uint8_t *const payload = reply_body + sizeof *header;
    const int32_t bytes = answer_request(header, body + sizeof *header, payload);
    if (header->type == WIRE_HELLO && bytes >= 0)
        forget_text_input();  /* a session writes over it */
    if (bytes >= 0) {
        send_reply(header->type, header->sequence, (uint32_t)bytes);
        return;
    }
    const struct wire_error_reply error = {
        .type = header->type, .code = (int16_t)bytes, .detail = refusal_detail()};
    __builtin_memcpy(payload, &error, sizeof error);
    send_reply(WIRE_ERROR, header->sequence, sizeof error);
}

static void handle_frame(void)
{
    const int32_t length = line_lost ? -1 : decode_frame(line, line_count, body);
    if (length < 0) {
        conversation.frames_bad++;
        return;
    }
    conversation.frames_good++;
    struct wire_header header;
    __builtin_memcpy(&header, body, sizeof header);
    if (header.flags & WIRE_REPLY)
        return;  /* a reply is not for us: an echo */
    const uint32_t crc = checksum(body, (uint32_t)sizeof header + (uint32_t)length);
    if (reply_count > 0 && header.sequence == answered_sequence && crc == answered_checksum) {
        send_stored();
        return;
    }
    handle_request(&header);
    answered_sequence = header.sequence;
    answered_checksum = crc;
}

/* Whether a byte can only be the end of an earlier command: COBS gives a frame that begins with it
 * a second byte of 0x80 or more. */
static uint32_t is_left_over(uint8_t byte)
{
    return byte == '%' || byte == '\r' || byte == '\n';
}

/* Where a text command begins in what stands on the line, or -1 (SPEC.md, Text mode). */
static int32_t find_text(void)
{
    uint32_t first = 0;
    while (first < line_count && is_left_over(line[first]))
        first++;
    for (uint32_t i = first; i < line_count; i++)
        if (line[i] < 0x20 || line[i] >= 0x7f)
            return -1;
    return conversation.session == 0 && line_count > 0 ? (int32_t)first : -1;
}

void handle_byte(uint8_t byte)
{
    const int32_t text = byte == '%' ? find_text() : -1;
    if (byte == 0) {
        if (line_count > 0)
            handle_frame();
        line_count = line_lost = 0;
    } else if (text >= 0) {
        handle_text((const char *)line + text, line_count - (uint32_t)text);
        line_count = line_lost = 0;
    } else if (line_count < sizeof line) {
        line[line_count++] = byte;
    } else {
        line_lost = 1;
    }
}
