/* A reliable circuit: "circuit recv 6 COUNT" on one station, "circuit send 6 2 COUNT" (to node 2) on another. What the
 * wire loses or doubles between them, the receiver's program sees each message once, in order. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rota.h>

#define SECOND 1000000000ull

static int die(const char *what)
{
    fprintf(stderr, "circuit: %s: %s\n", what, rota_error());
    return 1;
}

static int receive(rota_socket *socket, int count)
{
    rota_circuit *circuit;
    int number, wanted, begins;
    if (rota_circuit_receiver(socket, NULL, 7, NULL, &circuit))
        return die("receiver");
    fprintf(stderr, "listening\n");
    for (wanted = 0; wanted < count; wanted++) {
        size_t octets = sizeof number;
        if (rota_circuit_receive(circuit, &number, &octets, &begins, NULL, 20 * SECOND))
            return die("receive");
        if (number != wanted || octets != sizeof number || begins != (wanted == 0)) {
            printf("WRONG: %d where %d was due\n", number, wanted);
            return 1;
        }
    }
    printf("%d messages, each once, in order\n", wanted);
    /* The last message is confirmed again for as long as its sender asks. */
    return rota_circuit_close(circuit, SECOND) != ROTA_OK;
}

static int send(rota_socket *socket, rota_address to, int count)
{
    rota_circuit *circuit;
    int number;
    if (rota_circuit_sender(socket, to, 7, NULL, &circuit))
        return die("sender");
    for (number = 0; number < count; number++)
        if (rota_circuit_send(circuit, &number, sizeof number, 10 * SECOND))
            return die("send");
    printf("%d messages taken\n", number);
    return rota_circuit_close(circuit, 0) != ROTA_OK;
}

int main(int argc, char **argv)
{
    rota_llc *llc;
    rota_socket *socket;
    rota_address to;
    int result;
    if (argc < 4 || (strcmp(argv[1], "recv") && argc < 5)) {
        fprintf(stderr, "usage: circuit recv SOCKET COUNT | circuit send SOCKET NODE COUNT\n");
        return 2;
    }
    if (rota_llc_connect(NULL, 1, &llc) || rota_socket_open(llc, atoi(argv[2]), &socket))
        return die("open");
    to.socket = atoi(argv[2]);
    to.node = atoi(argv[3]);
    result = argc == 5 ? send(socket, to, atoi(argv[4])) : receive(socket, atoi(argv[3]));
    rota_llc_disconnect(llc);
    return result;
}
