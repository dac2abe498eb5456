#include "text.h"

#include <stddef.h>

#include "kernels.h"
#include "model.h"
#include "port.h"
#include "run.h"

static const char *const model_names[] = {NULL, "ic01", "kws01", "vww01", "ad01", "sww01"};
static uint32_t expected, loaded;  /* bytes of `db load`, bytes so far */

/* ---- output ---- */

static void print(const char *text)
{
    while (*text)
        port.send((uint8_t)*text++);
}

static void print_number(uint64_t value)
{
    char digits[21];
    uint32_t at = sizeof digits - 1;
    digits[at] = 0;
    do {
        digits[--at] = (char)('0' + value % 10u);
        value /= 10u;
    } while (value > 0);
    print(digits + at);
}

static void print_hex(uint8_t byte)
{
    static const char digits[] = "0123456789abcdef";
    port.send((uint8_t)digits[byte >> 4]);
    port.send((uint8_t)digits[byte & 15]);
}

/* Three decimals, as the benchmark's reference prints. */
static void print_real(float value)
{
    if (value < 0.0f)
        print("-");
    const uint64_t thousandths = (uint64_t)((value < 0.0f ? -value : value) * 1000.0f + 0.5f);
    print_number(thousandths / 1000u);
    print(".");
    const uint32_t rest = (uint32_t)(thousandths % 1000u);
    port.send((uint8_t)('0' + rest / 100u));
    port.send((uint8_t)('0' + rest / 10u % 10u));
    port.send((uint8_t)('0' + rest % 10u));
}

static void print_timestamp(void)
{
    print("m-lap-us-");
    print_number(read_ticks() * 1000000u / port.counter_hz());
    print("\r\n");
}

static float output_value(uint32_t i)
{
    const uint8_t *output = model.arena + model.output_offset;
    if (model.output_scale > 0.0f)
        return model.output_scale * (float)((int8_t)output[i] - model.output_zero);
    float value;
    __builtin_memcpy(&value, output + 4u * i, 4);
    return value;
}

static uint32_t output_count(void)
{
    return model.output_scale > 0.0f ? model.output_bytes : model.output_bytes / 4u;
}

/* The autoencoder's result: mean squared error of its output against its input. */
static float reconstruction_error(void)
{
    float sum = 0.0f;
    const uint32_t count = output_count();
    for (uint32_t i = 0; i < count; i++) {
        float given;
        __builtin_memcpy(&given, model.text + 4u * i, 4);
        const float difference = given - output_value(i);
        sum += difference * difference;
    }
    return sum / (float)count;
}

static void print_results(void)
{
    print("m-results-[");
    if (model.text_floats) {
        print_real(reconstruction_error());
    } else {
        for (uint32_t i = 0; i < output_count(); i++) {
            if (i > 0)
                print(",");
            print_real(output_value(i));
        }
    }
    print("]\r\n");
}

/* ---- words of a command ---- */

struct words {
    const char *at, *end;
};

/* The next word; returns its length, 0 at the end. */
static uint32_t next_word(struct words *words, const char **word)
{
    while (words->at < words->end && *words->at == ' ')
        words->at++;
    *word = words->at;
    while (words->at < words->end && *words->at != ' ')
        words->at++;
    return (uint32_t)(words->at - *word);
}

static uint32_t is_word(const char *word, uint32_t count, const char *name)
{
    uint32_t i = 0;
    while (i < count && name[i] && word[i] == name[i])
        i++;
    return i == count && name[i] == 0;
}

/* A decimal number, or `otherwise` when there is no word; -1 when it is none. */
static int32_t next_number(struct words *words, int32_t otherwise)
{
    const char *word;
    const uint32_t count = next_word(words, &word);
    if (count == 0)
        return otherwise;
    int32_t value = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (word[i] < '0' || word[i] > '9' || value > 99999999)
            return -1;
        value = value * 10 + (word[i] - '0');
    }
    return value;
}

static int32_t hex_digit(char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    if (digit >= 'a' && digit <= 'f')
        return digit - 'a' + 10;
    return digit >= 'A' && digit <= 'F' ? digit - 'A' + 10 : -1;
}

/* ---- commands ---- */

/* Turn what `db` brought into the model's input. */
static void convert_input(void)
{
    if (model.text_floats) {
        const struct quantize_s8 quantize = {.count = (int32_t)(model.text_bytes / 4u),
                                             .scale = model.input_scale,
                                             .zero_point = model.input_zero};
        quantize_s8(&quantize, (const float *)(const void *)model.text, (int8_t *)model.input);
    } else if (model.text_subtract) {
        for (uint32_t i = 0; i < model.text_bytes; i++)
            model.input[i] = (uint8_t)(model.input[i] - model.text_subtract);
    }
}

static void load_bytes(struct words *words)
{
    const int32_t count = next_number(words, 0);
    if (count <= 0) {
        print("e-[Command 'db load' must be >0 bytes]\r\n");
    } else if ((uint32_t)count > model.text_bytes) {
        print("e-[Supplied buffer size ");
        print_number((uint32_t)count);
        print(" exceeds maximum of ");
        print_number(model.text_bytes);
        print("]\r\n");
    } else {
        expected = (uint32_t)count;
        loaded = 0;
        print("m-[Expecting ");
        print_number(expected);
        print(" bytes]\r\n");
    }
}

static void append_bytes(const char *word, uint32_t count)
{
    if (count % 2u) {
        print("e-[Insufficent number of hex digits]\r\n");
        return;
    }
    for (uint32_t i = 0; i < count && loaded < expected; i += 2) {
        const int32_t high = hex_digit(word[i]), low = hex_digit(word[i + 1]);
        if (high < 0 || low < 0) {
            const char pair[3] = {word[i], word[i + 1], 0};
            print("e-[Invalid hex digit '");
            print(pair);
            print("']\r\n");
            return;
        }
        model.text[loaded++] = (uint8_t)(high << 4 | low);
        if (loaded == expected) {
            print("m-load-done\r\n");
            if (loaded == model.text_bytes)
                convert_input();
        }
    }
}

static void print_bytes(void)
{
    const uint32_t per_line = 8;
    for (uint32_t i = 0; i < loaded; i++) {
        const uint32_t added = loaded == model.text_bytes ? model.text_subtract : 0;
        print(i % per_line == 0 ? "m-buffer-" : "-");
        print_hex((uint8_t)(model.text[i] + added));
        if (i % per_line == per_line - 1 || i + 1 == loaded)
            print("\r\n");
    }
}

static void handle_buffer(struct words *words)
{
    const char *word;
    const uint32_t count = next_word(words, &word);
    if (is_word(word, count, "load"))
        load_bytes(words);
    else if (is_word(word, count, "print"))
        print_bytes();
    else
        append_bytes(word, count);
}

static void infer(struct words *words)
{
    const int32_t runs = next_number(words, 1), warmup = next_number(words, 10);
    if (runs <= 0) {
        print("e-[Inference iterations must be >0]\r\n");
    } else if (warmup < 0) {
        print("e-[Inference warmup must be >=0]\r\n");
    } else if (loaded != model.text_bytes) {
        print("e-[Input db has ");
        print_number(loaded);
        print(" bytes, expected ");
        print_number(model.text_bytes);
        print("]\r\n");
    } else {
        print("m-warmup-start-");
        print_number((uint32_t)warmup);
        print("\r\n");
        for (int32_t i = 0; i < warmup; i++)
            infer_once();
        print("m-warmup-done\r\nm-infer-start-");
        print_number((uint32_t)runs);
        print("\r\n");
        port.flush();
        print_timestamp();
        port.flush();
        for (int32_t i = 0; i < runs; i++) {
            infer_once();
            read_ticks();  /* often enough that no wrap of the counter is missed */
        }
        print_timestamp();
        print("m-infer-done\r\n");
        print_results();
    }
}

static void print_profile(void)
{
    print("m-profile-[ULPMark for tinyML Firmware V0.0.1]\r\nm-model-[");
    print(model.text_model ? model_names[model.text_model] : model.name);
    print("]\r\n");
}

static void print_help(void)
{
    print("ULPMark for tinyML Firmware V0.0.1\r\n"
          "name timestamp profile help results\r\n"
          "db load N; db HH[HH]*; db print; infer N W\r\n");
}

void forget_text_input(void)
{
    expected = loaded = 0;
}

void print_banner(void)
{
    print("m-timestamp-mode-performance\r\n");
    print_timestamp();
    print("m-init-done\r\nm-ready\r\n");
    port.flush();
}

void handle_text(const char *command, uint32_t count)
{
    struct words words = {command, command + count};
    const char *word;
    const uint32_t length = next_word(&words, &word);
    if (length == 0) {
        ;  /* an empty command: the board is there */
    } else if (is_word(word, length, "name")) {
        print("m-name-dut-[unspecified]\r\n");
    } else if (is_word(word, length, "timestamp")) {
        print_timestamp();
    } else if (is_word(word, length, "profile")) {
        print_profile();
    } else if (is_word(word, length, "help")) {
        print_help();
    } else if (is_word(word, length, "results")) {
        print_results();
    } else if (is_word(word, length, "db")) {
        handle_buffer(&words);
    } else if (is_word(word, length, "infer")) {
        infer(&words);
    } else {
        print("e-[Unknown command: ");
        for (uint32_t i = 0; i < length; i++)
            port.send((uint8_t)word[i]);
        print("]\r\n");
    }
    print("m-ready\r\n");
    port.flush();
}
