/* rcap.h: real-time channels in the words of the Tenet paper (Banerjea and others, 1995): the seven procedures of its
 * Table 4, upon rota.h.
 *
 * Every call returns ROTA_OK (0) or another rota_status; rota_error() then gives one sentence that says why. Times are
 * nanoseconds, sizes octets. A channel leads to a service of a node, on this segment or behind gateways. Data goes by the
 * calls of rota.h, on RcapSender() and RcapReceiver().
 *
 * Departures: a message that finds no buffer comes behind late ones, so that W is Z unless stated, and a W of 1 makes all
 * deterministic. A request that is not answered within a second is denied; of a source with several receivers sooner, with 16
 * after three eighths of a second.
 */
#ifndef RCAP_H
#define RCAP_H

#include <rota.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct RcapChannel RcapChannel;           /* one end of a channel */
typedef struct RcapRegistration RcapRegistration; /* a service that takes channels */

/* Table 3. */
typedef struct RcapTraffic {
    uint64_t Xmin;            /* least time between two messages */
    uint64_t Xave;            /* least average time; 0: Xmin */
    uint64_t I;               /* over which the average holds; 0: Xave */
    uint32_t Smax;            /* largest message */
} RcapTraffic;

/* Table 2. */
typedef struct RcapService {
    uint64_t D;               /* longest delay of a message; 0: across segments 0.5 s, or the time of 800
                               packets if that is shorter; any on one */
    uint64_t J;               /* largest difference of two delays; 0: any */
    double Z;                 /* least probability that a message is in time; 0: 1. Below 1: statistical */
    double W;                 /* least probability that no buffer overflows; 0: Z */
} RcapService;

/* A request that a receiver obtains. */
typedef struct RcapRequest {
    RcapChannel *channel;
    uint64_t id;              /* the same at both ends */
    uint64_t Xmin;
    uint64_t D;               /* promised: at a channel across segments, the delay of its way */
    uint32_t Smax;
    char source[64];          /* the station of the source */
} RcapRequest;

/* Asks for a new channel to a service of `destination`, and waits for the answer of all nodes. `service` and `refusal` may
 * be NULL; ROTA_REFUSED fills the refusal: node, test, margin, and what would fit. */
int RcapEstablishRequest(const char *destination, uint16_t number, const RcapTraffic *traffic,
                         const RcapService *service, RcapChannel **channel, rota_refusal *refusal);
/* The same with terms that the paper's procedure has no place for: partition, group, start and end, a path in reserve, ways
 * without a guarantee, gateways by name. `more` may be NULL; see rota.h. */
int RcapEstablishMore(const char *destination, uint16_t number, const RcapTraffic *traffic, const RcapService *service,
                      const rota_more *more, RcapChannel **channel, rota_refusal *refusal);
/* A channel there and one back with the same traffic and service, as rota_channel_open_duplex: both or none. Each is closed
 * by itself. */
int RcapEstablishDuplex(const char *destination, uint16_t number, const RcapTraffic *traffic,
                        const RcapService *service, const rota_more *more, RcapChannel **there, RcapChannel **back,
                        rota_refusal *refusal);
/* Is willing to accept channels to this service from now on. */
int RcapRegister(uint16_t number, RcapRegistration **registration);
/* Obtains the next request, in `timeout` at most. RcapEstablishReturn answers it, within a second: the source waits, one
 * with several receivers shorter (see above). */
int RcapReceiveRequest(RcapRegistration *registration, uint64_t timeout, RcapRequest *request);
/* Accepts the channel and waits until it is open, or rejects it: the source is refused then, by "ReceiverRefused". The
 * answer is final. The handle of a channel that is rejected, or that does not open, is gone. */
int RcapEstablishReturn(RcapChannel *channel, int accept);
/* Whether a hop of the way has no guarantee, of a request also: `is` is 1 and `hop`, which may be NULL, filled, or 0. */
int RcapWithdrawn(RcapChannel *channel, int *is, rota_withdrawn *hop);
/* Accepts no more channels. Existing ones go on. The handle is gone. */
int RcapUnregister(RcapRegistration *registration);
/* The source asks for the status of its channel at each node: the first `room`, and how many there are. */
int RcapStatusRequest(const RcapChannel *channel, rota_hop *nodes, size_t room, size_t *count);
/* The source obtains the certificate of its channel, as rota_channel_certificate. */
int RcapCertificate(const RcapChannel *channel, char *text, size_t room, size_t *octets);
/* Source or receiver closes the channel and releases its resources. `tally`, which may be NULL, has the counts of its
 * messages. The handle is gone. */
int RcapCloseRequest(RcapChannel *channel, rota_tally *tally);

/* The end of a channel for the calls of rota.h, NULL at the other end: rota_channel_send, rota_receive. It stays the
 * channel's, and is not closed by itself. */
rota_channel *RcapSender(RcapChannel *channel);
rota_receiver *RcapReceiver(RcapChannel *channel);

#ifdef __cplusplus
}
#endif

#endif
