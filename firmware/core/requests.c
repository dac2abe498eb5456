#include "requests.h"

#include <stddef.h>

#include "checksum.h"
#include "model.h"
#include "port.h"
#include "run.h"
#include "samples.h"

#define FEATURES (port.features() | WIRE_F_TEXT)
#define SPIN_MOST_US 10000000u
#define OVERHEAD_MOST 10000u

struct conversation conversation;

static uint32_t loaded;    /* bytes of the input, from its start */
static uint32_t detail;    /* of the last refusal */
static uint8_t *target;    /* where the answer's payload goes */

/* Each request takes the payload and its length, writes its answer's payload and returns the bytes
 * of it, or a negative wire_error with `detail` set. */

uint32_t refusal_detail(void)
{
    return detail;
}

static int32_t fail(int32_t error, uint32_t what)
{
    detail = what;
    return error;
}

static int32_t reply_with(const void *payload, uint32_t bytes)
{
    __builtin_memcpy(target, payload, bytes);
    return (int32_t)bytes;
}

static void copy_text(char *to, const char *from, uint32_t room)
{
    for (uint32_t i = 0; i + 1 < room && from[i] != 0; i++)
        to[i] = from[i];
}

static int32_t answer_hello(const uint8_t *payload)
{
    struct wire_hello request;
    __builtin_memcpy(&request, payload, sizeof request);
    if (request.oldest > WIRE_VERSION || request.version < WIRE_VERSION_OLDEST)
        return fail(WIRE_E_VERSION, WIRE_VERSION);
    if (request.session == 0)
        return fail(WIRE_E_ARGUMENT, offsetof(struct wire_hello, session));
    const uint32_t resumed = request.session == conversation.session;
    if (!resumed) {
        loaded = 0;
        clear_samples();
    }
    conversation.session = request.session;
    const struct wire_hello_reply reply = {
        .version = WIRE_VERSION, .oldest = WIRE_VERSION_OLDEST, .features = FEATURES,
        .session = request.session, .resumed = resumed};
    return reply_with(&reply, sizeof reply);
}

static int32_t answer_identify(void)
{
    struct wire_identify_reply reply = {
        .core_id = port.core_id(), .cpu_hz = port.cpu_hz(), .features = FEATURES,
        .timer_hz = port.counter()->clock == WIRE_C_TIMER ? port.counter_hz() : 0,
        .input_bytes = model.input_bytes, .output_bytes = model.output_bytes,
        .arena_bytes = model.arena_bytes, .weights_bytes = model.weights_bytes,
        .sample_capacity = SAMPLE_CAPACITY, .layers = (uint16_t)model.layer_count,
        .counters = (uint16_t)counter_total(), .counters_at_once = (uint16_t)port.events_at_once,
        .text_model = (uint16_t)model.text_model};
    port.unique_id(reply.unique_id);
    __builtin_memcpy(reply.model_sha256, model.sha256, sizeof reply.model_sha256);
    __builtin_memcpy(reply.build_sha256, model.build_sha256, sizeof reply.build_sha256);
    copy_text(reply.port, port.name, sizeof reply.port);
    copy_text(reply.model, model.name, sizeof reply.model);
    copy_text(reply.compiler, model.compiler, sizeof reply.compiler);
    return reply_with(&reply, sizeof reply);
}

static int32_t answer_counters(const uint8_t *payload)
{
    struct wire_counters request;
    __builtin_memcpy(&request, payload, sizeof request);
    const uint32_t most = (WIRE_PAYLOAD_MAX - sizeof(struct wire_counters_reply))
                          / sizeof(struct wire_counter);
    struct wire_counters_reply reply = {.first = request.first, .count = 0};
    uint8_t *to = target + sizeof reply;
    while (reply.count < most && request.first + reply.count < counter_total()) {
        const struct wire_counter counter = describe_counter(request.first + reply.count++);
        __builtin_memcpy(to, &counter, sizeof counter);
        to += sizeof counter;
    }
    return reply_with(&reply, sizeof reply) + (int32_t)(reply.count * sizeof(struct wire_counter));
}

static int32_t answer_layer(const uint8_t *payload)
{
    struct wire_layer request;
    __builtin_memcpy(&request, payload, sizeof request);
    if (request.index >= model.layer_count)
        return fail(WIRE_E_ARGUMENT, offsetof(struct wire_layer, index));
    const struct model_layer *layer = &model.layers[request.index];
    struct wire_layer_reply reply = {
        .index = request.index, .model_layer = (uint16_t)layer->index,
        .output_offset = layer->output_offset, .output_bytes = layer->output_bytes};
    copy_text(reply.name, layer->name, sizeof reply.name);
    return reply_with(&reply, sizeof reply);
}

static int32_t answer_load(const uint8_t *payload, uint32_t length)
{
    struct wire_load request;
    __builtin_memcpy(&request, payload, sizeof request);
    const uint32_t bytes = length - (uint32_t)sizeof request;
    if (bytes > 0) {
        if (request.offset > loaded)
            return fail(WIRE_E_OFFSET, loaded);
        if (request.offset + bytes > model.input_bytes || request.offset + bytes < bytes)
            return fail(WIRE_E_ARGUMENT, offsetof(struct wire_load, offset));
        __builtin_memcpy(model.input + request.offset, payload + sizeof request, bytes);
        const uint32_t end = request.offset + bytes;
        loaded = request.offset == 0 || end > loaded ? end : loaded;
    }
    const struct wire_load_reply reply = {
        .next = loaded,
        .checksum = loaded == model.input_bytes ? checksum(model.input, loaded) : 0};
    return reply_with(&reply, sizeof reply);
}

static int32_t answer_config(const uint8_t *payload)
{
    struct wire_config request;
    __builtin_memcpy(&request, payload, sizeof request);
    const uint32_t missing = missing_features(&request);
    if (missing)
        return fail(WIRE_E_UNSUPPORTED, missing);
    struct wire_config_reply reply = {.setup_clock = port.counter()->clock};
    const uint32_t refused = configure_runs(&request, &reply.setup_cycles);
    if (refused)
        return fail(WIRE_E_ARGUMENT, refused - 1);
    reply.samples_per_run = samples_per_run();
    return reply_with(&reply, sizeof reply);
}

static int32_t answer_run(const uint8_t *payload)
{
    struct wire_run request;
    __builtin_memcpy(&request, payload, sizeof request);
    if (loaded != model.input_bytes)
        return fail(WIRE_E_INPUT, loaded);
    if (request.runs == 0)
        return fail(WIRE_E_ARGUMENT, offsetof(struct wire_run, runs));
    struct wire_run_reply reply = {.first_run = request.first_run};
    reply.done = make_runs(request.first_run, request.runs);
    if (model.failure != NULL && *model.failure != 0)
        return fail(WIRE_E_INTERNAL, *model.failure);
    reply.samples_next = next_sample();
    reply.checksum = last_checksum();
    reply.mismatches = runs_mismatched();
    return reply_with(&reply, sizeof reply);
}

static int32_t answer_samples(const uint8_t *payload)
{
    struct wire_samples request;
    __builtin_memcpy(&request, payload, sizeof request);
    if (request.first < first_sample() || request.first > next_sample())
        return fail(WIRE_E_OFFSET, first_sample());
    forget_samples(request.first);
    struct wire_samples_reply reply = {.first = request.first, .next = next_sample()};
    uint8_t *to = target + sizeof reply;
    while (reply.count < WIRE_SAMPLES_MAX && request.first + reply.count < next_sample()) {
        __builtin_memcpy(to, sample_at(request.first + reply.count++), sizeof(struct wire_sample));
        to += sizeof(struct wire_sample);
    }
    return reply_with(&reply, sizeof reply) + (int32_t)(reply.count * sizeof(struct wire_sample));
}

static int32_t answer_checksum(void)
{
    const struct wire_checksum_reply reply = {
        .input = checksum(model.input, model.input_bytes), .output = last_checksum(),
        .weights = checksum(model.weights, model.weights_bytes), .mismatches = runs_mismatched()};
    return reply_with(&reply, sizeof reply);
}

static int32_t answer_overhead(const uint8_t *payload)
{
    struct wire_overhead request;
    __builtin_memcpy(&request, payload, sizeof request);
    if (request.reads == 0 || request.reads > OVERHEAD_MOST)
        return fail(WIRE_E_ARGUMENT, offsetof(struct wire_overhead, reads));
    struct wire_overhead_reply reply = {.reads = 0};
    measure_overhead(request.reads, &reply);
    return reply_with(&reply, sizeof reply);
}

static int32_t answer_status(void)
{
    const struct wire_status_reply reply = {
        .session = conversation.session, .loaded_bytes = loaded, .runs = runs_made(),
        .samples_first = first_sample(), .samples_next = next_sample(),
        .frames_good = conversation.frames_good, .frames_bad = conversation.frames_bad,
        .text = conversation.session == 0};
    return reply_with(&reply, sizeof reply);
}

static int32_t answer_read(const uint8_t *payload)
{
    struct wire_read request;
    __builtin_memcpy(&request, payload, sizeof request);
    const uint8_t *from;
    uint32_t room;
    if (request.space == WIRE_S_INPUT) {
        from = model.input;
        room = model.input_bytes;
    } else if (request.space == WIRE_S_OUTPUT) {
        from = model.arena + model.output_offset;
        room = model.output_bytes;
    } else if (request.space == WIRE_S_ARENA) {
        from = model.arena;
        room = model.arena_bytes;
    } else {
        return fail(WIRE_E_ARGUMENT, offsetof(struct wire_read, space));
    }
    if (request.offset > room)
        return fail(WIRE_E_ARGUMENT, offsetof(struct wire_read, offset));
    if (request.length > room - request.offset
        || request.length > WIRE_PAYLOAD_MAX - sizeof(struct wire_read_reply))
        return fail(WIRE_E_ARGUMENT, offsetof(struct wire_read, length));
    const struct wire_read_reply reply = {.offset = request.offset, .length = request.length};
    __builtin_memcpy(target + sizeof reply, from + request.offset, request.length);
    return reply_with(&reply, sizeof reply) + (int32_t)request.length;
}

static int32_t answer_environment(void)
{
    struct wire_environment_reply reply = {
        .temperature_mc = WIRE_UNKNOWN, .supply_mv = WIRE_UNKNOWN, .clock_source = WIRE_UNKNOWN,
        .cpu_hz = port.cpu_hz()};
    port.environment(&reply);
    return reply_with(&reply, sizeof reply);
}

static int32_t answer_time(const uint8_t *payload)
{
    struct wire_time request;
    __builtin_memcpy(&request, payload, sizeof request);
    if (request.spin_us > SPIN_MOST_US)
        return fail(WIRE_E_ARGUMENT, offsetof(struct wire_time, spin_us));
    struct wire_time_reply reply = {.hz = port.counter_hz(), .clock = port.counter()->clock};
    const uint64_t wanted = (uint64_t)request.spin_us * reply.hz / 1000000u;
    const uint64_t start = read_ticks();
    do
        reply.ticks = read_ticks() - start;
    while (reply.ticks < wanted);
    return reply_with(&reply, sizeof reply);
}

static int32_t answer_nothing(void)
{
    return 0;
}

static int32_t answer_bye(void)
{
    conversation.session = 0;
    return 0;
}

/* ---- dispatch ---- */

struct request {
    uint8_t type;
    uint16_t least, most;   /* payload bytes */
    int32_t (*answer)(void);
    int32_t (*answer_payload)(const uint8_t *payload);
};

static const struct request requests[] = {
    {WIRE_HELLO, sizeof(struct wire_hello), WIRE_PAYLOAD_MAX, NULL, answer_hello},
    {WIRE_IDENTIFY, 0, 0, answer_identify, NULL},
    {WIRE_COUNTERS, sizeof(struct wire_counters), sizeof(struct wire_counters), NULL,
     answer_counters},
    {WIRE_LAYER, sizeof(struct wire_layer), sizeof(struct wire_layer), NULL, answer_layer},
    {WIRE_LOAD, sizeof(struct wire_load), WIRE_PAYLOAD_MAX, NULL, NULL},
    {WIRE_CONFIG, sizeof(struct wire_config), sizeof(struct wire_config), NULL, answer_config},
    {WIRE_RUN, sizeof(struct wire_run), sizeof(struct wire_run), NULL, answer_run},
    {WIRE_SAMPLES, sizeof(struct wire_samples), sizeof(struct wire_samples), NULL, answer_samples},
    {WIRE_CHECKSUM, 0, 0, answer_checksum, NULL},
    {WIRE_OVERHEAD, sizeof(struct wire_overhead), sizeof(struct wire_overhead), NULL,
     answer_overhead},
    {WIRE_STATUS, 0, 0, answer_status, NULL},
    {WIRE_IDLE, 0, 0, answer_nothing, NULL},
    {WIRE_READ, sizeof(struct wire_read), sizeof(struct wire_read), NULL, answer_read},
    {WIRE_ENVIRONMENT, 0, 0, answer_environment, NULL},
    {WIRE_TIME, sizeof(struct wire_time), sizeof(struct wire_time), NULL, answer_time},
    {WIRE_BYE, 0, 0, answer_bye, NULL},
};

int32_t answer_request(const struct wire_header *header, const uint8_t *payload,
                       uint8_t answer_to[WIRE_PAYLOAD_MAX])
{
    target = answer_to;
    const struct request *request = requests;
    const struct request *const end = requests + sizeof requests / sizeof requests[0];
    while (request < end && request->type != header->type)
        request++;
    if (request == end)
        return fail(WIRE_E_TYPE, header->type);
    if (conversation.session == 0 && header->type != WIRE_HELLO)
        return fail(WIRE_E_SESSION, WIRE_VERSION);
    if (header->length < request->least || header->length > request->most)
        return fail(WIRE_E_LENGTH, request->least);
    if (header->type == WIRE_LOAD)
        return answer_load(payload, header->length);
    return request->answer ? request->answer() : request->answer_payload(payload);
}
