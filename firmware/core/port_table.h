/* Included at the end of a port: gathers its functions. The port defines PORT_NAME, and either
 * PORT_EVENTS_AT_ONCE with port_events, port_select and port_read, or PORT_NO_EVENTS. */
#ifdef PORT_NO_EVENTS
#define PORT_EVENTS_AT_ONCE 0
static uint32_t port_events(const struct wire_counter **list)
{
    *list = 0;
    return 0;
}
static uint32_t port_select(const uint16_t *ids, uint32_t count)
{
    (void)ids;
    return count == 0;
}
static void port_read(uint32_t *values)
{
    (void)values;
}
#endif

const struct port port = {
    .name = PORT_NAME,
    .start = port_start,
    .features = port_features,
    .cpu_hz = port_cpu_hz,
    .poll = port_poll,
    .idle = port_idle,
    .send = port_send,
    .flush = port_flush,
    .count = port_count,
    .counter = port_counter,
    .counter_hz = port_counter_hz,
    .events = port_events,
    .events_at_once = PORT_EVENTS_AT_ONCE,
    .select = port_select,
    .read = port_read,
    .place_weights = port_place_weights,
    .empty_caches = port_empty_caches,
    .mask = port_mask,
    .unmask = port_unmask,
    .mark = port_mark,
    .environment = port_environment,
    .unique_id = port_unique_id,
    .core_id = port_core_id,
};
