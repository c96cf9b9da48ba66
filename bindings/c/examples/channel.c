/* A reserved channel: "channel recv 7" on one station, "channel send n2 7" on another.
 * The sender asks for far too much first, to show a refusal, and then for what it needs. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rota.h>

#define SECOND 1000000000ull
enum { UNITS = 30, OCTETS = 1200 };

static int die(const char *what)
{
    fprintf(stderr, "channel: %s: %s\n", what, rota_error());
    return 1;
}

static int receive(uint16_t service)
{
    static char buffer[OCTETS];
    rota_listener *listener;
    rota_receiver *receiver;
    rota_unit unit;
    int status, units = 0;
    if (rota_listen(NULL, service, NULL, 0, &listener))
        return die("listen");
    fprintf(stderr, "listening\n");
    if (rota_accept(listener, 20 * SECOND, &receiver))
        return die("accept");
    while ((status = rota_receive(receiver, buffer, sizeof buffer, &unit, 5 * SECOND)) == ROTA_OK)
        if (!unit.missing_octets && !unit.lost_before)
            units++;
    printf("%d units, then: %s\n", units, rota_error());
    rota_receiver_close(receiver);
    rota_listener_close(listener);
    return status == ROTA_ENDED ? 0 : 1;
}

static int transmit(const char *to, uint16_t service)
{
    static char unit[OCTETS];
    rota_channel *channel;
    rota_refusal refusal;
    rota_request request;
    uint64_t sent;
    int k;
    memset(&request, 0, sizeof request);
    request.to = to;
    request.service = service;
    request.unit_octets_max = 4000000;
    if (rota_cycle_ns(NULL, &request.period_ns))
        return die("no node");
    if (rota_channel_open(NULL, &request, &channel, &refusal) != ROTA_REFUSED)
        return die("this should have been refused");
    printf("refused: %s\n", refusal.sentence);
    printf("would fit: %" PRIu32 " octets\n", refusal.counter_offer_octets);
    request.unit_octets_max = OCTETS;
    if (rota_channel_open(NULL, &request, &channel, &refusal))
        return die("open");
    /* These units follow no clock: each waits for its slot, and ROTA_LEFT_OUT never comes. */
    rota_channel_drop_overdue(channel, 0);
    printf("accepted: each unit within %" PRIu64 " ns\n", rota_channel_bound_ns(channel));
    for (k = 0; k < UNITS; k++) {
        memset(unit, k, sizeof unit);
        if (rota_channel_send(channel, unit, sizeof unit, 0, SECOND))
            return die("send");
    }
    if (rota_channel_close(channel, 5 * SECOND, &sent))
        return die("close");
    printf("%" PRIu64 " units sent\n", sent);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 3 && !strcmp(argv[1], "recv"))
        return receive(atoi(argv[2]));
    if (argc == 4 && !strcmp(argv[1], "send"))
        return transmit(argv[2], atoi(argv[3]));
    fprintf(stderr, "usage: channel recv SERVICE | channel send STATION SERVICE\n");
    return 2;
}
