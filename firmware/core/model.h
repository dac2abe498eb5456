/* A network as generated code: a list of calls. Written by `twin firmware build`. */
#ifndef TWIN_MODEL_H
#define TWIN_MODEL_H

#include <stdint.h>

struct model_layer {
    void (*run)(void);
    const char *name;
    uint32_t output_offset, output_bytes;  /* in the arena */
    uint32_t index;                        /* in the model file */
};

struct model {
    const char *name;
    const struct model_layer *layers;
    uint32_t layer_count;
    uint8_t *arena;
    uint32_t arena_bytes;
    uint32_t input_offset, input_bytes;    /* in the arena */
    uint32_t output_offset, output_bytes;
    uint8_t *input;                        /* copied into the arena before every run */
    const uint8_t *weights;
    uint32_t weights_bytes;
    uint8_t sha256[32], build_sha256[32];
    const char *compiler;
    const uint32_t *failure;               /* place in the kernels, 0: none; or no pointer */

    /* Text mode: what `db load` expects and means. */
    uint32_t text_model;                   /* as struct wire_identify_reply has it */
    uint8_t *text;                         /* where its bytes go: `input`, or room of its own */
    uint32_t text_bytes;
    uint32_t text_subtract;                /* from each byte, 0 or 128; text is `input` */
    uint32_t text_floats;                  /* 1: quantised into `input` */
    float input_scale, output_scale;       /* 0: float data */
    int32_t input_zero, output_zero;
};

extern const struct model model;

#endif
