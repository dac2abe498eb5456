#include "run.h"

#include <stddef.h>

#include "checksum.h"
#include "model.h"
#include "port.h"
#include "receiver.h"
#include "samples.h"

static struct wire_config plan = {.repeat_layer = 0xffff, .repeat = 1, .stop_layer = 0xffff};
static uint8_t event_places[WIRE_EVENTS_MAX];   /* of plan.event, in the COUNTERS list */
static uint32_t event_masks[WIRE_EVENTS_MAX];   /* values of narrow counters wrap */
static uint32_t warmed, made, mismatched, reference, latest;
static uint64_t ticks;

/* ---- counters ---- */

static const struct wire_counter own_counters[COUNTER_EVENTS - 1] = {
    {.id = WIRE_N_CHECKSUM, .clock = WIRE_C_EVENTS, .bits = 32, .name = "checksum"},
    {.id = WIRE_N_INTERRUPTS, .clock = WIRE_C_EVENTS, .bits = 32, .name = "interrupts"}};

uint32_t counter_total(void)
{
    const struct wire_counter *list;
    return COUNTER_EVENTS + port.events(&list);
}

struct wire_counter describe_counter(uint32_t place)
{
    if (place == COUNTER_CLOCK)
        return *port.counter();
    if (place < COUNTER_EVENTS)
        return own_counters[place - 1];
    const struct wire_counter *list;
    port.events(&list);
    return list[place - COUNTER_EVENTS];
}

/* The 64-bit time of a count not older than the last one extended. */
static uint64_t extend(uint32_t count)
{
    ticks += (uint32_t)(count - (uint32_t)ticks);
    return ticks;
}

uint64_t read_ticks(void)
{
    return extend(port.count());
}

/* What one reading of all configured counters gives. */
struct reading {
    uint32_t count;
    uint32_t events[WIRE_EVENTS_MAX];
    uint32_t interrupts;
};

static void open_reading(struct reading *reading)
{
    reading->interrupts = interrupts_seen;
    if (plan.events > 0)
        port.read(reading->events);
    reading->count = port.count();  /* last before, and first after, what is measured */
}

static void close_reading(struct reading *reading)
{
    reading->count = port.count();
    if (plan.events > 0)
        port.read(reading->events);
    reading->interrupts = interrupts_seen;
}

static void record(uint32_t run, uint32_t layer, uint32_t place, uint64_t value)
{
    const struct wire_sample sample = {
        .run = run, .layer = (uint16_t)layer, .counter = (uint8_t)place,
        .clock = place == COUNTER_CLOCK ? port.counter()->clock : (uint8_t)WIRE_C_EVENTS,
        .value = value};
    add_sample(&sample);
}

static void record_span(uint32_t run, uint32_t layer, const struct reading *from,
                        const struct reading *to, uint64_t span)
{
    record(run, layer, COUNTER_CLOCK, span);
    record(run, layer, COUNTER_INTERRUPTS, to->interrupts - from->interrupts);
    for (uint32_t i = 0; i < plan.events; i++)
        record(run, layer, event_places[i], (to->events[i] - from->events[i]) & event_masks[i]);
}

/* ---- configuration ---- */

static uint32_t count_samples(const struct wire_config *config)
{
    const uint32_t layers = config->stop_layer == 0xffff ? model.layer_count
                                                         : config->stop_layer + 1u;
    uint32_t samples = config->events + 3u;  /* clock, interrupts, checksum of the output */
    if (config->flags & WIRE_CONFIG_LAYERS)
        samples += layers * (config->events + 2u);
    if (config->flags & WIRE_CONFIG_VERIFY)
        samples += layers;
    return samples;
}

uint32_t samples_per_run(void)
{
    return count_samples(&plan);
}

/* Find the events of this pass; returns 0 when the port lacks one. */
static uint32_t find_events(const struct wire_config *config)
{
    const struct wire_counter *list;
    const uint32_t count = port.events(&list);
    for (uint32_t i = 0; i < config->events; i++) {
        uint32_t place = 0;
        while (place < count && list[place].id != config->event[i])
            place++;
        if (place == count)
            return 0;
        event_places[i] = (uint8_t)(place + COUNTER_EVENTS);
        const uint32_t bits = list[place].bits;
        event_masks[i] = bits < 32 ? (1u << bits) - 1u : 0xffffffffu;
    }
    return port.select(config->event, config->events);
}

uint32_t missing_features(const struct wire_config *config)
{
    uint32_t needed = 0;
    if (config->flags & WIRE_CONFIG_COLD)
        needed |= WIRE_F_COLD;
    if (config->flags & WIRE_CONFIG_MASK)
        needed |= WIRE_F_MASK;
    if (config->flags & (WIRE_CONFIG_MARK_RUN | WIRE_CONFIG_MARK_LAYER))
        needed |= WIRE_F_MARK;
    return needed & ~port.features();
}

static uint32_t refuse(const struct wire_config *config)
{
    if (config->repeat_layer != 0xffff && config->repeat_layer >= model.layer_count)
        return offsetof(struct wire_config, repeat_layer) + 1;
    if (config->repeat < 1)
        return offsetof(struct wire_config, repeat) + 1;
    if (config->stop_layer != 0xffff && config->stop_layer >= model.layer_count)
        return offsetof(struct wire_config, stop_layer) + 1;
    if (config->events > WIRE_EVENTS_MAX || config->events > port.events_at_once)
        return offsetof(struct wire_config, events) + 1;
    if (count_samples(config) > SAMPLE_CAPACITY - 1)
        return offsetof(struct wire_config, flags) + 1;
    return 0;
}

uint32_t configure_runs(const struct wire_config *config, uint64_t *setup_ticks)
{
    const uint32_t refused = refuse(config);
    if (refused)
        return refused;
    plan.events = 0;  /* nothing is selected should the port refuse */
    if (!find_events(config))
        return offsetof(struct wire_config, event) + 1;
    plan = *config;
    warmed = made = mismatched = 0;
    clear_samples();
    const uint64_t start = read_ticks();
    port.place_weights();
    *setup_ticks = read_ticks() - start;
    record(0, WIRE_L_SETUP, COUNTER_CLOCK, *setup_ticks);
    return 0;
}

uint32_t runs_made(void)
{
    return made;
}

uint32_t runs_mismatched(void)
{
    return mismatched;
}

uint32_t last_checksum(void)
{
    return latest;
}

/* ---- runs ---- */

static void load_input(void)
{
    __builtin_memcpy(model.arena + model.input_offset, model.input, model.input_bytes);
}

void infer_once(void)
{
    load_input();
    for (uint32_t i = 0; i < model.layer_count; i++)
        model.layers[i].run();
}

static void run_layer(uint32_t layer)
{
    const uint32_t times = layer == plan.repeat_layer ? plan.repeat : 1;
    for (uint32_t i = 0; i < times; i++)
        model.layers[layer].run();
}

static void run_measured_layer(uint32_t run, uint32_t layer, uint32_t keep)
{
    const uint32_t masked = plan.flags & WIRE_CONFIG_MASK;
    struct reading from, to;
    if (plan.flags & WIRE_CONFIG_MARK_LAYER)
        port.mark(-1);
    const uint32_t state = masked ? port.mask() : 0;
    open_reading(&from);
    run_layer(layer);
    close_reading(&to);
    if (masked)
        port.unmask(state);
    const uint64_t start = extend(from.count);
    const uint64_t span = extend(to.count) - start;
    if (keep && (plan.flags & WIRE_CONFIG_LAYERS))
        record_span(run, layer, &from, &to, span);
    if (keep && (plan.flags & WIRE_CONFIG_VERIFY)) {
        const struct model_layer *done = &model.layers[layer];
        record(run, layer, COUNTER_CHECKSUM,
               checksum(model.arena + done->output_offset, done->output_bytes));
    }
}

/* One run; `keep` is 0 for a warm-up. */
static void run_model(uint32_t run, uint32_t keep)
{
    const uint32_t layers = plan.stop_layer == 0xffff ? model.layer_count : plan.stop_layer + 1u;
    const uint32_t apart = plan.flags
                           & (WIRE_CONFIG_LAYERS | WIRE_CONFIG_VERIFY | WIRE_CONFIG_MARK_LAYER);
    struct reading from, to;
    load_input();
    if (plan.flags & WIRE_CONFIG_COLD)
        port.empty_caches();
    const uint32_t state = !apart && (plan.flags & WIRE_CONFIG_MASK) ? port.mask() : 0;
    open_reading(&from);
    const uint64_t start = extend(from.count);
    for (uint32_t layer = 0; layer < layers; layer++) {
        if (apart)
            run_measured_layer(run, layer, keep);
        else
            run_layer(layer);
    }
    close_reading(&to);
    const uint64_t span = extend(to.count) - start;
    if (!apart && (plan.flags & WIRE_CONFIG_MASK))
        port.unmask(state);
    if (plan.flags & WIRE_CONFIG_MARK_LAYER)
        port.mark(-1);
    const struct model_layer *last = &model.layers[layers - 1];
    latest = checksum(model.arena + last->output_offset, last->output_bytes);
    if (keep) {
        record_span(run, WIRE_L_INFERENCE, &from, &to, span);
        record(run, WIRE_L_INFERENCE, COUNTER_CHECKSUM, latest);
    }
}

uint32_t make_runs(uint32_t first_run, uint32_t runs)
{
    if (plan.flags & WIRE_CONFIG_MARK_RUN)
        port.mark(1);
    for (; warmed < plan.warmup && !byte_waits(); warmed++)
        run_model(0, 0);
    uint32_t done = 0;
    while (done < runs && free_samples() >= samples_per_run() && !byte_waits()) {
        run_model(first_run + done, 1);
        if (made == 0)
            reference = latest;
        mismatched += latest != reference;
        made++;
        done++;
    }
    if (plan.flags & WIRE_CONFIG_MARK_RUN)
        port.mark(0);
    return done;
}

void measure_overhead(uint32_t reads, struct wire_overhead_reply *reply)
{
    reply->reads = reads;
    reply->clock = port.counter()->clock;
    reply->least = 0xffffffffu;
    for (uint32_t i = 0; i < reads; i++) {
        struct reading from, to;
        open_reading(&from);
        close_reading(&to);
        const uint32_t span = to.count - from.count;
        reply->least = span < reply->least ? span : reply->least;
        reply->most = span > reply->most ? span : reply->most;
        reply->sum += span;
    }
}
