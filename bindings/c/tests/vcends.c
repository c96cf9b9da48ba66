/* Edges of messages and of ends, and two threads that send: "vcends serve SERVICE" in one station, "vcends ask NODE SERVICE" in
 * another. Circuits without error control: "vcends lossy SERVICE" and "vcends spray NODE SERVICE". A node that dies under
 * rota_vc_poll: "vcends orphan NODE SERVICE". Each ends with 0 and "all right", or names the line. */
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

enum { EACH = 3, PIECE = 300000, SPRAYED = 200 };

/* Messages of two threads, each of one letter. */
static void uniform(int vc)
{
    int count, of_a = 0;
    for (count = 0; count < 2 * EACH; count++) {
        EXPECT(rota_vc_recv(vc, room, sizeof room, 0), PIECE, 0);
        EXPECT(memcmp(room, room + 1, PIECE - 1), 0, 0);
        of_a += *room == 'a';
    }
    EXPECT(of_a, EACH, 0);
    EXPECT(rota_vc_recv(vc, room, 1, 0), 0, 0);
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
    EXPECT((vc = rota_vc_accept(ears, NULL, 0)) >= 0, 1, 0);
    uniform(vc);
    EXPECT(rota_vc_close(vc), 0, 0);
    EXPECT(rota_vc_close(ears), 0, 0);
    return wrong;
}

static void *waits(void *vc)
{
    EXPECT(rota_vc_recv(*(int *)vc, room, 1, 0), -1, EBADF);
    return NULL;
}

struct letter {
    int vc;
    char letter;
    char octets[PIECE];
};

static void *sends(void *given)
{
    struct letter *of = given;
    int count;
    memset(of->octets, of->letter, PIECE);
    for (count = 0; count < EACH; count++)
        EXPECT(rota_vc_send(of->vc, of->octets, PIECE, 0), PIECE, 0);
    return NULL;
}

static void two_threads(int vc)
{
    static struct letter both[2];
    pthread_t threads[2];
    int k;
    for (k = 0; k < 2; k++) {
        both[k].vc = vc, both[k].letter = "ab"[k];
        EXPECT(pthread_create(&threads[k], NULL, sends, &both[k]), 0, 0);
    }
    for (k = 0; k < 2; k++)
        pthread_join(threads[k], NULL);
}

/* Takes messages of "spray": a number and then one letter. Says what came and what is lost. */
static int lossy(const char *service)
{
    int ears = rota_vc_socket(NULL), vc, last = -1, came = 0, number;
    long gap = 0;
    ssize_t octets;
    EXPECT(rota_vc_bind(ears, atoi(service)), 0, 0);
    EXPECT(rota_vc_set(ears, ROTA_VC_SIMPLEX, 1), 0, 0);
    EXPECT(rota_vc_listen(ears, 1), 0, 0);
    fprintf(stderr, "listening\n");
    EXPECT((vc = rota_vc_accept(ears, NULL, 0)) >= 0, 1, 0);
    while ((octets = rota_vc_recv(vc, room, sizeof room, 0)) > 0) {
        EXPECT(octets, 3000, 0);
        memcpy(&number, room, sizeof number);
        EXPECT(number > last && number < SPRAYED, 1, 0);
        EXPECT(memcmp(room + 4, room + 5, 3000 - 5), 0, 0);
        last = number, came++;
        gap += rota_vc_get(vc, ROTA_VC_GAP);
        EXPECT(rota_vc_get(vc, ROTA_VC_GAP), 0, 0);
    }
    EXPECT(octets, 0, 0);
    EXPECT(came > 10 && came < SPRAYED, 1, 0);
    EXPECT(gap > 0 && gap <= rota_vc_get(vc, ROTA_VC_LOST_TPDUS), 1, 0);
    EXPECT(rota_vc_get(vc, ROTA_VC_LOST_MESSAGES), SPRAYED - came, 0);
    EXPECT(rota_vc_close(vc), 0, 0);
    EXPECT(rota_vc_close(ears), 0, 0);
    return wrong;
}

static int spray(const char *node, const char *service)
{
    rota_vc_qos qos = { .size = sizeof qos, .kind = ROTA_VC_MESSAGES, .simplex = 1, .unreliable = 1 };
    int vc = rota_vc_socket(NULL), number;
    qos.flow = ROTA_VC_OPEN_FLOW;
    EXPECT(rota_vc_connect(vc, node, atoi(service), &qos), 0, 0);
    EXPECT(rota_vc_get(vc, ROTA_VC_GAP), -1, ENOTCONN);
    /* It could never arrive. */
    EXPECT(rota_vc_send(vc, room, LONG, 0), -1, EMSGSIZE);
    for (number = 0; number < SPRAYED; number++) {
        memset(room, 'a' + number % 26, 3000);
        memcpy(room, &number, sizeof number);
        EXPECT(rota_vc_send(vc, room, 3000, 0), 3000, 0);
        /* Slow enough for a receiver that others hold up: the wire alone is to lose. */
        usleep(2000);
    }
    EXPECT(rota_vc_close(vc), 0, 0);
    return wrong;
}

/* Nothing comes until the node of this station is killed. */
static int orphan(const char *node, const char *service)
{
    rota_vc_qos qos = { .size = sizeof qos, .kind = ROTA_VC_MESSAGES };
    struct pollfd wait = { .events = POLLIN };
    wait.fd = rota_vc_socket(NULL);
    EXPECT(rota_vc_connect(wait.fd, node, atoi(service), &qos), 0, 0);
    fprintf(stderr, "waits\n");
    EXPECT(rota_vc_poll(&wait, 1, -1), 1, 0);
    EXPECT(wait.revents, POLLIN, 0);
    EXPECT(rota_vc_recv(wait.fd, room, 1, 0), -1, ENETDOWN);
    rota_vc_close(wait.fd);
    return wrong;
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
    vc = rota_vc_socket(NULL);
    EXPECT(rota_vc_connect(vc, node, atoi(service), &qos), 0, 0);
    two_threads(vc);
    EXPECT(rota_vc_close(vc), 0, 0);
    return wrong;
}

int main(int argc, char **argv)
{
    const char *what = argc > 2 ? argv[1] : "";
    int failed = 2;
    if (argc == 3)
        failed = strcmp(what, "lossy") ? serve(argv[2]) : lossy(argv[2]);
    if (argc == 4)
        failed = !strcmp(what, "spray") ? spray(argv[2], argv[3])
            : !strcmp(what, "orphan") ? orphan(argv[2], argv[3])
            : ask(argv[2], argv[3]);
    if (!failed)
        puts("all right");
    return failed;
}
