/* What a program may do wrong with the calls of rota_vc.h, and what each then says: "vcmisuse NODE" alone, where no program
 * of NODE listens to service 99. Ends with 0 and "all right", or names the line. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rota_vc.h>

static int wrong;
static char room[64];

/* The call fails with that errno, and has a sentence. */
#define FAILS(call, wanted)                                                                                       \
    do {                                                                                                          \
        long got;                                                                                                 \
        errno = 0;                                                                                                \
        got = (long)(call);                                                                                       \
        if (got != -1 || errno != (wanted) || !*rota_error()) {                                                   \
            printf("line %d: %s: %ld, %s (%s)\n", __LINE__, #call, got, strerror(errno), rota_error());           \
            wrong = 1;                                                                                            \
        }                                                                                                         \
    } while (0)
#define IS(call, wanted)                                                                                          \
    do {                                                                                                          \
        long got = (long)(call);                                                                                  \
        if (got != (wanted)) {                                                                                    \
            printf("line %d: %s: %ld, not %ld (%s)\n", __LINE__, #call, got, (long)(wanted), rota_error());       \
            wrong = 1;                                                                                            \
        }                                                                                                         \
    } while (0)

/* Every call with a number that is no handle. */
static void no_handle(int vc)
{
    IS(rota_vc_is(vc), 0);
    FAILS(rota_vc_bind(vc, 1), EBADF);
    FAILS(rota_vc_listen(vc, 1), EBADF);
    FAILS(rota_vc_accept(vc, room, sizeof room), EBADF);
    FAILS(rota_vc_connect(vc, "n2", 1, NULL), EBADF);
    FAILS(rota_vc_send(vc, room, 1, 0), EBADF);
    FAILS(rota_vc_recv(vc, room, 1, 0), EBADF);
    FAILS(rota_vc_next(vc, NULL), EBADF);
    FAILS(rota_vc_descriptor(vc, POLLIN), EBADF);
    FAILS(rota_vc_shutdown(vc, SHUT_WR), EBADF);
    FAILS(rota_vc_close(vc), EBADF);
    FAILS(rota_vc_set(vc, ROTA_VC_NONBLOCK, 1), EBADF);
    FAILS(rota_vc_get(vc, ROTA_VC_NONBLOCK), EBADF);
}

/* A handle without a circuit. */
static void unconnected(int vc)
{
    struct pollfd wait = { vc, POLLIN | POLLOUT, 0 };
    FAILS(rota_vc_listen(vc, 1), EINVAL);
    FAILS(rota_vc_accept(vc, NULL, 0), EINVAL);
    FAILS(rota_vc_send(vc, room, 1, 0), ENOTCONN);
    FAILS(rota_vc_recv(vc, room, 1, 0), ENOTCONN);
    FAILS(rota_vc_next(vc, NULL), ENOTCONN);
    FAILS(rota_vc_shutdown(vc, SHUT_RDWR), ENOTCONN);
    FAILS(rota_vc_get(vc, ROTA_VC_KIND), ENOTCONN);
    FAILS(rota_vc_get(vc, ROTA_VC_LOST_TPDUS), ENOTCONN);
    FAILS(rota_vc_get(vc, ROTA_VC_LOST_MESSAGES), ENOTCONN);
    FAILS(rota_vc_get(vc, ROTA_VC_GAP), ENOTCONN);
    IS(rota_vc_poll(&wait, 1, 1), 0);
}

/* Lengths, pointers, flags and options. */
static void arguments(int vc)
{
    int option;
    FAILS(rota_vc_socket("a/b"), EINVAL);
    FAILS(rota_vc_socket("\xff"), EINVAL);
    FAILS(rota_vc_accept(vc, room, (size_t)-1), EMSGSIZE);
    FAILS(rota_vc_connect(vc, NULL, 1, NULL), EINVAL);
    FAILS(rota_vc_connect(vc, "\xff", 1, NULL), EINVAL);
    FAILS(rota_vc_send(vc, NULL, 1, 0), EINVAL);
    FAILS(rota_vc_send(vc, room, (size_t)-1, 0), EMSGSIZE);
    FAILS(rota_vc_send(vc, room, 1, 64), EINVAL);
    FAILS(rota_vc_recv(vc, NULL, 1, 0), EINVAL);
    FAILS(rota_vc_recv(vc, room, (size_t)-1, 0), EMSGSIZE);
    FAILS(rota_vc_recv(vc, room, 1, ROTA_VC_MORE), EINVAL);
    FAILS(rota_vc_shutdown(vc, 3), EINVAL);
    FAILS(rota_vc_shutdown(vc, -1), EINVAL);
    FAILS(rota_vc_descriptor(vc, POLLIN | POLLOUT), EINVAL);
    FAILS(rota_vc_poll(NULL, 1, 0), EINVAL);
    FAILS(rota_vc_poll(NULL, (size_t)-1, 0), EMSGSIZE);
    IS(rota_vc_poll(NULL, 0, 0), 0);
    for (option = -1; option < 12; option++) {
        FAILS(rota_vc_set(vc, option, -1), EINVAL);
        FAILS(rota_vc_set(vc, option, 1l << 50), EINVAL);
    }
    FAILS(rota_vc_set(vc, ROTA_VC_WINDOW, 0), EINVAL);
    FAILS(rota_vc_set(vc, ROTA_VC_KIND, 0), EINVAL);
    FAILS(rota_vc_set(vc, ROTA_VC_GAP, 0), EINVAL);
    FAILS(rota_vc_get(vc, 15), EINVAL);
    FAILS(rota_vc_set(vc, ROTA_VC_TAKES, 0), EINVAL);
    FAILS(rota_vc_set(vc, ROTA_VC_TAKES, 8), EINVAL);
    FAILS(rota_vc_set(vc, ROTA_VC_REASON, -1), EINVAL);
    IS(rota_vc_get(vc, ROTA_VC_TAKES), 7);
    FAILS(rota_vc_certificate(vc, NULL, 0), ENOTCONN);
    IS(rota_vc_set(vc, ROTA_VC_TIMEOUT_MS, 5000), 0);
    IS(rota_vc_get(vc, ROTA_VC_TIMEOUT_MS), 5000);
}

static void qualities(int vc)
{
    const rota_vc_qos usual = { .size = sizeof usual };
    rota_vc_qos qos = usual;
    qos.size = 0;
    FAILS(rota_vc_connect(vc, "n2", 1, &qos), EINVAL);
    qos = usual, qos.kind = 2;
    FAILS(rota_vc_connect(vc, "n2", 1, &qos), EINVAL);
    qos = usual, qos.simplex = 9;
    FAILS(rota_vc_connect(vc, "n2", 1, &qos), EINVAL);
    /* A duplex circuit begins with a greeting each way, which must arrive. */
    qos = usual, qos.unreliable = 1;
    FAILS(rota_vc_connect(vc, "n2", 1, &qos), EINVAL);
    IS(strstr(rota_error(), "simplex") != NULL, 1);
    qos = usual, qos.level = 8;
    FAILS(rota_vc_connect(vc, "n2", 1, &qos), EINVAL);
    qos = usual, qos.window = 16385;
    FAILS(rota_vc_connect(vc, "n2", 1, &qos), EINVAL);
    qos = usual, qos.flow = 4;
    FAILS(rota_vc_connect(vc, "n2", 1, &qos), EINVAL);
    /* A channel carries what has no error control, in one direction, at a rate. */
    qos = usual, qos.flow = ROTA_VC_CHANNEL_FLOW, qos.rate_bps = 1000000, qos.simplex = 1;
    FAILS(rota_vc_connect(vc, "n2", 1, &qos), EINVAL);
    qos.unreliable = 1, qos.rate_bps = 0;
    FAILS(rota_vc_connect(vc, "n2", 1, &qos), EINVAL);
    qos = usual, qos.flow = ROTA_VC_BUCKET_FLOW;
    FAILS(rota_vc_connect(vc, "n2", 1, &qos), EINVAL);
    qos = usual, qos.reserved[1] = 1;
    FAILS(rota_vc_connect(vc, "n2", 1, &qos), EINVAL);
}

/* What the nodes refuse; each handle has one try. */
static void refusals(const char *node)
{
    rota_vc_qos qos = { .size = sizeof qos, .unreliable = 1, .simplex = 1, .flow = ROTA_VC_OPEN_FLOW };
    int vc, other = -1;
    IS((vc = rota_vc_socket(NULL)) >= 0, 1);
    FAILS(rota_vc_connect(vc, node, 99, NULL), EHOSTUNREACH);
    FAILS(rota_vc_send(vc, room, 1, 0), EHOSTUNREACH);
    IS(rota_vc_close(vc), 0);
    IS((vc = rota_vc_socket(NULL)) >= 0, 1);
    FAILS(rota_vc_connect(vc, "nobody", 99, NULL), EHOSTUNREACH);
    IS(rota_vc_close(vc), 0);
    IS((vc = rota_vc_socket(NULL)) >= 0, 1);
    FAILS(rota_vc_connect(vc, node, 99, &qos), EHOSTUNREACH);
    IS(rota_vc_close(vc), 0);
    qos.flow = ROTA_VC_CHANNEL_FLOW, qos.rate_bps = 1000000;
    IS((vc = rota_vc_socket(NULL)) >= 0, 1);
    FAILS(rota_vc_connect(vc, node, 99, &qos), EHOSTUNREACH);
    IS(rota_vc_close(vc), 0);
    qos.peak_bps = 1;
    IS((vc = rota_vc_socket(NULL)) >= 0, 1);
    FAILS(rota_vc_connect(vc, node, 99, &qos), EINVAL);
    IS(rota_vc_close(vc), 0);
    IS((vc = rota_vc_socket(NULL)) >= 0 && (other = rota_vc_socket(NULL)) >= 0, 1);
    IS(rota_vc_bind(vc, 98), 0);
    FAILS(rota_vc_bind(vc, 98), EINVAL);
    IS(rota_vc_listen(vc, 1), 0);
    FAILS(rota_vc_listen(vc, 1), EINVAL);
    FAILS(rota_vc_recv(vc, room, 1, 0), ENOTCONN);
    FAILS(rota_vc_connect(vc, node, 99, NULL), EINVAL);
    IS(rota_vc_bind(other, 98), 0);
    FAILS(rota_vc_listen(other, 1), EADDRINUSE);
    IS(rota_vc_set(vc, ROTA_VC_NONBLOCK, 1), 0);
    FAILS(rota_vc_accept(vc, NULL, 0), EAGAIN);
    IS(rota_vc_set(vc, ROTA_VC_NONBLOCK, 0), 0);
    IS(rota_vc_set(vc, ROTA_VC_TIMEOUT_MS, 1), 0);
    FAILS(rota_vc_accept(vc, NULL, 0), ETIMEDOUT);
    IS(rota_vc_close(vc), 0);
    IS(rota_vc_close(other), 0);
    IS((vc = rota_vc_socket("no-such-node")) >= 0, 1);
    FAILS(rota_vc_connect(vc, node, 99, NULL), ENETDOWN);
    IS(rota_vc_close(vc), 0);
}

/* A handle that was closed by close(2): its number is another handle's later, or another file's. */
static void stolen(void)
{
    int vc = rota_vc_socket(NULL), again;
    IS(vc >= 0, 1);
    close(vc);
    no_handle(vc);
    IS((again = rota_vc_socket(NULL)) >= 0, 1);
    IS(rota_vc_is(again), 1);
    unconnected(again);
    IS(rota_vc_close(again), 0);
    no_handle(again);
}

int main(int argc, char **argv)
{
    static const int numbers[] = { -1, 0, 1, 2, 3, 1000, 1 << 30, -2147483647 - 1, 2147483647 };
    size_t k;
    int vc;
    for (k = 0; k < sizeof numbers / sizeof *numbers; k++)
        no_handle(numbers[k]);
    vc = rota_vc_socket(NULL);
    IS(vc >= 0, 1);
    unconnected(vc);
    arguments(vc);
    qualities(vc);
    IS(rota_vc_close(vc), 0);
    no_handle(vc);
    stolen();
    if (argc == 2)
        refusals(argv[1]);
    if (!wrong)
        puts("all right");
    return wrong;
}
