/* Messages in batches, with poll: "messages recv 4" on one station, "messages send 4 2" (socket 4 of node 2) on another. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rota.h>

enum { BATCH = 32, COUNT = 500, OCTETS = 100 };

static char packets[BATCH][OCTETS];
static rota_message batch[BATCH];

static int die(const char *what)
{
    fprintf(stderr, "messages: %s: %s\n", what, rota_error());
    return 1;
}

/* Sleeps until something came or ended; 0 after five seconds of silence. */
static int wait(rota_socket *socket)
{
    struct pollfd fd;
    fd.fd = rota_socket_fd(socket);
    fd.events = POLLIN;
    return poll(&fd, 1, 5000) > 0 && rota_socket_is_alive(socket);
}

static int receive(rota_socket *socket)
{
    size_t got, k;
    int count = 0, number, last = -1, right = 1;
    fprintf(stderr, "listening\n");
    while (last != COUNT - 1 && wait(socket)) {
        do {
            for (k = 0; k < BATCH; k++)
                batch[k].octets = OCTETS;
            if (rota_socket_receive_batch(socket, batch, BATCH, &got) != ROTA_OK)
                got = 0;
            for (k = 0; k < got; k++, count++) {
                memcpy(&number, packets[k], sizeof number);
                right &= number > last && batch[k].octets == OCTETS && !batch[k].truncated;
                last = number;
            }
        } while (got);
    }
    printf("%d messages, last %d, %s\n", count, last, right ? "in order" : "WRONG");
    return !right || last != COUNT - 1;
}

static int send(rota_socket *socket, rota_address to)
{
    /* Acknowledged: a burst without would overrun the slowest port on its way. */
    rota_transmit options = { .priority = 3, .ack = 1, .tries = 8 };
    int number = 0, outcome, ended = 0, failed = 0;
    size_t done, k;
    while (ended < COUNT) {
        size_t count = COUNT - number < BATCH ? COUNT - number : BATCH;
        for (k = 0; k < count; k++) {
            int n = number + k;
            memcpy(packets[k], &n, sizeof n);
            batch[k].octets = OCTETS;
            batch[k].address = to;
        }
        if (rota_socket_transmit_batch(socket, batch, count, &options, &done) == ROTA_OK)
            number += done;
        while (rota_socket_completion(socket, NULL, &outcome) == ROTA_OK) {
            ended++;
            failed += outcome != ROTA_ACKNOWLEDGED;
        }
        if (ended < COUNT && number - ended > BATCH && !wait(socket))
            return die("nothing is sent any more");
    }
    printf("%d messages acknowledged, %d failed\n", ended, failed);
    return failed != 0;
}

int main(int argc, char **argv)
{
    rota_llc *llc;
    rota_socket *socket;
    rota_address to;
    size_t k;
    int result;
    if (argc < 3 || (strcmp(argv[1], "recv") && argc < 4)) {
        fprintf(stderr, "usage: messages recv SOCKET | messages send SOCKET NODE\n");
        return 2;
    }
    for (k = 0; k < BATCH; k++)
        batch[k].packet = packets[k];
    to.socket = atoi(argv[2]);
    to.node = argc > 3 ? atoi(argv[3]) : 0;
    if (rota_llc_connect(NULL, 1, &llc) || rota_socket_open(llc, to.socket, &socket))
        return die("open");
    result = argc > 3 ? send(socket, to) : receive(socket);
    rota_socket_close(socket);
    rota_llc_disconnect(llc);
    return result;
}
