/* The entry points of libnvidia-ml.so.1 that gpu-dash calls, answered from a scenario file.
 *
 * Struct layouts and numbers are those that nvidia-ml-py uses. A function that is not here is
 * FUNCTION_NOT_FOUND to a program, as it would be with an older driver. */
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "scenario.h"

typedef int answer_t; /* nvmlReturn_t */
enum {
    SUCCESS = 0,
    UNINITIALIZED = 1,
    INVALID_ARGUMENT = 2,
    NOT_SUPPORTED = 3,
    NOT_FOUND = 6,
    INSUFFICIENT_SIZE = 7,
    TIMEOUT = 10,
    VERSION_MISMATCH = 25, /* of an argument's struct */
};

typedef const char *device_t;
static const char devices[MAX_CARDS]; /* the handle of card i is &devices[i] */
enum { MIG_PLACES = 7 };
static const char mig_devices[MAX_CARDS * MIG_PLACES]; /* likewise, card by card */
static atomic_int initialized;

/* -- what every call begins with ------------------------------------------------------------ */

static answer_t interrupted(const char *function, int card) {
    struct interruption what;
    scenario_interruption(function, card, &what);
    if (*what.says) {
        puts(what.says);
        fflush(stdout);
    }
    if (what.delay_us) usleep((useconds_t)what.delay_us);
    if (what.signal) raise(what.signal);
    return what.answer;
}

static answer_t enter(const char *function) {
    answer_t answer = interrupted(function, NO_CARD);
    if (answer) return answer;
    return initialized > 0 ? SUCCESS : UNINITIALIZED;
}

static answer_t enter_card(device_t device, const char *function, int *index, struct card *card) {
    ptrdiff_t which = device - devices;
    if (which < 0 || which >= scenario_cards()) return INVALID_ARGUMENT;
    *index = (int)which;
    answer_t answer = interrupted(function, *index);
    if (answer) return answer;
    if (initialized <= 0) return UNINITIALIZED;
    scenario_card(*index, card);
    return SUCCESS;
}

#define ENTER                                    \
    do {                                         \
        answer_t answer_ = enter(__func__);      \
        if (answer_) return answer_;             \
    } while (0)

/* Declares `index` and `card` for the rest of the function. */
#define ENTER_CARD(device)                                                     \
    int index;                                                                 \
    struct card card;                                                          \
    do {                                                                       \
        answer_t answer_ = enter_card((device), __func__, &index, &card);      \
        if (answer_) return answer_;                                           \
    } while (0)

#define VALUE(name) number_now(&card.numbers[VALUE_##name], index)

static answer_t give_u32(double value, uint32_t *out) {
    if (value < 0) return NOT_SUPPORTED;
    *out = (uint32_t)value;
    return SUCCESS;
}

static answer_t give_u64(double value, uint64_t *out) {
    if (value < 0) return NOT_SUPPORTED;
    *out = (uint64_t)value;
    return SUCCESS;
}

static answer_t give_text(const char *text, char *out, uint32_t size) {
    if (strlen(text) + 1 > size) return INSUFFICIENT_SIZE;
    strcpy(out, text);
    return SUCCESS;
}

/* A getter of one number. */
#define U32_GETTER(function, name)                    \
    answer_t function(device_t device, uint32_t *out) { \
        ENTER_CARD(device);                           \
        return give_u32(VALUE(name), out);            \
    }
#define U64_GETTER(function, name)                    \
    answer_t function(device_t device, uint64_t *out) { \
        ENTER_CARD(device);                           \
        return give_u64(VALUE(name), out);            \
    }

/* -- the library and the system -------------------------------------------------------------- */

answer_t nvmlInitWithFlags(uint32_t flags) {
    (void)flags;
    answer_t answer = interrupted(__func__, NO_CARD);
    if (!answer) initialized++;
    return answer;
}

answer_t nvmlShutdown(void) {
    ENTER;
    initialized--;
    return SUCCESS;
}

const char *nvmlErrorString(answer_t answer) {
    (void)answer;
    return "an answer of the scripted driver";
}

answer_t nvmlSystemGetDriverVersion(char *out, uint32_t size) {
    ENTER;
    char version[80];
    scenario_driver(version);
    return give_text(version, out, size);
}

answer_t nvmlDeviceGetCount_v2(uint32_t *out) {
    ENTER;
    *out = (uint32_t)scenario_cards();
    return SUCCESS;
}

answer_t nvmlDeviceGetHandleByIndex_v2(uint32_t which, device_t *out) {
    if (which >= (uint32_t)scenario_cards()) return INVALID_ARGUMENT;
    ENTER_CARD(&devices[which]);
    *out = &devices[which];
    return SUCCESS;
}

/* -- what a card is -------------------------------------------------------------------------- */

answer_t nvmlDeviceGetName(device_t device, char *out, uint32_t size) {
    ENTER_CARD(device);
    return give_text(card.name, out, size);
}

answer_t nvmlDeviceGetUUID(device_t device, char *out, uint32_t size) {
    char uuid[64];
    ptrdiff_t mig = device - mig_devices;
    if (mig >= 0 && mig < (ptrdiff_t)sizeof mig_devices) {
        snprintf(uuid, sizeof uuid, "MIG-fa4e0000-0000-5000-8000-%012x", (unsigned)mig);
        return give_text(uuid, out, size);
    }
    ENTER_CARD(device);
    snprintf(uuid, sizeof uuid, "GPU-fa4e0000-0000-4000-8000-%012x", index);
    return give_text(uuid, out, size);
}

answer_t nvmlDeviceGetMigMode(device_t device, uint32_t *current, uint32_t *pending) {
    ENTER_CARD(device);
    if (VALUE(mig) < 0) return NOT_SUPPORTED;
    *current = *pending = VALUE(mig) > 0;
    return SUCCESS;
}

answer_t nvmlDeviceGetMaxMigDeviceCount(device_t device, uint32_t *out) {
    ENTER_CARD(device);
    *out = MIG_PLACES;
    return SUCCESS;
}

/* Every other place is empty, as where devices were destroyed. */
answer_t nvmlDeviceGetMigDeviceHandleByIndex(device_t device, uint32_t place, device_t *out) {
    ENTER_CARD(device);
    if (place % 2 || place / 2 >= VALUE(mig)) return NOT_FOUND;
    *out = &mig_devices[index * MIG_PLACES + (int)place];
    return SUCCESS;
}

struct pci_info {
    char legacy_bus_id[16];
    uint32_t domain, bus, device, device_id, subsystem_id;
    char bus_id[32];
};

answer_t nvmlDeviceGetPciInfo_v3(device_t device, struct pci_info *out) {
    ENTER_CARD(device);
    memset(out, 0, sizeof *out);
    out->bus = 0x90 + (uint32_t)index;
    out->device_id = 0x233510de;
    snprintf(out->legacy_bus_id, sizeof out->legacy_bus_id, "0000:%02X:00.0", out->bus);
    snprintf(out->bus_id, sizeof out->bus_id, "00000000:%02X:00.0", out->bus);
    return SUCCESS;
}

answer_t nvmlDeviceGetTemperatureThreshold(device_t device, uint32_t which, uint32_t *out) {
    ENTER_CARD(device);
    switch (which) {
    case 0: return give_u32(VALUE(temp_shut), out);
    case 1: return give_u32(VALUE(temp_slow), out);
    case 3: return give_u32(VALUE(temp_max), out);
    default: return NOT_SUPPORTED;
    }
}

U32_GETTER(nvmlDeviceGetPowerManagementDefaultLimit, limit_default_mw)

answer_t nvmlDeviceGetPowerManagementLimitConstraints(device_t device, uint32_t *min, uint32_t *max) {
    ENTER_CARD(device);
    answer_t answer = give_u32(VALUE(limit_min_mw), min);
    return answer ? answer : give_u32(VALUE(limit_max_mw), max);
}

enum { CLOCK_SM = 1, CLOCK_MEMORY = 2 };

answer_t nvmlDeviceGetMaxClockInfo(device_t device, uint32_t which, uint32_t *out) {
    ENTER_CARD(device);
    if (which != CLOCK_SM && which != CLOCK_MEMORY) return INVALID_ARGUMENT;
    return give_u32(which == CLOCK_SM ? VALUE(sm_max_mhz) : VALUE(mem_max_mhz), out);
}

/* -- what a card does now -------------------------------------------------------------------- */

answer_t nvmlDeviceGetTemperature(device_t device, uint32_t sensor, uint32_t *out) {
    ENTER_CARD(device);
    if (sensor) return INVALID_ARGUMENT;
    return give_u32(VALUE(temp), out);
}

struct temperature {
    uint32_t version, sensor;
    int32_t value;
};

answer_t nvmlDeviceGetTemperatureV(device_t device, struct temperature *out) {
    ENTER_CARD(device);
    if (out->version != 0x100000c) return VERSION_MISMATCH;
    if (VALUE(temp) < 0) return NOT_SUPPORTED;
    out->value = (int32_t)VALUE(temp);
    return SUCCESS;
}

struct margin {
    uint32_t version;
    int32_t value;
};

answer_t nvmlDeviceGetMarginTemperature(device_t device, struct margin *out) {
    ENTER_CARD(device);
    if (out->version != 0x1000008) return VERSION_MISMATCH;
    out->value = (int32_t)VALUE(margin);
    return SUCCESS;
}

U32_GETTER(nvmlDeviceGetPowerUsage, power_mw)
U32_GETTER(nvmlDeviceGetEnforcedPowerLimit, enforced_mw)
U64_GETTER(nvmlDeviceGetTotalEnergyConsumption, energy_mj)
U64_GETTER(nvmlDeviceGetCurrentClocksEventReasons, reasons)
U64_GETTER(nvmlDeviceGetCurrentClocksThrottleReasons, reasons)

answer_t nvmlDeviceGetClockInfo(device_t device, uint32_t which, uint32_t *out) {
    ENTER_CARD(device);
    if (which != CLOCK_SM && which != CLOCK_MEMORY) return INVALID_ARGUMENT;
    return give_u32(which == CLOCK_SM ? VALUE(sm_mhz) : VALUE(mem_mhz), out);
}

struct utilization {
    uint32_t gpu, memory;
};

answer_t nvmlDeviceGetUtilizationRates(device_t device, struct utilization *out) {
    ENTER_CARD(device);
    if (VALUE(mig) > 0) return NOT_SUPPORTED;
    answer_t answer = give_u32(VALUE(mem_util), &out->memory);
    return answer ? answer : give_u32(VALUE(util), &out->gpu);
}

struct memory_v2 {
    uint32_t version;
    uint64_t total, reserved, free, used;
};

answer_t nvmlDeviceGetMemoryInfo_v2(device_t device, struct memory_v2 *out) {
    ENTER_CARD(device);
    if (out->version != 0x2000028) return VERSION_MISMATCH;
    if (VALUE(mem_total) < 0) return NOT_SUPPORTED;
    out->total = (uint64_t)VALUE(mem_total);
    out->reserved = (uint64_t)VALUE(mem_reserved);
    out->used = (uint64_t)VALUE(mem_used);
    out->free = out->total - out->reserved - out->used;
    return SUCCESS;
}

struct memory_v1 {
    uint64_t total, free, used;
};

answer_t nvmlDeviceGetMemoryInfo(device_t device, struct memory_v1 *out) {
    ENTER_CARD(device);
    if (VALUE(mem_total) < 0) return NOT_SUPPORTED;
    out->total = (uint64_t)VALUE(mem_total);
    out->used = (uint64_t)(VALUE(mem_used) + VALUE(mem_reserved)); /* as real drivers count here */
    out->free = out->total - out->used;
    return SUCCESS;
}

struct process_info {
    uint32_t pid;
    uint64_t used;
    uint32_t gpu_instance, compute_instance;
};

answer_t nvmlDeviceGetComputeRunningProcesses_v3(device_t device, uint32_t *count,
                                                 struct process_info *out) {
    ENTER_CARD(device);
    uint32_t room = *count;
    *count = VALUE(proc_pid) >= 0;
    if (*count > room) return INSUFFICIENT_SIZE;
    if (*count) {
        out[0] = (struct process_info){
            .pid = (uint32_t)VALUE(proc_pid),
            .used = (uint64_t)VALUE(proc_bytes),
            .gpu_instance = UINT32_MAX,
            .compute_instance = UINT32_MAX,
        };
    }
    return SUCCESS;
}

struct field_value {
    uint32_t id, scope;
    int64_t timestamp_us, latency_us;
    uint32_t type;
    answer_t answer;
    union {
        double d;
        uint32_t u32;
        uint64_t u64;
    } value;
};
enum { TYPE_U32 = 1, TYPE_U64 = 3 };
enum { ALL_LINKS = 0xFFFFFFFF };

answer_t nvmlDeviceGetFieldValues(device_t device, int32_t count, struct field_value *fields) {
    ENTER_CARD(device);
    for (int i = 0; i < count; i++) {
        struct field_value *field = &fields[i];
        double value = -1;
        field->type = TYPE_U64;
        switch (field->id) {
        case 74: value = VALUE(sw_power_cap_ns); break;
        case 75: value = VALUE(thermal_violation_ns); break;
        case 82:
            value = VALUE(temp_mem);
            field->type = TYPE_U32;
            break;
        case 138: value = field->scope == ALL_LINKS ? VALUE(nvlink_tx_kib) : -1; break;
        case 139: value = field->scope == ALL_LINKS ? VALUE(nvlink_rx_kib) : -1; break;
        case 197: value = VALUE(pcie_tx); break;
        case 198: value = VALUE(pcie_rx); break;
        case 269: value = VALUE(sw_thermal_ns); break;
        case 270: value = VALUE(hw_thermal_ns); break;
        case 271: value = VALUE(power_brake_ns); break;
        }
        field->timestamp_us = field->latency_us = 0;
        field->value.u64 = 0;
        field->answer = field->type == TYPE_U32 ? give_u32(value, &field->value.u32)
                                                : give_u64(value, &field->value.u64);
    }
    return SUCCESS;
}

U32_GETTER(nvmlDeviceGetFanSpeed, fan)

answer_t nvmlDeviceGetTotalEccErrors(device_t device, uint32_t kind, uint32_t since, uint64_t *out) {
    ENTER_CARD(device);
    (void)since;
    return give_u64(kind == 0 ? VALUE(ecc_corrected) : VALUE(ecc_uncorrected), out);
}

struct sample {
    uint64_t time_us;
    union {
        uint32_t u32;
        uint64_t u64;
    } value;
};

/* Two samples in each call, 20 ms apart: what is drawn now, and the peak. */
answer_t nvmlDeviceGetSamples(device_t device, uint32_t kind, uint64_t since_us, uint32_t *type,
                              uint32_t *count, struct sample *out) {
    ENTER_CARD(device);
    if (kind != 0 || VALUE(power_peak_mw) < 0) return NOT_SUPPORTED;
    *type = TYPE_U32;
    *count = 2;
    if (!out) return SUCCESS;
    out[0].time_us = since_us + 20000;
    out[0].value.u32 = (uint32_t)VALUE(power_mw);
    out[1].time_us = since_us + 40000;
    out[1].value.u32 = (uint32_t)VALUE(power_peak_mw);
    return SUCCESS;
}

/* -- events ---------------------------------------------------------------------------------- */

answer_t nvmlEventSetCreate(struct event_cursor **out) {
    ENTER;
    struct event_cursor *cursor = calloc(1, sizeof *cursor);
    scenario_start_cursor(cursor);
    *out = cursor;
    return SUCCESS;
}

answer_t nvmlDeviceGetSupportedEventTypes(device_t device, uint64_t *out) {
    ENTER_CARD(device);
    *out = 0xff9f;
    return SUCCESS;
}

answer_t nvmlDeviceRegisterEvents(device_t device, uint64_t types, struct event_cursor *cursor) {
    ENTER_CARD(device);
    cursor->wanted[index] |= types;
    return SUCCESS;
}

struct event_data {
    device_t device;
    uint64_t type, data;
    uint32_t gpu_instance, compute_instance;
};

answer_t nvmlEventSetWait_v2(struct event_cursor *cursor, struct event_data *out, uint32_t timeout_ms) {
    const unsigned step_ms = 20;
    for (unsigned waited_ms = 0;; waited_ms += step_ms) {
        ENTER;
        int card;
        uint64_t data;
        if (scenario_next_event(cursor, &card, &data)) {
            out->device = &devices[card];
            out->type = EVENT_XID;
            out->data = data;
            out->gpu_instance = out->compute_instance = UINT32_MAX;
            return SUCCESS;
        }
        if (waited_ms >= timeout_ms) return TIMEOUT;
        usleep(step_ms * 1000);
    }
}
