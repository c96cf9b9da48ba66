/* A receiving socket of UDP with a queue of its own: "udp recv ADDRESS:PORT COUNT" on one station; any sender serves, here
 * "udp send ADDRESS PORT COUNT" with an ordinary socket. */
#include <arpa/inet.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <rota.h>

static int die(const char *what)
{
    fprintf(stderr, "udp: %s: %s\n", what, rota_error());
    return 1;
}

/* Takes all that has come, then sleeps until there is more: a burst costs one wake-up. */
static int receive(const char *address, int count)
{
    rota_udp *udp;
    rota_udp_queue queue;
    rota_udp_packet packet;
    const void *octets;
    uint64_t lost;
    int came = 0, bypassed = 0, in_order = 1, waits, number, status;
    if (rota_udp_bind(NULL, address, NULL, 0, &udp))
        return die("bind");
    if (rota_udp_filler(udp, &queue))
        return die("queue");
    fprintf(stderr, "listening: %s%s%s\n", queue.own ? "a queue of its own" : "the kernel's own queue",
            queue.why[0] ? ": " : "", queue.why);
    while (came < count) {
        while (came < count && !(status = rota_udp_receive(udp, &octets, &packet, 0))) {
            memcpy(&number, octets, sizeof number);
            in_order &= packet.octets == 100 && (int)ntohl(number) == came;
            bypassed += packet.bypassed;
            came++;
        }
        if (came < count && status != ROTA_WOULD_BLOCK)
            return die("receive");
        if (came < count && rota_udp_arm(udp, &waits))
            return die("arm");
        if (came < count && !waits) {
            struct pollfd wanted = { rota_udp_fd(udp), POLLIN, 0 };
            if (poll(&wanted, 1, 20000) < 1)
                return fprintf(stderr, "udp: nothing came\n"), 1;
        }
    }
    if (rota_udp_discarded(udp, &lost))
        return die("discarded");
    printf("%d packets%s, %d of them past the layers, %" PRIu64 " lost\n", came, in_order ? " in order" : "", bypassed, lost);
    return rota_udp_close(udp) != ROTA_OK;
}

static int send_all(const char *address, int port, int count)
{
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(port) };
    int fd = socket(AF_INET, SOCK_DGRAM, 0), number, k;
    char packet[100] = { 0 };
    inet_pton(AF_INET, address, &to.sin_addr);
    for (k = 0; k < count; k++) {
        number = htonl(k);
        memcpy(packet, &number, sizeof number);
        if (sendto(fd, packet, sizeof packet, 0, (struct sockaddr *)&to, sizeof to) < 0)
            return perror("udp: sendto"), 1;
    }
    printf("%d packets sent\n", k);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 4 && !strcmp(argv[1], "recv"))
        return receive(argv[2], atoi(argv[3]));
    if (argc == 5 && !strcmp(argv[1], "send"))
        return send_all(argv[2], atoi(argv[3]), atoi(argv[4]));
    fprintf(stderr, "usage: udp recv ADDRESS:PORT COUNT | udp send ADDRESS PORT COUNT\n");
    return 2;
}
