/* Circuits as sockets. "vc serve 7" answers each message by its octets turned round, until the circuit has ended; "vc ask n2 7
 * COUNT" asks so often. "vc take 8" adds up the octets of a stream that "vc give n2 8 OCTETS" sends, without blocking; "vc give
 * n2 8 OCTETS RATE" sends them on a guaranteed circuit at so many bit/s. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <unistd.h>

#include <rota_vc.h>

static char buffer[1 << 16];

static int die(const char *what)
{
    fprintf(stderr, "vc: %s: %s\n", what, rota_error());
    return 1;
}

static int listener(const char *service, int simplex)
{
    int vc = rota_vc_socket(NULL);
    if (vc < 0 || rota_vc_set(vc, ROTA_VC_SIMPLEX, simplex) || rota_vc_bind(vc, atoi(service)) || rota_vc_listen(vc, 4))
        return -1;
    fprintf(stderr, "listening\n");
    return vc;
}

static int serve(const char *service)
{
    char from[64];
    size_t octets, k;
    int ears, vc, count = 0, there;
    if ((ears = listener(service, 0)) < 0 || (vc = rota_vc_accept(ears, from, sizeof from)) < 0)
        return die("accept");
    while ((there = rota_vc_next(vc, &octets)) > 0) {
        char *message = malloc(octets + 1), turned;
        if (!message || rota_vc_recv(vc, message, octets, 0) < 0)
            return die("recv");
        for (k = 0; k < octets / 2; k++)
            turned = message[k], message[k] = message[octets - 1 - k], message[octets - 1 - k] = turned;
        if (rota_vc_send(vc, message, octets, 0) != (ssize_t)octets)
            return die("send");
        free(message);
        count++;
    }
    if (there < 0 || rota_vc_close(vc) || rota_vc_close(ears))
        return die("end");
    printf("%d messages of %s answered\n", count, from);
    return 0;
}

static int ask(const char *node, const char *service, int count)
{
    rota_vc_qos qos = { .size = sizeof qos, .kind = ROTA_VC_MESSAGES };
    char word[32];
    int vc = rota_vc_socket(NULL), k;
    if (vc < 0 || rota_vc_connect(vc, node, atoi(service), &qos))
        return die("connect");
    for (k = 0; k < count; k++) {
        ssize_t octets = snprintf(word, sizeof word, "message %d", k), j;
        if (rota_vc_send(vc, word, octets, 0) != octets || rota_vc_recv(vc, buffer, sizeof buffer, 0) != octets)
            return die("message");
        for (j = 0; j < octets; j++)
            if (buffer[j] != word[octets - 1 - j])
                return printf("WRONG: %.*s\n", (int)octets, buffer), 1;
    }
    if (rota_vc_shutdown(vc, SHUT_WR) || rota_vc_recv(vc, buffer, sizeof buffer, 0) || rota_vc_close(vc))
        return die("end");
    printf("%d answers\n", count);
    return 0;
}

/* The three ways of the system to wait know a handle as any other descriptor. */
static int wait_for(int vc)
{
    struct pollfd one = { .fd = vc, .events = POLLIN };
    struct epoll_event event = { .events = EPOLLIN };
    struct timeval time = { .tv_sec = 20 };
    static int turn;
    fd_set set;
    int all, found;
    switch (turn++ % 3) {
    case 0:
        return poll(&one, 1, 20000);
    case 1:
        FD_ZERO(&set);
        FD_SET(vc, &set);
        return select(vc + 1, &set, NULL, NULL, &time);
    default:
        all = epoll_create1(EPOLL_CLOEXEC);
        if (epoll_ctl(all, EPOLL_CTL_ADD, vc, &event))
            return -1;
        found = epoll_wait(all, &event, 1, 20000);
        close(all);
        return found;
    }
}

/* The octets are numbers of their places. */
static int take(const char *service)
{
    unsigned long sum = 0;
    ssize_t octets, k;
    int ears, vc;
    if ((ears = listener(service, 1)) < 0 || wait_for(ears) != 1 || (vc = rota_vc_accept(ears, NULL, 0)) < 0)
        return die("accept");
    if (rota_vc_set(vc, ROTA_VC_NONBLOCK, 1))
        return die("set");
    while ((octets = rota_vc_recv(vc, buffer, sizeof buffer, 0))) {
        if (octets < 0 && errno != EAGAIN)
            return die("recv");
        if (octets < 0 && wait_for(vc) != 1)
            return die("wait");
        for (k = 0; k < octets; k++)
            if ((unsigned char)buffer[k] != (unsigned char)((sum + k) * 31 >> 3))
                return printf("WRONG at %lu\n", sum + k), 1;
        sum += octets < 0 ? 0 : octets;
    }
    printf("%lu octets taken\n", sum);
    return rota_vc_close(vc) || rota_vc_close(ears) ? die("close") : 0;
}

static int give(const char *node, const char *service, unsigned long count, unsigned long rate)
{
    rota_vc_qos qos = { .size = sizeof qos, .simplex = 1, .rate_bps = rate };
    struct pollfd wait = { .events = POLLOUT };
    unsigned long at = 0, k;
    if (rate)
        qos.unreliable = 1, qos.flow = ROTA_VC_CHANNEL_FLOW;
    if ((wait.fd = rota_vc_socket(NULL)) < 0 || rota_vc_set(wait.fd, ROTA_VC_NONBLOCK, 1))
        return die("socket");
    if (rota_vc_connect(wait.fd, node, atoi(service), &qos) && errno != EINPROGRESS)
        return die("connect");
    if (rota_vc_poll(&wait, 1, 20000) != 1 || rota_vc_connect(wait.fd, node, atoi(service), &qos) == 0 || errno != EISCONN)
        return die("open");
    if (rate)
        fprintf(stderr, "each %ld octets within %ld us\n", rota_vc_get(wait.fd, ROTA_VC_TPDU), rota_vc_get(wait.fd, ROTA_VC_BOUND_NS) / 1000);
    while (at < count) {
        unsigned long room = count - at < sizeof buffer ? count - at : sizeof buffer;
        ssize_t octets;
        for (k = 0; k < room; k++)
            buffer[k] = (char)((at + k) * 31 >> 3);
        octets = rota_vc_send(wait.fd, buffer, room, 0);
        if (octets < 0 && errno != EAGAIN)
            return die("send");
        if (octets < 0 && rota_vc_poll(&wait, 1, 20000) != 1)
            return die("poll");
        at += octets < 0 ? 0 : octets;
    }
    if (rota_vc_close(wait.fd))
        return die("close");
    printf("%lu octets given\n", at);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 3 && !strcmp(argv[1], "serve"))
        return serve(argv[2]);
    if (argc == 3 && !strcmp(argv[1], "take"))
        return take(argv[2]);
    if (argc == 5 && !strcmp(argv[1], "ask"))
        return ask(argv[2], argv[3], atoi(argv[4]));
    if ((argc == 5 || argc == 6) && !strcmp(argv[1], "give"))
        return give(argv[2], argv[3], strtoul(argv[4], NULL, 10), argc == 6 ? strtoul(argv[5], NULL, 10) : 0);
    fprintf(stderr, "usage: vc serve|take SERVICE | vc ask NODE SERVICE COUNT | vc give NODE SERVICE OCTETS [RATE]\n");
    return 2;
}
