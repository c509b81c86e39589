/* What the scripted driver says: the values, rules and events of a scenario file.
 *
 * The file is read again at the next call after it changed, so a test rewrites it while a program
 * runs. README.md describes its lines. */
#ifndef GPU_DASH_FAKE_NVML_SCENARIO_H
#define GPU_DASH_FAKE_NVML_SCENARIO_H

#include <stdint.h>

#define MAX_CARDS 64
#define EVERY_CARD (-1)
#define NO_CARD (-2)

/* The numbers of a card and what they are when no line says otherwise: an idle H200, as the real
 * one answered. A negative number means that the card does not offer the value. */
#define CARD_VALUES(X)                 \
    X(temp, 36)                        \
    X(temp_mem, 37)                    \
    X(temp_max, 87)                    \
    X(temp_slow, 89)                   \
    X(temp_shut, 95)                   \
    X(margin, 51)                      \
    X(power_mw, 96800)                 \
    X(enforced_mw, 700000)             \
    X(limit_default_mw, 700000)        \
    X(limit_min_mw, 200000)            \
    X(limit_max_mw, 700000)            \
    X(energy_mj, 2635303)              \
    X(sm_mhz, 345)                     \
    X(sm_max_mhz, 1980)                \
    X(mem_mhz, 3201)                   \
    X(mem_max_mhz, 3201)               \
    X(util, 0)                         \
    X(mem_util, 0)                     \
    X(mem_total, 150754820096)         \
    X(mem_reserved, 641335296)         \
    X(mem_used, 3604480)               \
    X(proc_pid, -1)                    \
    X(proc_bytes, 0)                   \
    X(reasons, 1)                      \
    X(sw_power_cap_ns, 0)              \
    X(sw_thermal_ns, 0)                \
    X(hw_thermal_ns, 0)                \
    X(power_brake_ns, 0)               \
    X(thermal_violation_ns, 0)         \
    X(power_peak_mw, -1)               \
    X(pcie_tx, 0)                      \
    X(pcie_rx, 0)                      \
    X(nvlink_tx_kib, 0)                \
    X(nvlink_rx_kib, 0)                \
    X(fan, -1)                         \
    X(mig, 0)                          \
    X(ecc_corrected, 0)                \
    X(ecc_uncorrected, 0)

#define AS_ENUM(name, idle) VALUE_##name,
enum card_value { CARD_VALUES(AS_ENUM) VALUE_COUNT };
#undef AS_ENUM

/* A number that may move: "LO..HI@SECONDS" is a triangle wave, "START+RATE" grows. */
struct number {
    double start;
    double high;   /* of the wave */
    double period; /* seconds of the wave; 0: no wave */
    double rate;   /* growth per second */
};

struct card {
    char name[96];
    struct number numbers[VALUE_COUNT];
};

enum event_type { EVENT_XID = 8 };

/* Where a waiting program stands in the scenario's events. */
struct event_cursor {
    unsigned long long last;         /* number of the newest event delivered */
    uint64_t wanted[MAX_CARDS];      /* event types registered, by card */
};

/* What a call must do before it answers. */
struct interruption {
    long delay_us;
    int signal;     /* raised in the driver, as by a crash; 0: none */
    int answer;     /* nvmlReturn_t; 0: go on */
    char says[96];  /* printed on standard output, as some driver libraries do */
};

/* How many cards there are, and the driver's version (at least 80 bytes). */
int scenario_cards(void);
void scenario_driver(char *version);

/* Copy of a card's numbers as they are now. */
void scenario_card(int index, struct card *card);
double number_now(const struct number *number, int card);

/* What the rules say about one call; `card` is NO_CARD for calls that are about no card. */
void scenario_interruption(const char *function, int card, struct interruption *interruption);

/* The next event that the cursor has not seen. Returns 0 when there is none. */
int scenario_next_event(struct event_cursor *cursor, int *card, uint64_t *data);
/* Skip the events that stand in the file already. */
void scenario_start_cursor(struct event_cursor *cursor);

#endif
