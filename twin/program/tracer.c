/* Plugin of QEMU: gives its machine the memories of a board, and writes down which blocks ran and
 * what they loaded and stored, in 64-bit words: kind | address << 2 | bytes << 34. Kind 0: a block
 * begins; 1: a load; 2: a store. Neighbouring elements of one vector are one access.
 * Declarations are of QEMU's plugin interface (docs/devel/tcg-plugins.rst) and memory interface. */
#define _GNU_SOURCE /* SEEK_DATA */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SHARED __attribute__((visibility("default")))
typedef uint64_t plugin_id;
typedef uint32_t mem_info;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
void qemu_plugin_register_vcpu_init_cb(plugin_id, void (*)(plugin_id, unsigned));
void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id, void (*)(plugin_id, struct qemu_plugin_tb *));
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *, void (*)(unsigned, void *), int,
                                          void *);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *,
                                      void (*)(unsigned, mem_info, uint64_t, void *), int, int,
                                      void *);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *);
unsigned qemu_plugin_mem_size_shift(mem_info);
bool qemu_plugin_mem_is_store(mem_info);
#if PLUGIN_VERSION >= 3
size_t qemu_plugin_insn_data(const struct qemu_plugin_insn *, void *, size_t);
#else
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *);
#endif
SHARED int qemu_plugin_version = PLUGIN_VERSION;

enum { BLOCK, LOAD, STORE };
enum { SCALAR, VECTOR, VECTOR_BYTES = 16, ROOM = 1 << 16, REGION_ROOM = 4096, FIRST = 1000 };

static uint64_t events[ROOM];
static size_t used;
static int out = -1;
static const char *memories[256];
static int memory_count;

static void drain(void)
{
    const char *from = (const char *)events;
    for (size_t left = used * sizeof events[0]; left;) {
        ssize_t done = write(out, from, left);
        if (done <= 0)
            _exit(0); /* nobody reads any more */
        from += done;
        left -= done;
    }
    used = 0;
}

static void put(uint64_t event)
{
    if (used == ROOM)
        drain();
    events[used++] = event;
}

static void on_block(unsigned cpu, void *event) { put((uint64_t)event); }

static void on_access(unsigned cpu, mem_info info, uint64_t address, void *kind)
{
    uint64_t bytes = 1u << qemu_plugin_mem_size_shift(info);
    uint64_t way = qemu_plugin_mem_is_store(info) ? STORE : LOAD;
    static uint64_t before, sum;
    if (kind == (void *)VECTOR && used) {
        uint64_t last = events[used - 1];
        sum = last >> 34;
        if (before == used && (last & 3) == way && (last >> 2 & 0xffffffff) + sum == address &&
            sum + bytes <= VECTOR_BYTES) {
            events[used - 1] = way | (last & 0x3fffffffcull) | (sum + bytes) << 34;
            return;
        }
    }
    put(way | (address & 0xffffffff) << 2 | bytes << 34);
    before = kind == (void *)VECTOR ? used : 0;
}

/* Its halfwords. QEMU's own size of an instruction is two bytes more where it looked at the next
 * one to see whether that crosses a page. */
static size_t read_code(const struct qemu_plugin_insn *insn, uint16_t code[2])
{
    size_t held = qemu_plugin_insn_size(insn);
    code[0] = code[1] = 0;
#if PLUGIN_VERSION >= 3
    qemu_plugin_insn_data(insn, code, held < 4 ? held : 4);
#else
    memcpy(code, qemu_plugin_insn_data(insn), held < 4 ? held : 4);
#endif
    return code[0] >= 0xe800 ? 4 : 2; /* DDI 0553, C2.2 */
}

static void translate(plugin_id id, struct qemu_plugin_tb *tb)
{
    uint64_t start = qemu_plugin_tb_vaddr(tb), end = start;
    uint16_t code[2];
    for (size_t n = 0; n < qemu_plugin_tb_n_insns(tb); n++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, n);
        end = qemu_plugin_insn_vaddr(insn) + read_code(insn, code);
        /* Loads and stores of coprocessors 14 and 15: Helium's (DDI 0553, C2.3). */
        bool vector = (code[0] & 0xee00) == 0xec00 && (code[1] & 0x0e00) == 0x0e00;
        qemu_plugin_register_vcpu_mem_cb(insn, on_access, 0, 3,
                                         (void *)(uintptr_t)(vector ? VECTOR : SCALAR));
    }
    qemu_plugin_register_vcpu_tb_exec_cb(
        tb, on_block, 0,
        (void *)(uintptr_t)(BLOCK | (start & 0xffffffff) << 2 | (end - start) << 34));
}

/* ADDRESS:BYTES:FILE, numbers in hexadecimal; an empty FILE is zeroes, as its holes are. */
static void add_memory(const char *text)
{
    void *(*system_memory)(void) = dlsym(NULL, "get_system_memory");
    void (*make)(void *, void *, const char *, uint64_t, void *) =
        dlsym(NULL, "memory_region_init_ram");
    void (*add)(void *, uint64_t, void *, int) = dlsym(NULL, "memory_region_add_subregion_overlap");
    char *(*content)(void *) = dlsym(NULL, "memory_region_get_ram_ptr");
    void *fatal = dlsym(NULL, "error_fatal");
    char *rest, *region = calloc(1, REGION_ROOM), name[32];
    uint64_t address = strtoull(text, &rest, 16);
    off_t bytes = strtoull(rest + 1, &rest, 16), at = 0, place;
    if (!system_memory || !make || !add || !content || !fatal || !region) {
        fprintf(stderr, "this QEMU does not let a plugin add memory\n");
        exit(4);
    }
    snprintf(name, sizeof name, "board.%llx", (unsigned long long)address);
    make(region, NULL, name, bytes, fatal);
    add(system_memory(), address, region, FIRST);
    int file = rest[1] ? open(rest + 1, O_RDONLY) : -1;
    for (ssize_t done; file >= 0; at = place + done) {
        if ((place = lseek(file, at, SEEK_DATA)) < 0 || place >= bytes)
            break;
        off_t end = lseek(file, place, SEEK_HOLE);
        done = pread(file, content(region) + place, (end < bytes ? end : bytes) - place, place);
        if (done <= 0)
            break;
    }
    if (file >= 0)
        close(file);
}

static void start(plugin_id id, unsigned cpu)
{
    for (int n = 0; n < memory_count; n++)
        add_memory(memories[n]);
    memory_count = 0;
}

SHARED int qemu_plugin_install(plugin_id id, const void *info, int count, char **words)
{
    for (int n = 0; n < count; n++)
        if (!strncmp(words[n], "out=", 4))
            out = atoi(words[n] + 4);
        else if (!strncmp(words[n], "memory=", 7) && memory_count < 256)
            memories[memory_count++] = strdup(words[n] + 7);
    qemu_plugin_register_vcpu_init_cb(id, start);
    qemu_plugin_register_vcpu_tb_trans_cb(id, translate);
    return out < 0;
}
