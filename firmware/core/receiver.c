#include "receiver.h"

#include "port.h"

#define RING_BYTES 1024u  /* a power of two, more than a frame */

static volatile uint8_t ring[RING_BYTES];
static volatile uint32_t head, tail;  /* written by the port's side, by ours */

volatile uint32_t interrupts_seen;

void receive_byte(uint8_t byte)
{
    if (head - tail < RING_BYTES) {
        ring[head % RING_BYTES] = byte;
        head = head + 1;
    }
}

uint32_t byte_waits(void)
{
    port.poll();
    return head != tail;
}

int32_t take_byte(void)
{
    if (!byte_waits())
        return -1;
    const uint8_t byte = ring[tail % RING_BYTES];
    tail = tail + 1;
    return byte;
}
