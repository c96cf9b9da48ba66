/* A stream of continuous media (CMTP): "stream recv 7" on one station, "stream send n2 7" on another. The source works ahead
 * by two units; the receiver has each unit by time, or the mark of one that is missing. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rota.h>

#define SECOND 1000000000ull
enum { AHEAD = 2, BUFFERS = AHEAD + 4, UNITS = 50, OCTETS = 4000 };

static char unit[OCTETS];

static int die(const char *what)
{
    fprintf(stderr, "stream: %s: %s\n", what, rota_error());
    return 1;
}

static int receive(uint16_t service)
{
    rota_listener *listener;
    rota_receiver *receiver;
    rota_player *player;
    rota_played played;
    rota_stream_tally tally;
    uint64_t next = 0, early = 0;
    int status;
    if (rota_listen(NULL, service, NULL, BUFFERS, &listener))
        return die("listen");
    fprintf(stderr, "listening\n");
    if (rota_accept(listener, 20 * SECOND, &receiver) || rota_player_begin(receiver, AHEAD, &player))
        return die("accept");
    while (!(status = rota_player_next(player, unit, sizeof unit, &played, 20 * SECOND))) {
        next += played.unit.lost_before;
        if (played.unit.number != next++)
            return fprintf(stderr, "stream: unit %" PRIu64 " is out of order\n", played.unit.number), 1;
        early += rota_now() < played.due_ns;
        if (played.state == ROTA_WHOLE && (played.unit.octets != OCTETS || unit[OCTETS - 1] != (char)played.unit.number))
            return fprintf(stderr, "stream: unit %" PRIu64 " is wrong\n", played.unit.number), 1;
    }
    if (status != ROTA_ENDED)
        return die("play");
    rota_player_tally(player, &tally);
    printf("%" PRIu64 " units played whole, %" PRIu64 " in part, %" PRIu64 " late, %" PRIu64 " lost; %" PRIu64
           " before their time\n",
           tally.whole, tally.in_part, tally.late, tally.lost, early);
    rota_player_close(player);
    rota_listener_close(listener);
    return 0;
}

static int transmit(const char *to, uint16_t service)
{
    rota_request request;
    rota_channel *channel;
    rota_stream *stream;
    rota_tally tally;
    uint64_t number;
    int status;
    memset(&request, 0, sizeof request);
    request.to = to;
    request.service = service;
    request.unit_octets_max = OCTETS;
    request.buffers = BUFFERS;
    if (rota_cycle_ns(NULL, &request.period_ns) || rota_channel_open(NULL, &request, &channel, NULL))
        return die("open");
    if (rota_stream_begin(channel, AHEAD, 10 * SECOND, &stream))
        return die("begin");
    printf("works ahead by %d units\n", rota_stream_ahead(stream));
    for (;;) {
        if (rota_stream_wait(stream, &number))
            return die("wait");
        if (number >= UNITS)
            break;
        memset(unit, (int)number, sizeof unit);
        status = rota_stream_put(stream, unit, sizeof unit, NULL);
        if (status && status != ROTA_LEFT_OUT)
            return die("put");
    }
    if (rota_stream_finish(stream, 5 * SECOND, &tally))
        return die("finish");
    printf("%" PRIu64 " units came, %" PRIu64 " lost\n", tally.units, tally.lost);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 3 && !strcmp(argv[1], "recv"))
        return receive(atoi(argv[2]));
    if (argc == 4 && !strcmp(argv[1], "send"))
        return transmit(argv[2], atoi(argv[3]));
    fprintf(stderr, "usage: stream recv SERVICE | stream send STATION SERVICE\n");
    return 2;
}
