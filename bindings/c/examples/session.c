/* RETHER's six calls: "session recv 77" on one station, "session send n2 77" on another, with double buffering. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rether.h>

enum { BUFFERS = 2, OCTETS = 1000, UNITS = 20 };

static char memory[BUFFERS][OCTETS];
static void *buffers[BUFFERS] = { memory[0], memory[1] };

static int die(const char *what)
{
    fprintf(stderr, "session: %s: %s\n", what, retherError());
    return 1;
}

static int receive(int id)
{
    struct retherState state;
    int filled, last = -1, right = 1;
    if (retherOpenRTsession(buffers, OCTETS, BUFFERS, &id, RETHER_RECEIVER, NULL))
        return die("open");
    fprintf(stderr, "listening\n");
    while ((filled = retherRecv(id, RETHER_BLOCK)) >= 0) {
        /* Newer data has priority: some may have been passed over, but none comes twice or broken. */
        right &= memory[filled][0] > last && memory[filled][OCTETS - 1] == memory[filled][0];
        last = memory[filled][0];
    }
    if (filled != RETHER_EEND)
        return die("receive");
    retherGetState(id, &state);
    printf("%llu units, %llu passed over, last %d, %s\n", state.units, state.lost, last, right ? "right" : "WRONG");
    return retherCloseRTsession(id) || !right;
}

static int send(const char *station, int id)
{
    struct retherState state;
    int k, next = 0;
    if (retherOpenRTsession(buffers, OCTETS, BUFFERS, &id, RETHER_SENDER, station))
        return die("open");
    if (retherAdmit(id))
        return die("admit");
    retherGetState(id, &state);
    printf("session %d: each unit within %llu ns\n", id, state.boundNs);
    for (k = 0; k < UNITS; k++) {
        memset(memory[next], k, OCTETS);
        next = retherSend(id, RETHER_BLOCK);
        if (next < 0)
            return die("send");
    }
    return retherCloseRTsession(id) ? die("close") : 0;
}

int main(int argc, char **argv)
{
    if (argc == 3 && !strcmp(argv[1], "recv"))
        return receive(atoi(argv[2]));
    if (argc == 4 && !strcmp(argv[1], "send"))
        return send(argv[2], atoi(argv[3]));
    fprintf(stderr, "usage: session recv ID | session send STATION ID\n");
    return 2;
}
