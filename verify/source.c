/* The source of a channel for verify/namespaces.py: it hands units over as fast as its traffic allows ("greedy"), at random
 * within it ("random"), or beyond it, eight at once ("hasty"), and prints the counts as JSON. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rota.h>

#define SECOND 1000000000ull
enum { HOPS = 16, OCTETS_MAX = 65536, AT_ONCE = 8 };

static char unit[OCTETS_MAX];
static uint64_t state;

/* xorshift64*: below n. */
static uint64_t below(uint64_t n)
{
    state ^= state >> 12, state ^= state << 25, state ^= state >> 27;
    return (state * 2685821657736338717ull >> 11) % n;
}

static void sleep_until(uint64_t at)
{
    struct timespec until = { (time_t)(at / SECOND), (long)(at % SECOND) };
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL))
        ;
}

int main(int count, char **words)
{
    if (count != 9)
        return fprintf(stderr, "usage: source TO SERVICE OCTETS PERIOD_NS DELAY_NS MANNER SECONDS SEED\n"), 2;
    rota_request request = { .to = words[1], .service = (uint16_t)atoi(words[2]), .timeout_ns = 10 * SECOND };
    request.unit_octets_max = (uint32_t)atoi(words[3]);
    request.period_ns = strtoull(words[4], NULL, 10);
    rota_terms terms = { .delay_ns = strtoull(words[5], NULL, 10) };
    int is_random = !strcmp(words[6], "random"), is_hasty = !strcmp(words[6], "hasty");
    state = strtoull(words[8], NULL, 10) * 2 + 1;
    rota_channel *channel;
    rota_refusal refusal;
    rota_tally tally = { 0 };
    int status = rota_channel_open_terms(NULL, &request, &terms, &channel, &refusal);
    if (status)
        return printf("{\"%s\":\"%s\"}\n", status == ROTA_REFUSED ? "refused" : "error",
                      status == ROTA_REFUSED ? refusal.test : rota_error()), 3;
    rota_channel_drop_overdue(channel, 0);
    uint64_t bound = rota_channel_bound_ns(channel), next = rota_now(), sent = 0, excess = 0;
    uint64_t end = next + strtoull(words[7], NULL, 10) * SECOND;
    while (next < end && status == ROTA_OK) {
        sleep_until(next);
        uint64_t now = rota_now();
        next = (now > next ? now : next) + request.period_ns * (is_hasty ? AT_ONCE : 1);
        next += is_random ? below(request.period_ns) : 0;
        for (int k = 0; k < (is_hasty ? AT_ONCE : 1); k++) {
            size_t octets = is_random ? 1 + below(request.unit_octets_max) : request.unit_octets_max;
            status = rota_channel_send(channel, unit, octets, 0, is_hasty ? 0 : 10 * SECOND);
            sent += status == ROTA_OK;
            excess += status == ROTA_WOULD_BLOCK;
            status = status == ROTA_WOULD_BLOCK ? ROTA_OK : status;
        }
    }
    const char *ended = status ? rota_error() : "";
    /* The counts of the hops are a second old at most. */
    sleep_until(rota_now() + 2 * SECOND);
    rota_hop hops[HOPS];
    size_t known = 0;
    if (rota_channel_status(NULL, rota_channel_id(channel), hops, HOPS, &known))
        known = 0;
    printf("{\"bound_ns\":%" PRIu64 ",\"sent\":%" PRIu64 ",\"excess\":%" PRIu64 ",\"packets\":%" PRIu64 ",\"media\":[", bound,
           sent, excess, known ? hops[0].sent : 0);
    for (size_t k = 0; k < known && k < HOPS; k++)
        printf("%s\"%s\"", k ? "," : "", hops[k].medium);
    status = rota_channel_finish(channel, 10 * SECOND, &tally);
    printf("],\"lost\":%" PRIu64 ",\"incomplete\":%" PRIu64 ",\"ended\":\"%s\"}\n", tally.lost, tally.incomplete, ended);
    return 0;
}
