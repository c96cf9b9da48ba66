/* Reserved channels for programs of the ten calls: "urgent recv 24" on one station, "urgent send 24 2" (socket 24 of
 * node 2) on another. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <llcio.h>

enum { COUNT = 20, OCTETS = 100 };

static unsigned char packet[OCTETS + 1], from[2];

static int die(const char *what, int refused)
{
    fprintf(stderr, "urgent: %s: %s\n", what, LLCopbits(refused));
    return 1;
}

/* Waits until nothing is pending, and says what came of it. */
static unsigned int over(int sock, int direction)
{
    unsigned int status;
    while (!LLCstatus(sock, direction, &status) && (status & STBUSY))
        ;
    return status;
}

static int receive(int sock)
{
    int count, number, refused, right = 1;
    /* At most ten seconds for each. */
    if ((refused = LLCopen(sock)) || (refused = LLClisten(sock)) ||
        (refused = LLCoption(sock, NULL, NULL, 0, 10000 / LLCTICK, 0, 0)))
        return die("listen", refused);
    fprintf(stderr, "listening\n");
    for (count = 0; count < COUNT; count++) {
        if ((refused = LLCrecv(sock, from, packet, sizeof packet)) || over(sock, 'r'))
            return die("nothing came", refused);
        memcpy(&number, packet, sizeof number);
        right &= number == count && LLClength(sock) == OCTETS && from[0] == 18;
    }
    printf("%d packets, %s\n", count, right ? "in order" : "WRONG");
    return !right;
}

static int send(const unsigned char *to)
{
    int number, refused;
    if ((refused = LLCopen(18)) || (refused = LLCreserve(18, to, OCTETS, 1)))
        return die("reserve", refused);
    if (LLCreserve(18, to, OCTETS, 1) != OPOPT || LLCxmit(18, to, packet, OCTETS + 1) != OPLARGE)
        return die("reserved twice, or more than was asked for", 0);
    for (number = 0; number < COUNT; number++) {
        memcpy(packet, &number, sizeof number);
        /* A channel takes one packet in each cycle, and holds a few: until there is room it is busy. */
        while ((refused = LLCxmit(18, to, packet, OCTETS)) == OPBUSY)
            ;
        if (refused || over(18, 'x'))
            return die("transmit", refused);
    }
    if ((refused = LLCrelease(18, to)) || LLCrelease(18, to) != OPNORES)
        return die("release", refused);
    printf("%d packets sent\n", number);
    return 0;
}

int main(int argc, char **argv)
{
    unsigned char to[2];
    int refused, result;
    if (argc < 3 || (strcmp(argv[1], "recv") && argc < 4)) {
        fprintf(stderr, "usage: urgent recv SOCKET | urgent send SOCKET NODE\n");
        return 2;
    }
    to[0] = atoi(argv[2]);
    to[1] = argc > 3 ? atoi(argv[3]) : 0;
    if ((refused = LLCon(1)))
        return die("LLCon", refused);
    result = argc > 3 ? send(to) : receive(to[0]);
    LLCoff();
    return result;
}
