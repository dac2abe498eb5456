/* The host as a board: stdin and stdout, or a pty (--pty prints its name on stderr). */
#define _DEFAULT_SOURCE
#define _XOPEN_SOURCE 600

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "port_nothing.h"

#define FLOOD_BYTES (64u << 20)  /* more than the last cache of most hosts */

static int in = STDIN_FILENO, out = STDOUT_FILENO;
static uint8_t sent[4096];
static uint32_t sent_count;

static uint32_t port_features(void)
{
    return WIRE_F_TIMER | WIRE_F_COLD;
}

static void port_flush(void)
{
    uint32_t at = 0;
    while (at < sent_count) {
        const ssize_t written = write(out, sent + at, sent_count - at);
        if (written < 0)
            exit(1);
        at += (uint32_t)written;
    }
    sent_count = 0;
}

static void port_send(uint8_t byte)
{
    if (sent_count == sizeof sent)
        port_flush();
    sent[sent_count++] = byte;
}

static void wait_for_bytes(int timeout_ms)
{
    struct pollfd waiting = {.fd = in, .events = POLLIN};
    uint8_t bytes[256];  /* the receiver's ring has room for four of these */
    if (poll(&waiting, 1, timeout_ms) <= 0)
        return;
    const ssize_t count = read(in, bytes, sizeof bytes);
    if (count <= 0 && in == STDIN_FILENO)
        exit(0);
    for (ssize_t i = 0; i < count; i++)
        receive_byte(bytes[i]);
}

static void port_poll(void)
{
    static uint32_t calls;
    /* The core asks once per byte it takes: a system call each time would be most of the work. */
    if (calls++ % 64u == 0)
        wait_for_bytes(0);
}

static void port_idle(void)
{
    port_flush();
    wait_for_bytes(-1);
}

static uint32_t port_count(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint32_t)((uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec);
}

static const struct wire_counter *port_counter(void)
{
    static const struct wire_counter counter = {
        .id = WIRE_N_TIMER, .clock = WIRE_C_TIMER, .bits = 32, .name = "monotonic clock"};
    return &counter;
}

static uint32_t port_counter_hz(void)
{
    return 1000000000u;
}

static void port_empty_caches(void)
{
    static volatile uint8_t flood[FLOOD_BYTES];
    for (uint32_t i = 0; i < FLOOD_BYTES; i += 64)
        flood[i] = (uint8_t)(flood[i] + 1);
}

static void port_unique_id(uint8_t id[16])
{
    gethostname((char *)id, 16);
}

#define PORT_NAME "host"
#define PORT_EVENTS_AT_ONCE 0
#define port_start do_nothing
#define port_cpu_hz no_number
#define port_events no_events
#define port_select select_nothing
#define port_read read_nothing
#define port_place_weights do_nothing
#define port_mask mask_nothing
#define port_unmask unmask_nothing
#define port_mark mark_nothing
#define port_environment no_environment
#define port_core_id no_number
#include "port_table.h"

int main(int count, char **arguments)
{
    if (count > 1 && strcmp(arguments[1], "--pty") == 0) {
        struct termios raw;
        in = out = posix_openpt(O_RDWR | O_NOCTTY);
        if (in < 0 || grantpt(in) < 0 || unlockpt(in) < 0 || tcgetattr(in, &raw) < 0)
            return 1;
        cfmakeraw(&raw);
        tcsetattr(in, TCSANOW, &raw);
        open(ptsname(in), O_RDWR | O_NOCTTY);  /* kept open: a host may come and go */
        fprintf(stderr, "%s\n", ptsname(in));
    }
    return run_firmware();
}
