/* The seven procedures of the Tenet paper's Table 4 on the channels of rota.h. Departures stand in rcap.h. */
#include "rcap.h"

#include <stdlib.h>
#include <string.h>

/* How long the last messages of a closed channel may take to leave. */
#define DRAIN 2000000000u
/* How long a channel that its receiver takes may wait for the segment to reserve it. */
#define OPENS 5000000000u
/* Messages that the memory of an end holds. */
enum { BUFFERS = 8 };

struct RcapChannel {
    rota_channel *sender;
    rota_receiver *receiver;
    /* Of a request that was not answered: the listener that was asked, and by what number. */
    rota_listener *asked;
    uint64_t id;
    /* Of the same: the hop of its way without a guarantee. */
    int is_withdrawn;
    rota_withdrawn withdrawn;
};

struct RcapRegistration {
    rota_listener *listener;
    uint16_t number;
};

/* A status with its sentence: rota_fail keeps the sentence for rota_error. */
static int fail(int status, const char *sentence) { return rota_fail(status, sentence); }

static int is_probability(double p) { return p == 0 || (p > 0 && p <= 1); }

/* What is missing to 1, in parts of 10^9; never more. */
static uint32_t missing(double p)
{
    double parts = (1 - p) * 1e9;
    uint32_t whole = (uint32_t)parts;
    /* 0.99 has no exact form: a part that lacks less than a thousandth is a whole one. */
    return whole + (parts - whole > 0.999);
}

static int set_chances(const RcapService *service, rota_terms *terms)
{
    double z = service->Z ? service->Z : 1;
    if (!is_probability(service->Z) || !is_probability(service->W))
        return fail(ROTA_WRONG_USE, "Z and W are probabilities above 0, up to 1; state 1 for a deterministic channel");
    terms->late_ppb = missing(z);
    terms->loss_ppb = missing(service->W ? service->W : z);
    if (!terms->late_ppb && terms->loss_ppb)
        return fail(ROTA_WRONG_USE, "W below 1 needs Z below 1: a lost message is not in time");
    return ROTA_OK;
}

static int new_channel(RcapChannel **channel)
{
    *channel = calloc(1, sizeof **channel);
    return *channel ? ROTA_OK : fail(ROTA_FAILED, "there is no memory for a channel");
}

/* The words of the paper as those of rota.h. */
static int asked_for(const char *destination, uint16_t number, const RcapTraffic *traffic, const RcapService *service,
                     rota_request *request, rota_terms *terms)
{
    int status;
    if (!destination || !traffic)
        return fail(ROTA_WRONG_USE, "destination, traffic and channel may not be null pointers");
    if (!traffic->Xmin || !traffic->Smax)
        return fail(ROTA_WRONG_USE, "Xmin and Smax are 1 or more: a channel has messages, some time apart");
    memset(terms, 0, sizeof *terms);
    if (service) {
        status = set_chances(service, terms);
        if (status)
            return status;
        terms->delay_ns = service->D;
        terms->jitter_ns = service->J;
    }
    terms->average_ns = traffic->Xave;
    terms->interval_ns = traffic->I;
    memset(request, 0, sizeof *request);
    request->to = destination;
    request->service = number;
    request->period_ns = traffic->Xmin;
    request->unit_octets_max = traffic->Smax;
    request->buffers = BUFFERS;
    return ROTA_OK;
}

int RcapEstablishRequest(const char *destination, uint16_t number, const RcapTraffic *traffic,
                         const RcapService *service, RcapChannel **channel, rota_refusal *refusal)
{
    return RcapEstablishMore(destination, number, traffic, service, NULL, channel, refusal);
}

int RcapEstablishMore(const char *destination, uint16_t number, const RcapTraffic *traffic, const RcapService *service,
                      const rota_more *more, RcapChannel **channel, rota_refusal *refusal)
{
    rota_request request;
    rota_terms terms;
    RcapChannel *made;
    int status = asked_for(destination, number, traffic, service, &request, &terms);
    if (status)
        return status;
    if (!channel)
        return fail(ROTA_WRONG_USE, "destination, traffic and channel may not be null pointers");
    status = new_channel(&made);
    if (status)
        return status;
    status = rota_channel_open_more(NULL, &request, &terms, more, &made->sender, refusal);
    if (status) {
        free(made);
        return status;
    }
    /* RMTP: a message waits for its turn, and none is left out. */
    rota_channel_drop_overdue(made->sender, 0);
    *channel = made;
    return ROTA_OK;
}

int RcapEstablishDuplex(const char *destination, uint16_t number, const RcapTraffic *traffic,
                        const RcapService *service, const rota_more *more, RcapChannel **there, RcapChannel **back,
                        rota_refusal *refusal)
{
    rota_request request;
    rota_terms terms;
    RcapChannel *to, *from;
    int status = asked_for(destination, number, traffic, service, &request, &terms);
    if (status)
        return status;
    if (!there || !back)
        return fail(ROTA_WRONG_USE, "there and back may not be null pointers");
    status = new_channel(&to);
    if (status)
        return status;
    status = new_channel(&from);
    if (status) {
        free(to);
        return status;
    }
    status = rota_channel_open_duplex(NULL, &request, &terms, more, BUFFERS, &to->sender, &from->receiver, refusal);
    if (status) {
        free(to);
        free(from);
        return status;
    }
    rota_channel_drop_overdue(to->sender, 0);
    *there = to;
    *back = from;
    return ROTA_OK;
}

int RcapRegister(uint16_t number, RcapRegistration **registration)
{
    RcapRegistration *made;
    int status;
    if (!registration)
        return fail(ROTA_WRONG_USE, "registration may not be a null pointer");
    made = calloc(1, sizeof *made);
    if (!made)
        return fail(ROTA_FAILED, "there is no memory for a registration");
    made->number = number;
    status = rota_listen_asked(NULL, number, NULL, BUFFERS, &made->listener);
    if (status) {
        free(made);
        return status;
    }
    *registration = made;
    return ROTA_OK;
}

int RcapReceiveRequest(RcapRegistration *registration, uint64_t timeout, RcapRequest *request)
{
    rota_listener *next;
    rota_about about;
    RcapChannel *made;
    int status;
    if (!registration || !request)
        return fail(ROTA_WRONG_USE, "registration and request may not be null pointers");
    /* A listener takes one channel in its life; where the node had no room for the next one, it is asked again. */
    if (!registration->listener) {
        status = rota_listen_asked(NULL, registration->number, NULL, BUFFERS, &registration->listener);
        if (status)
            return status;
    }
    status = new_channel(&made);
    if (status)
        return status;
    status = rota_asked_withdrawn(registration->listener, timeout, &about, &made->is_withdrawn, &made->withdrawn);
    if (status) {
        free(made);
        return status;
    }
    next = NULL;
    rota_listen_asked(NULL, registration->number, NULL, BUFFERS, &next);
    made->asked = registration->listener;
    made->id = about.channel;
    registration->listener = next;
    memset(request, 0, sizeof *request);
    request->channel = made;
    request->id = about.channel;
    request->Xmin = about.period_ns;
    request->D = about.bound_ns;
    request->Smax = about.unit_octets_max;
    memcpy(request->source, about.from, sizeof request->source);
    return ROTA_OK;
}

int RcapEstablishReturn(RcapChannel *channel, int accept)
{
    int status;
    if (!channel || !channel->asked)
        return fail(ROTA_WRONG_USE, "only a request of RcapReceiveRequest is answered, once");
    status = rota_answer(channel->asked, channel->id, accept);
    if (!status && accept)
        status = rota_accept(channel->asked, OPENS, &channel->receiver);
    rota_listener_close(channel->asked);
    channel->asked = NULL;
    if (status || !accept)
        free(channel);
    return status;
}

int RcapWithdrawn(RcapChannel *channel, int *is, rota_withdrawn *hop)
{
    if (!channel || !is)
        return fail(ROTA_WRONG_USE, "channel and is may not be null pointers");
    if (channel->sender)
        return rota_channel_withdrawn(channel->sender, is, hop);
    if (channel->receiver)
        return rota_receiver_withdrawn(channel->receiver, is, hop);
    *is = channel->is_withdrawn;
    if (*is && hop)
        *hop = channel->withdrawn;
    return ROTA_OK;
}

int RcapUnregister(RcapRegistration *registration)
{
    int status = ROTA_OK;
    if (!registration)
        return fail(ROTA_WRONG_USE, "registration may not be a null pointer");
    if (registration->listener)
        status = rota_listener_close(registration->listener);
    free(registration);
    return status;
}

int RcapStatusRequest(const RcapChannel *channel, rota_hop *nodes, size_t room, size_t *count)
{
    if (!channel || !channel->sender)
        return fail(ROTA_WRONG_USE, "the source of a channel asks for its status");
    return rota_channel_status(NULL, rota_channel_id(channel->sender), nodes, room, count);
}

int RcapCertificate(const RcapChannel *channel, char *text, size_t room, size_t *octets)
{
    if (!channel || !channel->sender)
        return fail(ROTA_WRONG_USE, "the source of a channel has its certificate");
    return rota_channel_certificate(channel->sender, text, room, octets);
}

int RcapCloseRequest(RcapChannel *channel, rota_tally *tally)
{
    int status;
    if (!channel)
        return fail(ROTA_WRONG_USE, "channel may not be a null pointer");
    if (channel->asked)
        return RcapEstablishReturn(channel, 0);
    if (channel->sender)
        status = rota_channel_finish(channel->sender, DRAIN, tally);
    else {
        if (tally)
            rota_receiver_tally(channel->receiver, tally);
        status = rota_receiver_close(channel->receiver);
    }
    free(channel);
    return status;
}

rota_channel *RcapSender(RcapChannel *channel) { return channel ? channel->sender : NULL; }

rota_receiver *RcapReceiver(RcapChannel *channel) { return channel ? channel->receiver : NULL; }
