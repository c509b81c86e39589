#include "scenario.h"

#include <fnmatch.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>

#define MAX_RULES 128
#define MAX_EVENTS 64
#define DEFAULT_CARDS 8

struct rule {
    int card;
    char function[64]; /* glob of the C name; "*" alone: every call about a card */
    struct interruption does;
};

struct event {
    unsigned long long number;
    int card;
    uint64_t data;
};

struct scenario {
    int card_count;
    char driver[80];
    struct card cards[MAX_CARDS];
    int rule_count;
    struct rule rules[MAX_RULES];
    int event_count;
    struct event events[MAX_EVENTS];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct scenario scenario; /* guarded by the lock, like all below */
static struct stat last_seen;
static int loaded;
static double loaded_at;

static const struct {
    const char *name;
    int answer;
} ANSWERS[] = {
    {"SUCCESS", 0},
    {"UNINITIALIZED", 1},
    {"INVALID_ARGUMENT", 2},
    {"NOT_SUPPORTED", 3},
    {"NO_PERMISSION", 4},
    {"NOT_FOUND", 6},
    {"DRIVER_NOT_LOADED", 9},
    {"TIMEOUT", 10},
    {"FUNCTION_NOT_FOUND", 13},
    {"GPU_IS_LOST", 15},
    {"RESET_REQUIRED", 16},
    {"LIB_RM_VERSION_MISMATCH", 18},
    {"UNKNOWN", 999},
};

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void complain(const char *what, const char *text) {
    fprintf(stderr, "fake nvml: %s: %s\n", what, text);
}

static int answer_of(const char *text) {
    for (size_t i = 0; i < sizeof ANSWERS / sizeof *ANSWERS; i++)
        if (!strcasecmp(text, ANSWERS[i].name)) return ANSWERS[i].answer;
    return atoi(text);
}

static struct number parse_number(const char *text) {
    struct number number = {0};
    if (!strncasecmp(text, "0x", 2)) {
        number.start = (double)strtoull(text, NULL, 16);
        return number;
    }
    number.start = strtod(text, NULL);
    const char *dots = strstr(text, "..");
    const char *plus = strchr(text, '+');
    if (dots) {
        char *end;
        number.high = strtod(dots + 2, &end);
        number.period = *end == '@' ? atof(end + 1) : 10;
    } else if (plus) {
        number.rate = atof(plus + 1);
    }
    return number;
}

/* "err.FUNCTION CODE" and its kin. Returns 0 if the key is no rule. */
static int parse_rule(int card, const char *key, const char *value) {
    static const char *const KINDS[] = {"err.", "delay_us.", "crash.", "say."};
    size_t kind = 0;
    while (kind < 4 && strncmp(key, KINDS[kind], strlen(KINDS[kind]))) kind++;
    if (kind == 4) return 0;
    if (scenario.rule_count == MAX_RULES) {
        complain("too many rules, ignored", key);
        return 1;
    }
    struct rule *rule = &scenario.rules[scenario.rule_count++];
    memset(rule, 0, sizeof *rule);
    rule->card = card;
    snprintf(rule->function, sizeof rule->function, "%s", key + strlen(KINDS[kind]));
    switch (kind) {
    case 0: rule->does.answer = answer_of(value); break;
    case 1: rule->does.delay_us = atol(value); break;
    case 2: rule->does.signal = *value ? atoi(value) : SIGSEGV; break;
    case 3: snprintf(rule->does.says, sizeof rule->does.says, "%s", value); break;
    }
    return 1;
}

static void parse_process(struct card *card, const char *value) {
    long long memory = -1;
    unsigned pid;
    if (sscanf(value, "%u %lli", &pid, &memory) < 1 || card->process_count == MAX_PROCESSES) {
        complain("not a process", value);
        return;
    }
    struct process *process = &card->processes[card->process_count++];
    process->pid = pid;
    process->memory = (uint64_t)memory;
}

static void parse_card_line(int card, const char *key, const char *value) {
    static const char *const NAMES[VALUE_COUNT] = {
#define AS_NAME(name, idle) #name,
        CARD_VALUES(AS_NAME)
#undef AS_NAME
    };
    if (parse_rule(card, key, value)) return;
    int which = 0;
    while (which < VALUE_COUNT && strcmp(key, NAMES[which])) which++;
    int is_name = !strcmp(key, "name");
    int is_process = !strcmp(key, "process");
    if (which == VALUE_COUNT && !is_name && !is_process) {
        complain("unknown key", key);
        return;
    }
    for (int i = 0; i < MAX_CARDS; i++) {
        if (card != EVERY_CARD && card != i) continue;
        if (is_name)
            snprintf(scenario.cards[i].name, sizeof scenario.cards[i].name, "%s", value);
        else if (is_process)
            parse_process(&scenario.cards[i], value);
        else
            scenario.cards[i].numbers[which] = parse_number(value);
    }
}

static void parse_event(const char *value) {
    char type[16];
    struct event event;
    long long data;
    if (sscanf(value, "%llu %d %15s %lli", &event.number, &event.card, type, &data) != 4 ||
        strcmp(type, "xid") || scenario.event_count == MAX_EVENTS) {
        complain("not an event", value);
        return;
    }
    event.data = (uint64_t)data;
    scenario.events[scenario.event_count++] = event;
}

static void parse_line(char *line) {
    char key[128], value[256] = "";
    char *comment = strchr(line, '#');
    if (comment) *comment = 0;
    if (sscanf(line, "%127s %255[^\n]", key, value) < 1) return;
    for (size_t n = strlen(value); n && (value[n - 1] == ' ' || value[n - 1] == '\r');)
        value[--n] = 0;

    char *dot = strchr(key, '.');
    if (!strcmp(key, "gpus")) {
        int count = atoi(value);
        scenario.card_count = count < 0 ? 0 : count > MAX_CARDS ? MAX_CARDS : count;
    } else if (!strcmp(key, "driver")) {
        snprintf(scenario.driver, sizeof scenario.driver, "%.79s", value);
    } else if (!strcmp(key, "event")) {
        parse_event(value);
    } else if (dot) {
        *dot = 0;
        parse_card_line(*key == '*' ? EVERY_CARD : atoi(key), dot + 1, value);
    } else {
        complain("unknown line", key);
    }
}

static void start_afresh(void) {
    static const double IDLE[VALUE_COUNT] = {
#define AS_VALUE(name, idle) idle,
        CARD_VALUES(AS_VALUE)
#undef AS_VALUE
    };
    memset(&scenario, 0, sizeof scenario);
    scenario.card_count = DEFAULT_CARDS;
    strcpy(scenario.driver, "580.159.04");
    for (int i = 0; i < MAX_CARDS; i++) {
        strcpy(scenario.cards[i].name, "NVIDIA H200");
        for (int which = 0; which < VALUE_COUNT; which++)
            scenario.cards[i].numbers[which].start = IDLE[which];
    }
}

/* Read the file if it is another one than last time. The lock is held. */
static void refresh(void) {
    const char *path = getenv("FAKE_NVML_SCENARIO");
    struct stat seen;
    memset(&seen, 0, sizeof seen);
    if (path) stat(path, &seen);
    if (loaded && seen.st_ino == last_seen.st_ino && seen.st_size == last_seen.st_size &&
        !memcmp(&seen.st_mtim, &last_seen.st_mtim, sizeof seen.st_mtim))
        return;
    if (!loaded) loaded_at = seconds();
    loaded = 1;
    last_seen = seen;
    start_afresh();
    FILE *file = path ? fopen(path, "r") : NULL;
    if (!file) return;
    char line[512];
    while (fgets(line, sizeof line, file)) parse_line(line);
    fclose(file);
}

int scenario_cards(void) {
    pthread_mutex_lock(&lock);
    refresh();
    int count = scenario.card_count;
    pthread_mutex_unlock(&lock);
    return count;
}

void scenario_driver(char *version) {
    pthread_mutex_lock(&lock);
    refresh();
    strcpy(version, scenario.driver);
    pthread_mutex_unlock(&lock);
}

void scenario_card(int index, struct card *card) {
    pthread_mutex_lock(&lock);
    refresh();
    *card = scenario.cards[index];
    pthread_mutex_unlock(&lock);
}

double number_now(const struct number *number, int card) {
    return number_before(number, card, 0);
}

double number_before(const struct number *number, int card, double age_s) {
    double since = seconds() - loaded_at - age_s;
    if (since < 0) since = 0;
    if (number->period > 0) {
        double turns = since / number->period + card * 0.11; /* cards do not move in step */
        double part = turns - (double)(long long)turns;
        double height = part < 0.5 ? 2 * part : 2 - 2 * part;
        return number->start + (number->high - number->start) * height;
    }
    return number->start + number->rate * since;
}

void scenario_interruption(const char *function, int card, struct interruption *found) {
    memset(found, 0, sizeof *found);
    pthread_mutex_lock(&lock);
    refresh();
    for (int i = 0; i < scenario.rule_count; i++) {
        const struct rule *rule = &scenario.rules[i];
        if (rule->card != EVERY_CARD && rule->card != card) continue;
        int every_card_call = !strcmp(rule->function, "*");
        if (every_card_call ? card == NO_CARD : fnmatch(rule->function, function, 0) != 0) continue;
        if (rule->does.delay_us) found->delay_us = rule->does.delay_us;
        if (rule->does.signal) found->signal = rule->does.signal;
        if (rule->does.answer) found->answer = rule->does.answer;
        if (*rule->does.says) strcpy(found->says, rule->does.says);
    }
    pthread_mutex_unlock(&lock);
}

int scenario_next_event(struct event_cursor *cursor, int *card, uint64_t *data) {
    const struct event *next = NULL;
    pthread_mutex_lock(&lock);
    refresh();
    for (int i = 0; i < scenario.event_count; i++) {
        const struct event *event = &scenario.events[i];
        if (event->number <= cursor->last) continue;
        if (event->card < 0 || event->card >= scenario.card_count) continue;
        if (!(cursor->wanted[event->card] & EVENT_XID)) continue;
        if (!next || event->number < next->number) next = event;
    }
    if (next) {
        cursor->last = next->number;
        *card = next->card;
        *data = next->data;
    }
    pthread_mutex_unlock(&lock);
    return next != NULL;
}

void scenario_start_cursor(struct event_cursor *cursor) {
    pthread_mutex_lock(&lock);
    refresh();
    for (int i = 0; i < scenario.event_count; i++)
        if (scenario.events[i].number > cursor->last) cursor->last = scenario.events[i].number;
    pthread_mutex_unlock(&lock);
}
