/* A socket on a reserved channel: "reserved recv 24" on one station, "reserved send 24 2" (socket 24 of node 2) on another. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rota.h>

enum { COUNT = 20, OCTETS = 2000 };

static char packet[OCTETS + 1];

static int die(const char *what)
{
    fprintf(stderr, "reserved: %s: %s\n", what, rota_error());
    return 1;
}

static int receive(rota_socket *socket)
{
    int count, number, status, right = 1;
    rota_message message;
    struct pollfd fd;
    if (rota_socket_listen_reserved(socket))
        return die("listen");
    /* Few messages, one at a time: beside the node they are fastest. No error where the node has no CPU of its own. */
    rota_socket_stay_near_node(socket);
    fd.fd = rota_socket_fd(socket);
    fd.events = POLLIN;
    fprintf(stderr, "listening\n");
    for (count = 0; count < COUNT; count++) {
        message.packet = packet;
        message.octets = sizeof packet;
        while ((status = rota_socket_receive(socket, &message)) == ROTA_WOULD_BLOCK)
            if (poll(&fd, 1, 5000) < 1) {
                fprintf(stderr, "reserved: nothing came\n");
                return 1;
            }
        if (status)
            return die("receive");
        memcpy(&number, packet, sizeof number);
        right &= number == count && message.octets == OCTETS && message.reserved && message.address.socket == 18;
    }
    printf("%d messages, %s\n", count, right ? "whole and in order" : "WRONG");
    return !right;
}

static int send(rota_socket *socket, rota_address to)
{
    rota_transmit acked = { .ack = 1 };
    rota_refusal refusal;
    uint64_t cycle, bound;
    int number, outcome, sent = 0, status;
    if (rota_cycle_ns(NULL, &cycle))
        return die("cycle");
    if (rota_socket_reserve(socket, to, 16384, (cycle + 16) / 32, NULL, &refusal) != ROTA_REFUSED)
        return die("more than the wire has was not refused");
    printf("refused: %s; would fit: %u octets\n", refusal.test, refusal.counter_offer_octets);
    if (rota_socket_reserve(socket, to, OCTETS, cycle, &bound, NULL))
        return die("reserve");
    if (rota_socket_transmit(socket, to, packet, OCTETS + 1, NULL, NULL) != ROTA_TOO_LONG ||
        rota_socket_transmit(socket, to, packet, OCTETS, &acked, NULL) != ROTA_WRONG_USE)
        return die("what does not go on a channel was taken");
    for (number = 0; number < COUNT; number++) {
        memcpy(packet, &number, sizeof number);
        while ((status = rota_socket_transmit(socket, to, packet, OCTETS, NULL, NULL)) == ROTA_BUSY)
            /* Until something came or ended, or the channel has room again. */
            rota_socket_wait(socket, 5000000000u);
        if (status)
            return die("transmit");
        while (rota_socket_completion(socket, NULL, &outcome) == ROTA_OK)
            sent += outcome == ROTA_SENT;
    }
    if (rota_socket_release(socket, to) || rota_socket_release(socket, to) != ROTA_WRONG_USE)
        return die("release");
    printf("%d messages sent, each within %llu ns\n", sent, (unsigned long long)bound);
    return sent != COUNT;
}

int main(int argc, char **argv)
{
    rota_llc *llc;
    rota_socket *socket;
    rota_address to;
    int result;
    if (argc < 3 || (strcmp(argv[1], "recv") && argc < 4)) {
        fprintf(stderr, "usage: reserved recv SOCKET | reserved send SOCKET NODE\n");
        return 2;
    }
    to.socket = atoi(argv[2]);
    to.node = argc > 3 ? atoi(argv[3]) : 0;
    if (rota_llc_connect(NULL, 1, &llc) || rota_socket_open(llc, argc > 3 ? 18 : to.socket, &socket))
        return die("open");
    result = argc > 3 ? send(socket, to) : receive(socket);
    rota_socket_close(socket);
    rota_llc_disconnect(llc);
    return result;
}
