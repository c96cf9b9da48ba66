/* A reserved channel: "channel recv 7" on one station, "channel send n2 7" on another.
 * The sender asks for far too much first, to show a refusal, and then for what it needs.
 * Or the receiver asks for the channel: "channel wait 7" on one station, "channel ask n1 7" on another. */
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

static int receive(const char *from, uint16_t service)
{
    static char buffer[OCTETS];
    rota_listener *listener;
    rota_receiver *receiver;
    rota_unit unit;
    int status, units = 0;
    if (from ? rota_invite(NULL, from, service, 0, &listener) : rota_listen(NULL, service, NULL, 0, &listener))
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

static int transmit_on(rota_channel *channel)
{
    static char unit[OCTETS];
    uint64_t sent;
    int k;
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

static int transmit(const char *to, uint16_t service)
{
    rota_channel *channel;
    rota_refusal refusal;
    rota_request request;
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
    return transmit_on(channel);
}

/* The traffic is the sender's also where the receiver asks. */
static int invited(uint16_t service)
{
    rota_invitee *invitee;
    rota_about about;
    rota_channel *channel;
    rota_request request;
    memset(&request, 0, sizeof request);
    request.unit_octets_max = OCTETS;
    if (rota_cycle_ns(NULL, &request.period_ns) || rota_invitee_begin(NULL, service, &invitee))
        return die("invitee");
    fprintf(stderr, "waiting\n");
    if (rota_invitee_wait(invitee, 20 * SECOND, &about))
        return die("wait");
    printf("%s asks\n", about.from);
    if (rota_invitee_open(invitee, &request, NULL, &channel, NULL))
        return die("open");
    return transmit_on(channel);
}

int main(int argc, char **argv)
{
    if (argc == 3 && !strcmp(argv[1], "recv"))
        return receive(NULL, atoi(argv[2]));
    if (argc == 4 && !strcmp(argv[1], "ask"))
        return receive(argv[2], atoi(argv[3]));
    if (argc == 3 && !strcmp(argv[1], "wait"))
        return invited(atoi(argv[2]));
    if (argc == 4 && !strcmp(argv[1], "send"))
        return transmit(argv[2], atoi(argv[3]));
    fprintf(stderr, "usage: channel recv SERVICE | channel send STATION SERVICE | channel wait SERVICE | "
            "channel ask STATION SERVICE\n");
    return 2;
}
