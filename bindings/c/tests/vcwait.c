/* Circuits under select, poll and epoll, the last one also where it tells of changes alone: "vcwait serve SERVICE" in one
 * station, "vcwait ask NODE SERVICE" in another. Each call of the library gives EAGAIN before it is waited for. Each program
 * ends with 0 and "all right", or names the line. */
#include <sys/epoll.h>
#include <sys/select.h>

#include "vcexpect.h"

enum { SELECT, POLL, EPOLL, EDGE, WAYS, TOTAL = 3000000, SECONDS = 20 };
static char room[100000];

/* A way to wait, and the descriptor that is waited for. */
struct wait {
    int way, fd, epoll;
};

static struct wait wait_of(int way, int fd)
{
    struct wait wait = { way, fd, -1 };
    struct epoll_event event = { .events = EPOLLIN | (way == EDGE ? EPOLLET : 0) };
    if (way >= EPOLL) {
        EXPECT((wait.epoll = epoll_create1(0)) >= 0, 1);
        EXPECT(epoll_ctl(wait.epoll, EPOLL_CTL_ADD, fd, &event), 0);
    }
    return wait;
}

/* Until the descriptor is readable. */
static void until(struct wait *wait)
{
    struct timeval time = { SECONDS, 0 };
    struct pollfd polled = { wait->fd, POLLIN, 0 };
    struct epoll_event event;
    fd_set set;
    FD_ZERO(&set);
    FD_SET(wait->fd, &set);
    switch (wait->way) {
    case SELECT:
        EXPECT(select(wait->fd + 1, &set, NULL, NULL, &time), 1);
        break;
    case POLL:
        EXPECT(poll(&polled, 1, SECONDS * 1000), 1);
        break;
    default:
        EXPECT(epoll_wait(wait->epoll, &event, 1, SECONDS * 1000), 1);
    }
}

static void let_go(struct wait *wait)
{
    if (wait->epoll >= 0)
        close(wait->epoll);
}

static ssize_t take(int vc, long most)
{
    (void)most;
    return rota_vc_recv(vc, room, sizeof room, 0);
}

static ssize_t give(int vc, long most)
{
    return rota_vc_send(vc, room, most < (long)sizeof room ? most : (long)sizeof room, 0);
}

/* Takes or gives so many octets, and waits where there are none or is no room. Returns how often it waited. */
static int pass(int vc, ssize_t (*some)(int vc, long most), struct wait wait, long octets)
{
    int waits = 0;
    while (octets > 0 && !wrong) {
        ssize_t passed = some(vc, octets);
        if (passed > 0) {
            octets -= passed;
        } else {
            EXPECT(passed == -1 && errno == EAGAIN, 1);
            waits++, until(&wait);
        }
    }
    let_go(&wait);
    EXPECT(octets, 0);
    return waits;
}

static int takes(int vc, int way, long octets)
{
    return pass(vc, take, wait_of(way, vc), octets);
}

static int gives(int vc, int way, long octets)
{
    return pass(vc, give, wait_of(way, rota_vc_descriptor(vc, POLLOUT)), octets);
}

/* Waits for the end of what the other end sends: a program that closes before it gives the circuit up. */
static int ends(int vc, int way)
{
    struct wait wait = wait_of(way, vc);
    ssize_t left;
    while ((left = rota_vc_recv(vc, room, sizeof room, 0)) < 0 && !wrong) {
        EXPECT(errno, EAGAIN);
        until(&wait);
    }
    let_go(&wait);
    return left == 0;
}

static int serve(char **words)
{
    int ears = rota_vc_socket(NULL), way;
    EXPECT(rota_vc_bind(ears, atoi(words[0])), 0);
    EXPECT(rota_vc_listen(ears, 4), 0);
    EXPECT(rota_vc_set(ears, ROTA_VC_NONBLOCK, 1), 0);
    fprintf(stderr, "listening\n");
    for (way = SELECT; way < WAYS && !wrong; way++) {
        struct wait wait = wait_of(way, ears);
        int vc;
        while ((vc = rota_vc_accept(ears, NULL, 0)) < 0 && !wrong) {
            EXPECT(errno, EAGAIN);
            until(&wait);
        }
        let_go(&wait);
        EXPECT(rota_vc_set(vc, ROTA_VC_NONBLOCK, 1), 0);
        /* The other end sends after a while. */
        EXPECT(takes(vc, way, 1) > 0, 1);
        /* More than the way holds, while nobody takes it for a while. */
        EXPECT(gives(vc, way, TOTAL) > 0, 1);
        EXPECT(takes(vc, way, 1) >= 0, 1);
        EXPECT(ends(vc, way), 1);
        EXPECT(rota_vc_close(vc), 0);
    }
    EXPECT(rota_vc_close(ears), 0);
    return wrong;
}

static int ask(char **words)
{
    int way;
    for (way = SELECT; way < WAYS && !wrong; way++) {
        int vc = rota_vc_socket(NULL);
        usleep(100000);
        EXPECT(rota_vc_connect(vc, words[0], atoi(words[1]), NULL), 0);
        EXPECT(rota_vc_set(vc, ROTA_VC_NONBLOCK, 1), 0);
        usleep(100000);
        EXPECT(gives(vc, way, 1), 0);
        usleep(300000);
        EXPECT(takes(vc, way, TOTAL) >= 0, 1);
        EXPECT(gives(vc, way, 1), 0);
        EXPECT(rota_vc_shutdown(vc, SHUT_WR), 0);
        EXPECT(ends(vc, way), 1);
        EXPECT(rota_vc_close(vc), 0);
    }
    return wrong;
}

int main(int count, char **words)
{
    return run(count, words, serve, ask, 2, "vcwait serve SERVICE | vcwait ask NODE SERVICE");
}
