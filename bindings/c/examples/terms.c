/* Terms of a channel beyond its traffic: "terms recv 7" on one station, "terms send n2 7" on another. A network without Rota
 * may lie between them: the receiver is told before it answers. The source is refused where a partition is named that no part
 * of the way has, is the member of a group for a moment, opens a channel in each direction, and then one that begins later
 * and ends by itself. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rcap.h>

#define MS 1000000ull
#define SECOND (1000 * MS)
/* THERE are more than the memory of an end holds. */
enum { OCTETS = 1000, BACK = 5, THERE = 12 };

static char message[OCTETS];

static int die(const char *what)
{
    fprintf(stderr, "terms: %s: %s\n", what, rota_error());
    return 1;
}

/* Messages until the sender's end, or -1. */
static int count(rota_receiver *receiver)
{
    int status, whole = 0;
    while (!(status = rota_receive(receiver, message, sizeof message, NULL, 10 * SECOND)))
        whole++;
    return status == ROTA_ENDED ? whole : -1;
}

/* Takes one channel, after it was told what its way guarantees. */
static int take(RcapRegistration *registration, RcapChannel **channel)
{
    RcapRequest request;
    rota_withdrawn hop;
    int is;
    if (RcapReceiveRequest(registration, 30 * SECOND, &request) || RcapWithdrawn(request.channel, &is, &hop))
        return die("request");
    if (is)
        printf("asked: no guarantee from %s to %s\n", hop.from, hop.to);
    else
        printf("asked: all is guaranteed\n");
    if (RcapEstablishReturn(request.channel, 1))
        return die("accept");
    *channel = request.channel;
    return 0;
}

static int receive(uint16_t number)
{
    RcapRegistration *registration;
    RcapChannel *there;
    rota_invitee *invitee;
    rota_channel *back;
    rota_about about, of;
    rota_more more = { .size = sizeof more, .allow_withdrawn = 1 };
    rota_request request = { .period_ns = 40 * MS, .unit_octets_max = OCTETS };
    int k, whole;
    if (RcapRegister(number, &registration) || rota_invitee_begin(NULL, number, &invitee))
        return die("register");
    fprintf(stderr, "listening\n");
    /* The member of a group, which sends nothing. */
    if (take(registration, &there) || count(RcapReceiver(there)) || RcapCloseRequest(there, NULL))
        return die("member");
    /* A channel in each direction: the way back is asked for by the number of the one that came. */
    if (take(registration, &there) || rota_invitee_wait(invitee, 10 * SECOND, &about))
        return die("duplex");
    if (rota_receiver_about(RcapReceiver(there), &of) || about.channel != of.channel)
        return die("another channel was asked for");
    if (rota_invitee_open_more(invitee, &request, NULL, &more, &back, NULL))
        return die("back");
    rota_channel_drop_overdue(back, 0);
    for (k = 0; k < BACK; k++)
        if (rota_channel_send(back, message, sizeof message, 0, 10 * SECOND))
            return die("send back");
    if (rota_channel_close(back, 5 * SECOND, NULL) || count(RcapReceiver(there)) != THERE || RcapCloseRequest(there, NULL))
        return die("close");
    /* One that ends by itself. */
    if (take(registration, &there))
        return 1;
    whole = count(RcapReceiver(there));
    printf("%s, then its end\n", whole > 0 ? "messages" : "nothing");
    return RcapCloseRequest(there, NULL) || RcapUnregister(registration) || whole <= 0;
}

static int send(const char *to, uint16_t number)
{
    RcapTraffic traffic = { .Xmin = 40 * MS, .Smax = OCTETS };
    rota_more more = { .size = sizeof more - 1, .allow_withdrawn = 1 };
    RcapChannel *channel, *back;
    rota_refusal refusal;
    uint64_t begun;
    int status, is, k;
    if (RcapEstablishMore(to, number, &traffic, NULL, &more, &channel, &refusal) != ROTA_WRONG_USE)
        return die("a structure of no version");
    printf("wrong: %s\n", rota_error());
    more.size = sizeof more;
    more.partition = "studio";
    if (RcapEstablishMore(to, number, &traffic, NULL, &more, &channel, &refusal) != ROTA_REFUSED)
        return die("a partition that is nowhere");
    printf("refused: %s\n", refusal.test);
    more.partition = NULL;
    more.group = "talk";
    more.at_once = 2;
    if (RcapEstablishMore(to, number, &traffic, NULL, &more, &channel, &refusal) || RcapWithdrawn(channel, &is, NULL))
        return die("group");
    printf("a member; withdrawn: %d\n", is);
    if (RcapCloseRequest(channel, NULL))
        return die("close");
    more.group = NULL;
    more.at_once = 0;
    if (RcapEstablishDuplex(to, number, &traffic, NULL, &more, &channel, &back, &refusal))
        return die("duplex");
    printf("%d messages came back\n", count(RcapReceiver(back)));
    /* Faster than their traffic: each waits for its turn, and none is left out. */
    for (k = 0; k < THERE; k++)
        if (rota_channel_send(RcapSender(channel), message, sizeof message, 0, 10 * SECOND))
            return die("send there");
    if (RcapCloseRequest(channel, NULL) || RcapCloseRequest(back, NULL))
        return die("close both");
    begun = rota_now();
    more.start_ns = 300 * MS;
    more.end_ns = 1000 * MS;
    if (RcapEstablishMore(to, number, &traffic, NULL, &more, &channel, &refusal))
        return die("book");
    while (!(status = rota_channel_send(RcapSender(channel), message, sizeof message, 0, 10 * SECOND)))
        ;
    if (status != ROTA_ENDED)
        return die("the end");
    printf("%s\n", rota_now() - begun >= 1000 * MS ? "ended in time" : "ended too early");
    status = RcapCloseRequest(channel, NULL);
    return status != ROTA_OK && status != ROTA_ENDED;
}

int main(int argc, char **argv)
{
    if (argc == 3 && !strcmp(argv[1], "recv"))
        return receive(atoi(argv[2]));
    if (argc == 4 && !strcmp(argv[1], "send"))
        return send(argv[2], atoi(argv[3]));
    fprintf(stderr, "usage: terms recv SERVICE | terms send STATION SERVICE\n");
    return 2;
}
