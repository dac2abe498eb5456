#include "port.h"
#include "receiver.h"
#include "session.h"
#include "text.h"

int run_firmware(void)
{
    port.start();
    port.place_weights();
    print_banner();
    for (;;) {
        const int32_t byte = take_byte();
        if (byte >= 0)
            handle_byte((uint8_t)byte);
        else
            port.idle();
    }
}
