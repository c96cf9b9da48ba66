/* Somebody who asks a circuit's receiver for an epoch and then says nothing more: "stray SOCKET NODE". */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rota.h>

int main(int argc, char **argv)
{
    /* Verb 1 (open), version 1, and a made-up sender. */
    unsigned char open[32] = { 1, 1, 0, 0, 0, 0, 0, 9, 1, 2, 3, 4, 5, 6, 7, 8 }, answer[64];
    rota_transmit options;
    rota_message message;
    rota_address to;
    rota_socket *socket;
    rota_llc *llc;
    if (argc < 3 || rota_llc_connect(NULL, 1, &llc) || rota_socket_open(llc, 8, &socket))
        return 2;
    to.socket = atoi(argv[1]);
    to.node = atoi(argv[2]);
    memset(&options, 0, sizeof options);
    memset(&message, 0, sizeof message);
    message.packet = answer;
    message.octets = sizeof answer;
    if (rota_socket_transmit(socket, to, open, sizeof open, &options, NULL))
        return 2;
    rota_socket_wait(socket, 2000000000u);
    while (rota_socket_receive(socket, &message) != ROTA_OK)
        if (rota_socket_wait(socket, 2000000000u))
            return 1;
    /* Verb 2: welcome. */
    printf("answered with verb %d\n", answer[0]);
    rota_llc_disconnect(llc);
    return 0;
}
