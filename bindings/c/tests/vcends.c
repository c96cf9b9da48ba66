/* Edges of messages and of ends: "vcends serve SERVICE" in one station, "vcends ask NODE SERVICE" in another. Each ends with
 * 0 and "all right", or names the line. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rota_vc.h>

enum { LONG = 3 << 20 };
static int wrong;
static char room[LONG];

#define EXPECT(call, wanted, error)                                                                               \
    do {                                                                                                          \
        long got;                                                                                                 \
        errno = 0;                                                                                                \
        got = (long)(call);                                                                                       \
        if (got != (wanted) || (got < 0 && errno != (error))) {                                                   \
            printf("line %d: %s: %ld, %s (%s)\n", __LINE__, #call, got, strerror(errno), rota_error());           \
            wrong = 1;                                                                                            \
        }                                                                                                         \
    } while (0)

static int sends_until_refused(int vc)
{
    while (rota_vc_send(vc, room, 100, 0) == 100)
        usleep(20000);
    return errno;
}

static int serve(const char *service)
{
    size_t octets = 77;
    int ears = rota_vc_socket(NULL), vc;
    EXPECT(rota_vc_bind(ears, atoi(service)), 0, 0);
    EXPECT(rota_vc_listen(ears, 4), 0, 0);
    EXPECT(rota_vc_set(ears, ROTA_VC_MESSAGE_MAX, LONG), 0, 0);
    fprintf(stderr, "listening\n");
    /* The simplex circuit that came before is dropped, and does not appear here. */
    EXPECT((vc = rota_vc_accept(ears, room, 2)) >= 0, 1, 0);
    EXPECT(strcmp(room, "n"), 0, 0);
    EXPECT(rota_vc_get(vc, ROTA_VC_KIND), ROTA_VC_MESSAGES, 0);
    EXPECT(rota_vc_recv(vc, room, 4, 0), -1, EMSGSIZE);
    EXPECT(rota_vc_next(vc, &octets), 1, 0);
    EXPECT(octets, 8, 0);
    EXPECT(rota_vc_recv(vc, room, 8, 0), 8, 0);
    EXPECT(memcmp(room, "abcdefgh", 8), 0, 0);
    EXPECT(rota_vc_next(vc, &octets), 1, 0);
    EXPECT(octets, 0, 0);
    EXPECT(rota_vc_recv(vc, room, sizeof room, 0), 0, 0);
    EXPECT(rota_vc_recv(vc, room, sizeof room, 0), LONG, 0);
    EXPECT(room[0] == 1 && room[LONG - 1] == 2, 1, 0);
    EXPECT(rota_vc_next(vc, &octets), 0, 0);
    EXPECT(rota_vc_recv(vc, room, 1, 0), 0, 0);
    /* The other program takes nothing any more. */
    EXPECT(sends_until_refused(vc), ECONNRESET, 0);
    rota_vc_close(vc);
    /* A message larger than it may be ends its circuit. */
    EXPECT((vc = rota_vc_accept(ears, NULL, 0)) >= 0, 1, 0);
    EXPECT(rota_vc_set(vc, ROTA_VC_MESSAGE_MAX, 1000), 0, 0);
    EXPECT(rota_vc_recv(vc, room, sizeof room, 0), -1, EMSGSIZE);
    EXPECT(rota_vc_close(vc), 0, 0);
    EXPECT((vc = rota_vc_accept(ears, NULL, 0)) >= 0, 1, 0);
    EXPECT(rota_vc_recv(vc, room, sizeof room, 0), 0, 0);
    usleep(1000000);
    EXPECT(rota_vc_close(vc), 0, 0);
    EXPECT(rota_vc_close(ears), 0, 0);
    return wrong;
}

static void *waits(void *vc)
{
    EXPECT(rota_vc_recv(*(int *)vc, room, 1, 0), -1, EBADF);
    return NULL;
}

static int ask(const char *node, const char *service)
{
    rota_vc_qos qos = { .size = sizeof qos, .kind = ROTA_VC_MESSAGES, .simplex = 1 };
    pthread_t thread;
    int vc = rota_vc_socket(NULL);
    /* Simplex, where the listener takes duplex circuits. */
    EXPECT(rota_vc_connect(vc, node, atoi(service), &qos), 0, 0);
    EXPECT(rota_vc_recv(vc, room, 1, 0), -1, ENOTCONN);
    EXPECT(sends_until_refused(vc), ECONNRESET, 0);
    EXPECT(rota_vc_close(vc), -1, ECONNRESET);
    qos.simplex = 0;
    vc = rota_vc_socket(NULL);
    EXPECT(rota_vc_connect(vc, node, atoi(service), &qos), 0, 0);
    EXPECT(rota_vc_send(vc, "abcdefgh", 8, 0), 8, 0);
    EXPECT(rota_vc_send(vc, NULL, 0, 0), 0, 0);
    room[0] = 1, room[LONG - 1] = 2;
    EXPECT(rota_vc_send(vc, room, LONG / 2, ROTA_VC_MORE), LONG / 2, 0);
    EXPECT(rota_vc_shutdown(vc, SHUT_WR), -1, EINVAL);
    EXPECT(rota_vc_send(vc, room + LONG / 2, LONG / 2, 0), LONG / 2, 0);
    EXPECT(rota_vc_shutdown(vc, SHUT_WR), 0, 0);
    EXPECT(rota_vc_send(vc, room, 1, 0), -1, EPIPE);
    EXPECT(rota_vc_set(vc, ROTA_VC_NONBLOCK, 1), 0, 0);
    EXPECT(rota_vc_shutdown(vc, SHUT_RD), 0, 0);
    EXPECT(rota_vc_recv(vc, room, 1, 0), 0, 0);
    EXPECT(rota_vc_close(vc), 0, 0);
    /* This message is larger than the other program allows. */
    vc = rota_vc_socket(NULL);
    EXPECT(rota_vc_connect(vc, node, atoi(service), &qos), 0, 0);
    rota_vc_send(vc, room, LONG, 0);
    EXPECT(rota_vc_recv(vc, room, 1, 0), 0, 0);
    EXPECT(rota_vc_close(vc), -1, ECONNRESET);
    /* A thread that waits hears that another one has closed. */
    vc = rota_vc_socket(NULL);
    EXPECT(rota_vc_connect(vc, node, atoi(service), &qos), 0, 0);
    EXPECT(pthread_create(&thread, NULL, waits, &vc), 0, 0);
    usleep(200000);
    EXPECT(rota_vc_close(vc), 0, 0);
    pthread_join(thread, NULL);
    return wrong;
}

int main(int argc, char **argv)
{
    int failed = argc == 3 ? serve(argv[2]) : argc == 4 ? ask(argv[2], argv[3]) : 2;
    if (!failed)
        puts("all right");
    return failed;
}
