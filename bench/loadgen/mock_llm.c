/* A streaming completion server that is never the bottleneck, and knows what it did.
 *
 *     mock_llm TTFT_US GAP_US BURST
 *
 * One thread, one epoll loop. It listens on a free port of the loopback and prints it. Each answer
 * has `max_tokens` events of one token, the first TTFT_US after the request was whole, the others
 * GAP_US apart; with GAP_US 0 as fast as it goes, BURST events in one write. GET /truth tells by
 * its own clock what it did: a TTFT ends, and a gap begins, just before the write of a token.
 * It ends when its stdin closes. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MAX_CONNECTIONS = 16384, MAX_REQUEST = 1 << 16, MAX_EVENT = 512, MAX_BURST = 64 };

struct durations { /* in microseconds */
    uint32_t *values;
    size_t count, room;
};

struct connection {
    int fd;
    char request[MAX_REQUEST];
    size_t received;
    char event[MAX_EVENT]; /* one token with its chunk framing */
    int event_bytes;
    char pending[MAX_BURST * MAX_EVENT]; /* what the socket did not take yet */
    int pending_bytes;
    int is_chat, tokens_left, is_first;
    int64_t asked_at, due_at, sent_at;
    int place; /* in the queue; -1: waits for a request */
};

static int64_t ttft_ns, gap_ns;
static int burst, poller;
static struct connection *connections[MAX_CONNECTIONS];
static struct connection *queue[MAX_CONNECTIONS]; /* a heap: the earliest due first */
static int queued, most_open;
static int64_t most_open_at; /* when that many requests were open for the first time */
static struct durations ttfts, gaps;
static uint64_t tokens_sent, requests;
static int64_t first_request_at, last_token_at;

static int64_t now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

/* -- the truth ------------------------------------------------------------------------------- */

static void note(struct durations *durations, int64_t ns) {
    if (durations->count == durations->room) {
        durations->room = durations->room ? 2 * durations->room : 4096;
        durations->values = realloc(durations->values, durations->room * sizeof(uint32_t));
    }
    durations->values[durations->count++] = (uint32_t)(ns / 1000);
}

static int ascending(const void *left, const void *right) {
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return (a > b) - (a < b);
}

static double percentile_s(struct durations *durations, double percent) {
    if (!durations->count) return 0;
    qsort(durations->values, durations->count, sizeof(uint32_t), ascending);
    size_t rank = (size_t)(percent / 100 * (double)(durations->count - 1));
    return durations->values[rank] / 1e6;
}

/* -- the queue of what is due ---------------------------------------------------------------- */

static void put(int place, struct connection *connection) {
    queue[place] = connection;
    connection->place = place;
}

static void sift(int place) {
    struct connection *moved = queue[place];
    while (place && queue[(place - 1) / 2]->due_at > moved->due_at) {
        put(place, queue[(place - 1) / 2]);
        place = (place - 1) / 2;
    }
    for (int child; (child = 2 * place + 1) < queued; place = child) {
        if (child + 1 < queued && queue[child + 1]->due_at < queue[child]->due_at) child++;
        if (queue[child]->due_at >= moved->due_at) break;
        put(place, queue[child]);
    }
    put(place, moved);
}

static void enqueue(struct connection *connection) {
    put(queued++, connection);
    sift(connection->place);
    if (queued > most_open) {
        most_open = queued;
        most_open_at = now_ns();
    }
}

static void dequeue(struct connection *connection) {
    int place = connection->place;
    if (place < 0) return;
    connection->place = -1;
    if (place != --queued) {
        put(place, queue[queued]);
        sift(place);
    }
}

/* -- answers --------------------------------------------------------------------------------- */

static void drop(struct connection *connection) {
    dequeue(connection);
    connections[connection->fd] = NULL;
    close(connection->fd);
    free(connection);
}

static void append(struct connection *connection, const char *data, int bytes) {
    memcpy(connection->pending + connection->pending_bytes, data, (size_t)bytes);
    connection->pending_bytes += bytes;
}

static void append_event(struct connection *connection, const char *data) {
    char chunk[MAX_EVENT];
    int bytes = (int)strlen(data) + 8; /* "data: " and the blank line */
    append(connection, chunk, snprintf(chunk, sizeof chunk, "%x\r\ndata: %s\n\n\r\n", bytes, data));
}

/* Whether the connection still stands; what the socket does not take stays pending. */
static int flush(struct connection *connection) {
    ssize_t sent = send(connection->fd, connection->pending, (size_t)connection->pending_bytes,
                        MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN) return 0;
    if (sent > 0) {
        connection->pending_bytes -= (int)sent;
        memmove(connection->pending, connection->pending + sent, (size_t)connection->pending_bytes);
    }
    return 1;
}

static void end_answer(struct connection *connection, int tokens) {
    char usage[MAX_EVENT];
    snprintf(usage, sizeof usage,
             "{\"id\":\"mock\",\"choices\":[],\"usage\":{\"prompt_tokens\":8,"
             "\"completion_tokens\":%d,\"total_tokens\":%d}}", tokens, tokens + 8);
    append_event(connection, usage);
    append_event(connection, "[DONE]");
    append(connection, "0\r\n\r\n", 5);
    dequeue(connection);
}

static int asked_tokens(const struct connection *connection) {
    const char *field = strstr(connection->request, "\"max_completion_tokens\"");
    if (!field) field = strstr(connection->request, "\"max_tokens\"");
    return field ? atoi(strchr(field, ':') + 1) : 16;
}

/* Send what is due now; whether the connection still stands. */
static int send_tokens(struct connection *connection) {
    int64_t now = now_ns();
    if (connection->pending_bytes) { /* the reader is behind: nothing new until it has read */
        connection->due_at = now + 100000;
        sift(connection->place);
        return flush(connection);
    }
    if (connection->is_first) note(&ttfts, now - connection->asked_at);
    for (int sent = 0; sent < (gap_ns ? 1 : burst) && connection->tokens_left; sent++) {
        if (!connection->is_first) note(&gaps, sent ? 0 : now - connection->sent_at);
        connection->is_first = 0;
        connection->sent_at = last_token_at = now;
        append(connection, connection->event, connection->event_bytes);
        connection->tokens_left--;
        tokens_sent++;
    }
    if (connection->tokens_left) {
        connection->due_at = gap_ns ? connection->due_at + gap_ns : now;
        sift(connection->place);
    } else {
        end_answer(connection, asked_tokens(connection));
        connection->received = 0;
    }
    return flush(connection);
}

static void begin_answer(struct connection *connection) {
    static const char head[] = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
                               "transfer-encoding: chunked\r\n\r\n";
    char data[MAX_EVENT - 32];
    int bytes = snprintf(
        data, sizeof data,
        connection->is_chat
            ? "data: {\"id\":\"chatcmpl-%llu\",\"object\":\"chat.completion.chunk\",\"created\":1,"
              "\"model\":\"mock\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\" token\"},"
              "\"logprobs\":null,\"finish_reason\":null,\"token_ids\":null}]}\n\n"
            : "data: {\"id\":\"cmpl-%llu\",\"object\":\"text_completion\",\"created\":1,"
              "\"model\":\"mock\",\"choices\":[{\"index\":0,\"text\":\" token\",\"logprobs\":null,"
              "\"finish_reason\":null,\"stop_reason\":null}]}\n\n",
        (unsigned long long)++requests);
    connection->event_bytes =
        snprintf(connection->event, sizeof connection->event, "%x\r\n%s\r\n", bytes, data);
    connection->asked_at = now_ns();
    if (!first_request_at) first_request_at = connection->asked_at;
    connection->tokens_left = asked_tokens(connection);
    connection->is_first = 1;
    connection->due_at = connection->asked_at + ttft_ns;
    append(connection, head, sizeof head - 1);
    if (connection->is_chat)
        append_event(connection, "{\"id\":\"mock\",\"choices\":[{\"index\":0,\"delta\":{\"role\":"
                                 "\"assistant\",\"content\":\"\"},\"finish_reason\":null}]}");
    flush(connection);
    enqueue(connection);
}

static void reply(struct connection *connection, const char *body) {
    char head[128];
    append(connection, head, snprintf(head, sizeof head,
                                      "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
                                      "content-length: %zu\r\n\r\n", strlen(body)));
    append(connection, body, (int)strlen(body));
    flush(connection);
    connection->received = 0;
}

static void tell_truth(struct connection *connection) {
    char page[512];
    double span_s = (double)(last_token_at - first_request_at) / 1e9;
    snprintf(page, sizeof page,
             "{\"requests\":%llu,\"tokens\":%llu,\"tokens_per_s\":%.1f,\"first_request_at\":%.6f,"
             "\"last_token_at\":%.6f,\"ttft_p50_s\":%.6f,\"ttft_p99_s\":%.6f,\"itl_p50_s\":%.6f,"
             "\"itl_p99_s\":%.6f,\"most_open\":%d,\"most_open_at\":%.6f}",
             (unsigned long long)requests, (unsigned long long)tokens_sent,
             span_s > 0 ? (double)tokens_sent / span_s : 0, (double)first_request_at / 1e9,
             (double)last_token_at / 1e9, percentile_s(&ttfts, 50), percentile_s(&ttfts, 99),
             percentile_s(&gaps, 50), percentile_s(&gaps, 99), most_open,
             (double)most_open_at / 1e9);
    reply(connection, page);
}

/* -- requests -------------------------------------------------------------------------------- */

static int is_whole(const struct connection *connection) {
    const char *end = strstr(connection->request, "\r\n\r\n");
    if (!end) return 0;
    const char *length = strcasestr(connection->request, "\r\ncontent-length:");
    size_t body = length && length < end ? (size_t)atol(length + 17) : 0;
    return connection->received >= (size_t)(end + 4 - connection->request) + body;
}

static void read_request(struct connection *connection) {
    size_t room = sizeof connection->request - 1 - connection->received;
    ssize_t got = recv(connection->fd, connection->request + connection->received, room, 0);
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) {
        drop(connection);
        return;
    }
    connection->received += (size_t)got;
    connection->request[connection->received] = 0;
    if (connection->place >= 0 || !is_whole(connection)) return;
    connection->is_chat = strstr(connection->request, " /v1/chat/completions") != NULL;
    if (connection->is_chat || strstr(connection->request, " /v1/completions"))
        begin_answer(connection);
    else if (strstr(connection->request, " /truth"))
        tell_truth(connection);
    else if (strstr(connection->request, " /v1/models"))
        reply(connection, "{\"object\":\"list\",\"data\":[{\"id\":\"mock\",\"object\":\"model\","
                          "\"max_model_len\":32768}]}");
    else
        reply(connection, "{}");
}

static void watch(int fd) {
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event);
}

static void accept_all(int listener) {
    int fd, on = 1;
    while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
        if (fd >= MAX_CONNECTIONS) {
            close(fd);
            continue;
        }
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        connections[fd] = calloc(1, sizeof *connections[fd]);
        connections[fd]->fd = fd;
        connections[fd]->place = -1;
        watch(fd);
    }
}

static int listen_on_loopback(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (bind(listener, (void *)&address, bytes) || listen(listener, 4096)) {
        perror("mock_llm: listen");
        exit(1);
    }
    getsockname(listener, (void *)&address, &bytes);
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);
    return listener;
}

static void serve(int listener) {
    struct epoll_event events[512];
    for (;;) {
        int64_t wait_ns = queued ? queue[0]->due_at - now_ns() : 1000000000;
        if (wait_ns < 0) wait_ns = 0;
        struct timespec wait = {wait_ns / 1000000000, wait_ns % 1000000000};
        int count = epoll_pwait2(poller, events, 512, &wait, NULL);
        for (int i = 0; i < count; i++) {
            int fd = events[i].data.fd;
            if (fd == STDIN_FILENO)
                return;
            else if (fd == listener)
                accept_all(listener);
            else if (connections[fd])
                read_request(connections[fd]);
        }
        int64_t now = now_ns();
        for (int turn = 0; turn < 64 && queued && queue[0]->due_at <= now; turn++) {
            struct connection *due = queue[0];
            if (!send_tokens(due)) drop(due);
        }
    }
}

int main(int argc, char **argv) {
    if (argc != 4 || atoi(argv[3]) < 1 || atoi(argv[3]) > MAX_BURST - 4) {
        fprintf(stderr, "usage: mock_llm TTFT_US GAP_US BURST (1 to %d)\n", MAX_BURST - 4);
        return 2;
    }
    ttft_ns = atoll(argv[1]) * 1000;
    gap_ns = atoll(argv[2]) * 1000;
    burst = atoi(argv[3]);
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    prctl(PR_SET_TIMERSLACK, 1UL, 0, 0, 0);
    signal(SIGPIPE, SIG_IGN);
    poller = epoll_create1(0);
    int listener = listen_on_loopback();
    watch(listener);
    watch(STDIN_FILENO);
    serve(listener);
    return 0;
}
