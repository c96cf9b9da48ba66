/* The six calls of RETHER's procedural interface on the channels of rota.h.
 *
 * Departures from the paper: buffers are copied once into memory that node and program share, not mapped and locked;
 * a sessionId is unique at its receiver only, where it is the service; the receiver listens before the sender is
 * admitted; retherSend and retherRecv return the buffer's number, so that the program need not count.
 */
#define _GNU_SOURCE
#include "rether.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "rota.h"

enum { SESSIONS = 32, STATION_OCTETS = 64 };

struct session {
    int id, flag, length, count, next; /* id 0: free; next: the buffer to send or fill */
    char receiver[STATION_OCTETS];
    void **buffers;
    rota_channel *channel;
    rota_listener *listener;
    rota_receiver *from;
    struct retherState state;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct session sessions[SESSIONS];
static _Thread_local char why[512];

const char *retherError(void) { return why; }

static int fail(int code, const char *sentence)
{
    snprintf(why, sizeof why, "%s", sentence);
    return code;
}

static int failed(int status)
{
    switch (status) {
    case ROTA_WOULD_BLOCK:
    case ROTA_TIMED_OUT: return fail(RETHER_EAGAIN, rota_error());
    case ROTA_REFUSED: return fail(RETHER_EREFUSED, rota_error());
    case ROTA_ENDED: return fail(RETHER_EEND, rota_error());
    case ROTA_WRONG_USE:
    case ROTA_TOO_LONG: return fail(RETHER_EINVAL, rota_error());
    default: return fail(RETHER_EFAIL, rota_error());
    }
}

static struct session *find(int id)
{
    int k;
    for (k = 0; id > 0 && k < SESSIONS; k++)
        if (sessions[k].id == id)
            return &sessions[k];
    fail(RETHER_EINVAL, "no session has that sessionId: retherOpenRTsession gives one");
    return NULL;
}

/* A number that hardly anybody else has: admission says so if somebody has. */
static int any_id(void)
{
    uint64_t mixed = (rota_now() ^ (uint64_t)getpid() << 20) * 0x9e3779b97f4a7c15u;
    return 1 + (int)(mixed >> 48) % 65535;
}

static int open_session(struct session *s, int *sessionId, const char *receiverId)
{
    int status;
    if (s->flag == RETHER_SENDER) {
        if (!receiverId || !*receiverId || strlen(receiverId) >= STATION_OCTETS)
            return fail(RETHER_EINVAL, "a sender names the receiver's station: its name, number or MAC");
        strcpy(s->receiver, receiverId);
        while (*sessionId == 0 || find(*sessionId))
            *sessionId = any_id();
        s->id = *sessionId;
        return 0;
    }
    if (*sessionId == 0 || find(*sessionId))
        return fail(RETHER_EINVAL, "a receiver gives the sessionId of its sender, once in a program");
    status = rota_listen(NULL, *sessionId, NULL, s->count, &s->listener);
    if (status)
        return failed(status);
    s->id = *sessionId;
    return 0;
}

int retherOpenRTsession(void *bufAddressVector[], int bufLength, int numBufs, int *sessionId, int flag,
                        const char *receiverId)
{
    struct session fresh, *s = NULL;
    int k, code;
    if (!bufAddressVector || !sessionId)
        return fail(RETHER_EINVAL, "bufAddressVector and sessionId may not be null pointers");
    if (bufLength < 1 || numBufs < 1 || numBufs > 64)
        return fail(RETHER_EINVAL, "bufLength is 1 or more, numBufs from 1 to 64");
    if (*sessionId < 0 || *sessionId > 65535 || (flag != RETHER_SENDER && flag != RETHER_RECEIVER))
        return fail(RETHER_EINVAL, "sessionId is from 0 to 65535, flag RETHER_SENDER or RETHER_RECEIVER");
    for (k = 0; k < numBufs; k++)
        if (!bufAddressVector[k])
            return fail(RETHER_EINVAL, "one of the buffers is a null pointer");
    memset(&fresh, 0, sizeof fresh);
    fresh.buffers = bufAddressVector;
    fresh.length = bufLength;
    fresh.count = numBufs;
    fresh.flag = flag;
    pthread_mutex_lock(&lock);
    for (k = 0; k < SESSIONS && !s; k++)
        if (!sessions[k].id)
            s = &sessions[k];
    code = s ? open_session(&fresh, sessionId, receiverId) : fail(RETHER_EFAIL, "a program may have 32 sessions");
    if (!code)
        *s = fresh;
    pthread_mutex_unlock(&lock);
    return code;
}

int retherAdmit(int sessionId)
{
    struct session *s = find(sessionId);
    rota_request request;
    int status;
    if (!s)
        return RETHER_EINVAL;
    if (s->flag != RETHER_SENDER || s->channel)
        return fail(RETHER_EINVAL, "a sender asks for admission, once");
    memset(&request, 0, sizeof request);
    status = rota_cycle_ns(NULL, &request.period_ns);
    if (status)
        return failed(status);
    request.to = s->receiver;
    request.unit_octets_max = s->length;
    request.service = s->id;
    request.buffers = s->count;
    request.periodic = 1;
    status = rota_channel_open(NULL, &request, &s->channel, NULL);
    if (status)
        return failed(status);
    /* A sender that waits for a free buffer is paced by that: none of its buffers is left out. */
    rota_channel_drop_overdue(s->channel, 0);
    s->state.boundNs = rota_channel_bound_ns(s->channel);
    s->state.cycleNs = request.period_ns;
    return 0;
}

int retherSend(int sessionId, int blockFlag)
{
    struct session *s = find(sessionId);
    int status;
    if (!s)
        return RETHER_EINVAL;
    if (!s->channel)
        return fail(RETHER_EINVAL, "only a sender that was admitted may send");
    status = rota_channel_send(s->channel, s->buffers[s->next], s->length, 0, blockFlag ? UINT64_MAX : 0);
    if (status)
        return failed(status);
    s->state.units++;
    return s->next = (s->next + 1) % s->count;
}

int retherRecv(int sessionId, int blockFlag)
{
    struct session *s = find(sessionId);
    uint64_t timeout = blockFlag ? UINT64_MAX : 0;
    rota_unit unit;
    int status, filled;
    if (!s)
        return RETHER_EINVAL;
    if (s->flag != RETHER_RECEIVER)
        return fail(RETHER_EINVAL, "only a receiver may receive");
    if (!s->from) {
        status = rota_accept(s->listener, timeout, &s->from);
        if (status)
            return failed(status);
        rota_receiver_newest(s->from, 1);
    }
    status = rota_receive(s->from, s->buffers[s->next], s->length, &unit, timeout);
    if (status)
        return failed(status);
    filled = s->next;
    s->next = (s->next + 1) % s->count;
    s->state.units++;
    /* Newer data has priority, as in the paper: what came before it counts as overwritten. */
    s->state.lost = unit.number + 1 - s->state.units;
    s->state.octets = unit.octets < (size_t)s->length ? (int)unit.octets : s->length;
    s->state.missing = unit.missing_octets;
    return filled;
}

int retherGetState(int sessionId, struct retherState *state)
{
    struct session *s = find(sessionId);
    if (!s || !state)
        return s ? fail(RETHER_EINVAL, "state is a null pointer") : RETHER_EINVAL;
    *state = s->state;
    return 0;
}

int retherCloseRTsession(int sessionId)
{
    struct session *s, ended;
    int status = ROTA_OK;
    pthread_mutex_lock(&lock);
    s = find(sessionId);
    if (s) {
        ended = *s;
        memset(s, 0, sizeof *s);
    }
    pthread_mutex_unlock(&lock);
    if (!s)
        return RETHER_EINVAL;
    if (ended.channel)
        status = rota_channel_close(ended.channel, 2000000000u, NULL);
    if (ended.from)
        rota_receiver_close(ended.from);
    if (ended.listener)
        rota_listener_close(ended.listener);
    return status ? failed(status) : 0;
}
