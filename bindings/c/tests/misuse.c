/* What a program may do wrong with the ten calls, and what each then says. "misuse" alone runs the calls; "misuse death"
 * waits, with a receive pending, until somebody kills its node. Ends with 0 and "all right", or names the line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <llcio.h>
#include <rota.h>

#include "expect.h"

static char packet[20000], room[200];
static unsigned char self[2] = { 4, 0 }, from[2];
static volatile int received, sent, forbidden;

static unsigned int status(int sock, int direction)
{
    unsigned int now = ~0u;
    EXPECT(LLCstatus(sock, direction, &now), OPACC);
    return now;
}

static unsigned int over(int sock, int direction)
{
    unsigned int now;
    while ((now = status(sock, direction)) & STBUSY)
        ;
    return now;
}

/* Goes on from within the signal functions, and tries there what it may not. */
static int on_receive(void)
{
    EXPECT(status(4, 'r'), 0);
    if (++received < 3)
        EXPECT(LLCrecv(4, from, room, sizeof room), OPACC);
    forbidden = LLCclose(4) == OPBUSY && LLCoff() == OPBUSY && LLCreset(4, 'r') == OPBUSY && LLCopen(6) == OPBUSY &&
                LLCoption(4, NULL, NULL, 0, 0, 0, 1) == OPBUSY;
    return 0;
}

static int on_sent(void)
{
    EXPECT(status(4, 'x'), 0);
    if (++sent < 3)
        EXPECT(LLCxmit(4, self, packet, 10 + sent), OPACC);
    return 0;
}

static void before(void)
{
    unsigned int now;
    EXPECT(LLCopen(2), OPINVAL);
    EXPECT(LLCclose(2), OPINVAL);
    EXPECT(LLCoption(2, NULL, NULL, 0, 0, 0, 1), OPINVAL);
    EXPECT(LLCoption(2, NULL, NULL, 0, 0, 0, 0, 1), OPINVAL);
    EXPECT(LLCxmit(2, self, packet, 1), OPINVAL);
    EXPECT(LLCrecv(2, from, room, 1), OPINVAL);
    EXPECT(LLCreset(2, 'x'), OPINVAL);
    EXPECT(LLCstatus(2, 'x', &now), OPINVAL);
    EXPECT(LLCreserve(2, self, 1, 1), OPINVAL);
    EXPECT(LLCrelease(2, self), OPINVAL);
    EXPECT(LLClisten(2), OPINVAL);
    EXPECT(LLCoff(), OPINVAL);
    EXPECT(LLCon(-1), OPMANY);
    EXPECT(LLCon(128), OPMANY);
}

static void sockets(void)
{
    int sock, bad[] = { 0, 1, 3, 255, 256, -2, 1 << 30 };
    size_t k;
    EXPECT(LLCon(2), OPACC);
    EXPECT(LLCon(2), OPBUSY);
    self[1] = LLCnode();
    for (k = 0; k < sizeof bad / sizeof *bad; k++)
        EXPECT(LLCopen(bad[k]), OPINVAL);
    for (sock = 2; sock <= 4; sock += 2)
        EXPECT(LLCopen(sock), OPACC);
    EXPECT(LLCopen(2), OPDUP);
    EXPECT(LLCopen(6), OPMANY);
    EXPECT(LLCclose(2), OPACC);
    EXPECT(LLCclose(2), OPINVAL);
    EXPECT(LLCopen(6), OPACC);
    EXPECT(LLCclose(6), OPACC);
}

static void operations(void)
{
    unsigned char odd[2] = { 3, 1 };
    EXPECT(status(4, 'x') | status(4, 'r'), 0);
    EXPECT(LLCxmit(4, NULL, packet, 1), OPINVAL);
    EXPECT(LLCxmit(4, odd, packet, 1), OPINVAL);
    EXPECT(LLCxmit(4, "\2\0", packet, 1), OPINVAL); /* node 0 is no node */
    EXPECT(LLCxmit(4, self, NULL, 1), OPLARGE);
    EXPECT(LLCxmit(4, self, packet, sizeof packet), OPLARGE);
    EXPECT(LLCrecv(4, from, NULL, 1), OPLARGE);
    EXPECT(LLCstatus(4, 'x', NULL), OPINVAL);
    EXPECT(LLCstatus(4, 'q', &(unsigned int){ 0 }), OPOPT);
    EXPECT(LLCreset(4, 'q'), OPOPT);
    EXPECT(LLCoption(4, NULL, NULL, 0, 0, 8, 0, 1), OPOPT);
    EXPECT(LLCoption(4, NULL, NULL, 0, 0, 0, 0, 256), OPOPT);
    EXPECT(LLCoption(4, NULL, NULL, 0, 0, 16, 1), OPOPT);
    /* Nothing comes: the receive is pending, cannot be closed or doubled, is reset, and times out. */
    EXPECT(LLCrecv(4, from, room, sizeof room), OPACC);
    EXPECT(status(4, 'r') & STBUSY, STPEND);
    EXPECT(LLCrecv(4, from, room, sizeof room), OPBUSY);
    EXPECT(LLCclose(4), OPBUSY);
    EXPECT(LLCreset(4, 'r'), OPACC);
    EXPECT(status(4, 'r'), 0);
    EXPECT(LLCoption(4, NULL, NULL, 0, 2, LLCACKED | 7, 0), OPACC);
    EXPECT(LLCrecv(4, from, room, sizeof room), OPACC);
    EXPECT(over(4, 'r'), STLATE);
    /* To oneself: a new operation clears the last result; a buffer too small is no success. */
    EXPECT(LLCoption(4, NULL, NULL, 0, 100, 7, 0), OPACC);
    EXPECT(LLCrecv(4, from, room, 5), OPACC);
    EXPECT(LLCxmit(4, self, "a message", 9), OPACC);
    EXPECT(over(4, 'x'), 0);
    EXPECT(over(4, 'r'), STFAIL | STCUT);
    EXPECT(LLClength(4) == 5 && !memcmp(room, "a mes", 5) && from[0] == 4 && from[1] == self[1], 1);
    EXPECT(LLCrecv(4, NULL, room, sizeof room), OPACC);
    EXPECT(LLCxmit(4, self, NULL, 0), OPACC);
    EXPECT(over(4, 'r'), 0);
    EXPECT(LLClength(4), 0);
    EXPECT(over(4, 'x'), 0);
}

/* Reservations that are impossible; possible ones are tried between two stations (examples/urgent.c). */
static void reservations(void)
{
    unsigned char nobody[2] = { 24, 77 }, silent[2] = { 24, 100 }, odd[2] = { 3, 100 };
    EXPECT(LLCreserve(4, NULL, 1, 1), OPINVAL);
    EXPECT(LLCreserve(4, odd, 1, 1), OPINVAL);
    EXPECT(LLCreserve(4, nobody, 1, 0), OPOPT);
    EXPECT(LLCreserve(4, silent, 16385, 1), OPLARGE);
    EXPECT(LLCreserve(4, silent, ~0u, ~0u), OPLARGE);
    EXPECT(LLCreserve(4, nobody, 1, 1), OPNORES);
    EXPECT(LLCreserve(4, self, 1, 1), OPNORES);
    EXPECT(LLCreserve(4, silent, 1, 1), OPNORES);
    EXPECT(LLCrelease(4, silent), OPNORES);
    EXPECT(LLCrelease(4, NULL), OPINVAL);
    EXPECT(LLClisten(4), OPACC);
    EXPECT(LLClisten(4), OPACC);
    EXPECT(LLCrecv(4, from, room, sizeof room), OPACC);
    EXPECT(LLClisten(4), OPBUSY);
    EXPECT(LLCreserve(4, silent, 1, 1), OPBUSY);
    EXPECT(LLCxmit(4, self, "as before", 9), OPACC);
    EXPECT(over(4, 'r') | over(4, 'x'), 0);
}

static int nothing(void)
{
    return 0;
}

/* A packet that nobody asks for costs nothing while it waits: the completion thread once looked all the time. */
static void unread(void)
{
    clock_t begun;
    int k;
    EXPECT(LLCoption(4, nothing, NULL, 0, 0, 0, 1), OPACC);
    for (k = 0; k < 2; k++) {
        EXPECT(LLCxmit(4, self, "unread", 6), OPACC);
        EXPECT(over(4, 'x'), 0);
    }
    usleep(100000);
    begun = clock();
    usleep(400000);
    EXPECT(clock() - begun < CLOCKS_PER_SEC / 10, 1);
    EXPECT(LLCxmit(4, self, "unread", 6), OPACC);
    EXPECT(over(4, 'x'), 0);
    for (k = 0; k < 3; k++) {
        EXPECT(LLCrecv(4, from, room, sizeof room), OPACC);
        EXPECT(over(4, 'r'), 0);
        EXPECT(LLClength(4), 6);
    }
}

/* A reservation in parts: each part at the wrong time, or with the wrong socket. */
static void parts(rota_socket *socket)
{
    rota_reservation *asked = NULL;
    rota_address to = { 24, 100 };
    EXPECT(rota_socket_reservation(socket, to, NULL), ROTA_WRONG_USE);
    EXPECT(rota_socket_reservation(NULL, to, &asked), ROTA_WRONG_USE);
    EXPECT(rota_reservation_open(NULL, 1, 1, NULL, NULL), ROTA_WRONG_USE);
    EXPECT(rota_socket_reservation(socket, to, &asked), ROTA_OK);
    EXPECT(rota_reservation_open(asked, 100, 33333333, NULL, NULL), ROTA_NO_LISTENER);
    EXPECT(rota_socket_put(socket, asked), ROTA_WRONG_USE);
    EXPECT(rota_socket_reservation(socket, to, &asked), ROTA_OK);
    EXPECT(rota_socket_put(NULL, asked), ROTA_WRONG_USE);
    EXPECT(rota_socket_put(socket, NULL), ROTA_WRONG_USE);
    EXPECT(rota_socket_take_off(socket, to, &asked), ROTA_WRONG_USE);
    EXPECT(rota_reservation_close(NULL), ROTA_WRONG_USE);
}

/* Counts that can only be negative ones are refused, and nothing is read. */
static void counts(void)
{
    rota_llc *one;
    rota_socket *socket;
    rota_address to = { 24, 100 };
    rota_message message = { .packet = room, .octets = (size_t)-1 };
    size_t done;
    EXPECT(rota_llc_connect(NULL, 1, &one), ROTA_OK);
    EXPECT(rota_socket_open(one, 18, &socket), ROTA_OK);
    EXPECT(rota_socket_transmit(socket, to, packet, (size_t)-1, NULL, NULL), ROTA_TOO_LONG);
    EXPECT(rota_socket_receive(socket, &message), ROTA_TOO_LONG);
    /* Not "no station has that address". */
    EXPECT(rota_socket_reserve(socket, (rota_address){ 24, 255 }, 1, 33333333, NULL, NULL), ROTA_NO_SUCH_STATION);
    EXPECT(strstr(rota_error(), "255 is all of them") != NULL, 1);
    EXPECT(rota_socket_reserve(socket, (rota_address){ 24, self[1] }, 1, 33333333, NULL, NULL), ROTA_NO_SUCH_STATION);
    EXPECT(strstr(rota_error(), "5 is this one") != NULL, 1);
    parts(socket);
    EXPECT(rota_socket_transmit_batch(socket, &message, (size_t)-1 / 8, NULL, &done), ROTA_TOO_LONG);
    EXPECT(rota_socket_receive_batch(socket, &message, (size_t)-1 / 8, &done), ROTA_TOO_LONG);
    EXPECT(rota_socket_close(socket), ROTA_OK);
    EXPECT(rota_llc_disconnect(one), ROTA_OK);
}

static void signals(void)
{
    EXPECT(LLCoption(4, on_sent, on_receive, 0, 0, 3, 1), OPACC);
    EXPECT(LLCrecv(4, from, room, sizeof room), OPACC);
    EXPECT(LLCxmit(4, self, packet, 10), OPACC);
    while (received < 3 || sent < 3)
        usleep(100);
    EXPECT(over(4, 'r') | over(4, 'x'), 0);
    EXPECT(forbidden, 1);
    EXPECT(LLClength(4), 12);
    while (LLCreset(4, 'x') || LLCreset(4, 'r'))
        ;
    EXPECT(LLCclose(4), OPACC);
    EXPECT(LLCoff(), OPACC);
    EXPECT(LLCoff(), OPINVAL);
    /* All of it once more: nothing is left over. */
    EXPECT(LLCon(1), OPACC);
    EXPECT(LLCopen(4), OPACC);
    EXPECT(LLCrecv(4, from, room, sizeof room), OPACC);
    EXPECT(LLCoff(), OPACC);
}

static void death(void)
{
    EXPECT(LLCon(2), OPACC);
    EXPECT(LLCopen(8), OPACC);
    EXPECT(LLCopen(4), OPACC);
    EXPECT(LLCrecv(4, from, room, sizeof room), OPACC);
    fprintf(stderr, "ready\n");
    EXPECT(over(4, 'r'), STFAIL);
    EXPECT(LLCxmit(4, self, packet, 1), OPINVAL);
    EXPECT(LLCrecv(4, from, room, 1), OPINVAL);
    EXPECT(LLCopen(6), OPMANY);
    /* A socket that has not noticed. */
    EXPECT(LLClisten(8), OPNONET);
    EXPECT(LLCreserve(8, self, 1, 1), OPNONET);
    EXPECT(LLCclose(8), OPACC);
    EXPECT(LLCreset(4, 'r'), OPACC);
    EXPECT(LLCclose(4), OPACC);
    EXPECT(LLCopen(6), OPINVAL);
    EXPECT(LLCoff(), OPACC);
    EXPECT(LLCon(1), OPNONET);
}

int main(int argc, char **argv)
{
    (void)argv;
    if (argc > 1)
        death();
    else {
        before();
        sockets();
        operations();
        reservations();
        unread();
        counts();
        signals();
        if (strcmp(LLCopbits(OPLARGE), "packet too large") || strcmp(LLCopbits(99), "unknown operation status") ||
            strcmp(LLCstbits(STLATE, 'r'), "receive timed out") || strcmp(LLCstbits(0, 'q'), "unknown direction"))
            wrong = 1;
    }
    puts(wrong ? "WRONG" : "all right");
    return wrong;
}
