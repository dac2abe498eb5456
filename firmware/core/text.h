/* The serial commands of MLPerf Tiny (protocol/SPEC.md, Text mode). */
#ifndef TWIN_TEXT_H
#define TWIN_TEXT_H

#include <stdint.h>

void print_banner(void);
void handle_text(const char *command, uint32_t count);
void forget_text_input(void);

#endif
