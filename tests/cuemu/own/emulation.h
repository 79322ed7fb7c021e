/* Checks of the emulation itself. */
#ifndef TESTS_CUEMU_EMULATION_H
#define TESTS_CUEMU_EMULATION_H
#include "planted.h"

struct check {
    const char *name;
    bool (*holds)();
};
extern const std::vector<check> device_checks, host_checks;
#endif
