/* The seven procedures of the Tenet paper: "rcap recv 7" on one station, "rcap send n4 7" on another, which may be behind
 * a gateway. The receiver rejects messages of more than 9,000 octets. The channel is statistical: of 100 messages one may be
 * late, or lost. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rcap.h>

#define MS 1000000ull
#define SECOND (1000 * MS)
enum { MESSAGES = 25, OCTETS = 7200, NODES = 8 };

static char message[OCTETS];

static int die(const char *what)
{
    fprintf(stderr, "rcap: %s: %s\n", what, rota_error());
    return 1;
}

static int receive(uint16_t number)
{
    RcapRegistration *registration;
    RcapRequest request;
    rota_unit unit;
    int status, whole = 0;
    if (RcapRegister(number, &registration))
        return die("register");
    fprintf(stderr, "listening\n");
    for (;;) {
        if (RcapReceiveRequest(registration, 30 * SECOND, &request))
            return die("receive request");
        printf("a request of %s: %" PRIu32 " octets each %" PRIu64 " ns\n", request.source, request.Smax, request.Xmin);
        if (request.Smax <= 9000)
            break;
        if (RcapEstablishReturn(request.channel, 0))
            return die("reject");
    }
    if (RcapEstablishReturn(request.channel, 1) || RcapUnregister(registration))
        return die("accept");
    while (!(status = rota_receive(RcapReceiver(request.channel), message, sizeof message, &unit, 10 * SECOND)))
        whole += !unit.missing_octets && unit.octets == OCTETS && message[OCTETS - 1] == (char)unit.number;
    if (status != ROTA_ENDED)
        return die("receive");
    printf("%d messages came whole\n", whole);
    return RcapCloseRequest(request.channel, NULL) || whole != MESSAGES;
}

static int send(const char *to, uint16_t number)
{
    RcapTraffic traffic = { .Xmin = 40 * MS, .Xave = 80 * MS, .I = 400 * MS, .Smax = 9001 };
    RcapService service = { .D = 400 * MS, .Z = 0.99 };
    rota_hop nodes[NODES];
    rota_refusal refusal;
    rota_tally tally;
    RcapChannel *channel;
    size_t count, k;
    service.W = 2;
    if (RcapEstablishRequest(to, number, &traffic, &service, &channel, &refusal) != ROTA_WRONG_USE)
        return die("no probability is above 1");
    printf("wrong: %s\n", rota_error());
    service.W = 0.999;
    /* The receiver takes no message of that size. */
    if (RcapEstablishRequest(to, number, &traffic, &service, &channel, &refusal) != ROTA_REFUSED)
        return die("the receiver should have rejected the channel");
    printf("rejected: %s: %s\n", refusal.test, rota_error());
    traffic.Smax = OCTETS;
    /* No way behind a gateway is that short: the refusal has the delay that it takes. */
    service.D = MS;
    if (RcapEstablishRequest(to, number, &traffic, &service, &channel, &refusal) != ROTA_REFUSED)
        return die("1 ms is too short for this way");
    printf("refused: %s: %s\n", refusal.test, rota_error());
    service.D = refusal.nearest.delay_ns;
    if (!service.D || RcapEstablishRequest(to, number, &traffic, &service, &channel, &refusal))
        return die("establish with the nearest delay");
    if (RcapStatusRequest(channel, nodes, NODES, &count))
        return die("status");
    for (k = 0; k < count && k < NODES; k++)
        printf("node %s: each packet within %" PRIu64 " ns\n", nodes[k].node, nodes[k].bound_ns);
    for (k = 0; k < MESSAGES; k++) {
        memset(message, (int)k, sizeof message);
        if (rota_channel_send(RcapSender(channel), message, sizeof message, 0, 10 * SECOND))
            return die("send");
    }
    if (RcapCloseRequest(channel, &tally))
        return die("close");
    printf("%" PRIu64 " messages came, %" PRIu64 " lost, %" PRIu64 " in part\n", tally.units, tally.lost,
           tally.incomplete);
    return tally.units != MESSAGES;
}

int main(int argc, char **argv)
{
    if (argc == 3 && !strcmp(argv[1], "recv"))
        return receive(atoi(argv[2]));
    if (argc == 4 && !strcmp(argv[1], "send"))
        return send(argv[2], atoi(argv[3]));
    fprintf(stderr, "usage: rcap recv SERVICE | rcap send STATION SERVICE\n");
    return 2;
}
