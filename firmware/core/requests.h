/* What each request of the wire does; how requests arrive is the session's business. */
#ifndef TWIN_REQUESTS_H
#define TWIN_REQUESTS_H

#include <stdint.h>

#include "wire.h"

/* What the line knows of itself. */
struct conversation {
    uint32_t session;                  /* 0: none, text is spoken */
    uint32_t frames_good, frames_bad;  /* since start */
};

extern struct conversation conversation;

/* Carry a request out and write the payload of its answer. Returns the payload's bytes, or a
 * negative wire_error whose detail is `refusal_detail`. */
int32_t answer_request(const struct wire_header *header, const uint8_t *payload,
                       uint8_t answer_to[WIRE_PAYLOAD_MAX]);
uint32_t refusal_detail(void);

#endif
