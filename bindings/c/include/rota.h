/* rota.h: real-time channels with a proven bound, and LLC messages, on ordinary Ethernet.
 *
 * Every call returns ROTA_OK (0) or another rota_status; rota_error() then gives one sentence that says why. A null
 * pointer, an unknown station or a node that died is a status, never a crash. Times are nanoseconds of the host's
 * monotonic clock. A handle may be used by one thread at a time, different handles by different threads; the call
 * that closes a handle ends it whatever it returns. `control` names the node's control socket: NULL for the node of
 * this station ($ROTA_CONTROL, else "control"), else an absolute path, or a plain name beside the default.
 */
#ifndef ROTA_H
#define ROTA_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum rota_status {
    ROTA_OK = 0,
    ROTA_REFUSED = 1,         /* admission refused; the refusal says what would fit */
    ROTA_NO_SUCH_STATION = 2,
    ROTA_NO_LISTENER = 3,     /* nobody there listens to the service */
    ROTA_TOO_LONG = 4,        /* more octets than the contract, or a packet, may have */
    ROTA_WOULD_BLOCK = 5,     /* nothing there, or no room, and the time given was 0 */
    ROTA_TIMED_OUT = 6,
    ROTA_ENDED = 7,           /* the sender closed the channel, and all that came has been received; at a sender: its end_ns came */
    ROTA_BROKEN = 8,          /* the channel ended otherwise */
    ROTA_NODE_GONE = 9,       /* no node runs here, or it died */
    ROTA_WRONG_USE = 10,      /* a null pointer, a value out of range */
    ROTA_FAILED = 11,
    ROTA_INVALID_SOCKET = 12, /* odd, 0, above 254, or not open any more */
    ROTA_DUPLICATE_SOCKET = 13,
    ROTA_TOO_MANY_SOCKETS = 14,
    ROTA_BUSY = 15,           /* no room in the socket's queue, or the circuit's last message is on its way */
    ROTA_IN_DOUBT = 16,       /* circuit: the receiver began anew; the message was taken once or not at all */
    ROTA_LEFT_OUT = 17        /* the unit was overdue: it is lost, and the channel goes on */
} rota_status;

/* Why this thread's last call that failed did; valid until its next failure. */
const char *rota_error(void);
/* For calls upon these: keeps `sentence` for rota_error, and returns `status`. */
int rota_fail(int status, const char *sentence);
/* The host's monotonic clock. */
uint64_t rota_now(void);

/* ---- Channels: one unit in each period, with a bound proven before the first -------------------------------- */

/* The library's version, such as "0.1.0": never NULL, never freed. */
const char *rota_version(void);

typedef struct rota_channel rota_channel;
typedef struct rota_listener rota_listener;
typedef struct rota_receiver rota_receiver;

typedef struct rota_request {
    const char *to;           /* station: name, number or MAC */
    const char *name;         /* for people; NULL for none */
    uint64_t period_ns;       /* one unit each; the cycle, a multiple or a whole part of it reserves least */
    uint64_t timeout_ns;      /* how long admission may take; 0: ten seconds */
    uint32_t unit_octets_max;
    uint32_t room_octets;     /* how far the channel may grow later; 0: not */
    uint16_t service;         /* whom to reach there */
    uint16_t buffers;         /* 0: four, or as many as the contract needs */
    int periodic;             /* slots at strict periods */
} rota_request;

/* The nearest request that fits, which has been tested: the one that was refused with these numbers in the place of its
 * own, all together. A number that stays as it was is 0; all are 0 where no such request is known. */
typedef struct rota_nearest {
    uint64_t delay_ns;              /* D of a channel across segments */
    uint64_t jitter_ns;             /* J */
    uint64_t xmin_ns;               /* Xmin, or the period; Xave and I are no shorter */
    uint64_t end_ns;                /* of a booked channel: its latest end, from now on */
    uint32_t octets_max;            /* Smax, or the largest unit */
    uint32_t packet_octets;         /* the largest packet that each node of the way carries */
} rota_nearest;

typedef struct rota_refusal {
    uint64_t margin_bps;            /* by how much it does not fit */
    uint64_t counter_offer_bps;     /* what would fit; 0: nothing */
    rota_nearest nearest;
    uint32_t counter_offer_octets;  /* the same as the largest unit at this period */
    int tsn_code;                   /* failure code of IEEE 802.1Q, 0: none fits */
    char test[32];                  /* the test that failed */
    char node[64];                  /* where */
    char sentence[256];             /* the same for people, with the counter-offer */
} rota_refusal;

typedef struct rota_unit {
    uint64_t number;          /* from 0; units that were left out have numbers too */
    size_t octets;            /* its length, also where the buffer was too short for all of it */
    uint64_t schedule_ns;     /* the sender's own; only differences mean something */
    uint64_t arrived_at_ns;
    uint64_t lost_before;     /* units before it of which nothing came */
    uint32_t missing_octets;  /* of this one; they are zero */
    int truncated;            /* the buffer was too short */
} rota_unit;

/* The counts of a channel's units. The promise was kept if late, lost and incomplete are 0. */
typedef struct rota_tally {
    uint64_t units;         /* came whole */
    uint64_t late;          /* of these: behind their bound; one that was not read in time is lost, and not late */
    uint64_t lost;          /* nothing of them came */
    uint64_t incomplete;    /* came in part */
    uint64_t latest_by_ns;  /* by how much the latest missed its bound */
    uint64_t unread;        /* of the lost and incomplete: they came, and the receiving program did not read them in time */
} rota_tally;

/* `refusal` may be NULL; it is filled where ROTA_REFUSED is returned. The channel leaves out overdue units, as live media
 * want: rota_channel_send may return ROTA_LEFT_OUT. A program that must lose no unit calls
 * rota_channel_drop_overdue(channel, 0) after this. */
int rota_channel_open(const char *control, const rota_request *request, rota_channel **channel,
                      rota_refusal *refusal);
int rota_channel_modify(rota_channel *channel, uint32_t unit_octets_max, rota_refusal *refusal);
/* `schedule_ns` 0: now. `timeout_ns` 0: never waits; UINT64_MAX: as long as it takes. ROTA_OK and ROTA_LEFT_OUT are the two
 * results after which a program continues with its next unit. ROTA_LEFT_OUT comes by default, at once whatever
 * `timeout_ns` is: units that wait before it keep it from its slot, so that it would be late. It counts as lost; do not
 * hand it over again. */
int rota_channel_send(rota_channel *channel, const void *unit, size_t octets, uint64_t schedule_ns,
                      uint64_t timeout_ns);
uint64_t rota_channel_bound_ns(const rota_channel *channel);
/* The reservation beyond one unit each period, in millionths: more than 0 if the period is no multiple and no whole
 * part of the cycle. */
uint32_t rota_channel_extra_ppm(const rota_channel *channel);
/* The cycle of this station's segment: the natural period of a channel. */
int rota_cycle_ns(const char *control, uint64_t *cycle_ns);
/* Opens the channel again after its end: waits for a node at the same control path, `timeout_ns` at most, and asks
 * it for the same channel. Units are numbered from 0 again; the tally goes on, and so does rota_channel_drop_overdue.
 * `refusal` may be NULL. */
int rota_channel_reattach(rota_channel *channel, uint64_t timeout_ns, rota_refusal *refusal);
/* Listens again after the node's death; channels that came before have ended. */
int rota_listener_reattach(rota_listener *listener, uint64_t timeout_ns);
/* Readable when the channel or the node ends. */
int rota_channel_fd(const rota_channel *channel);
/* Waits until all units have left, at most `drain_ns`; `units_sent` may be NULL. */
int rota_channel_close(rota_channel *channel, uint64_t drain_ns, uint64_t *units_sent);
/* The policy for overdue units. `drop` other than 0, the default: a unit is left out, and counts as lost at both ends, while
 * the one before it still waits for its slot (ROTA_LEFT_OUT); after a stall the channel is in time again by itself. 0: it
 * queues, and is late, as are all after it until the program pauses. A program that must lose no unit, or that hands over
 * units without a clock to follow (a file), calls this with 0 after opening. */
int rota_channel_drop_overdue(rota_channel *channel, int drop);
/* The counts of the units so far, as the receiver's node counted them. That node reports once a second if something
   went wrong, and at the end. */
int rota_channel_tally(const rota_channel *channel, rota_tally *tally);
/* As rota_channel_close; also returns the counts of all units. `tally` may be NULL. */
int rota_channel_finish(rota_channel *channel, uint64_t drain_ns, rota_tally *tally);

/* `from` NULL: channels of every station. `buffers` 0: four. A listener takes one channel in its life: for each further
 * channel call rota_listen again, before or after rota_accept; several may listen to one service at a time. */
int rota_listen(const char *control, uint16_t service, const char *from, uint16_t buffers,
                rota_listener **listener);
int rota_accept(rota_listener *listener, uint64_t timeout_ns, rota_receiver **receiver);
/* As rota_listen; the program is asked about each channel before its sender hears of an answer. rota_asked, below, tells
 * what is asked. */
int rota_listen_asked(const char *control, uint16_t service, const char *from, uint16_t buffers,
                      rota_listener **listener);
/* Readable when a channel waits to be accepted. */
int rota_listener_fd(const rota_listener *listener);
int rota_listener_close(rota_listener *listener);
/* `unit` may be NULL. ROTA_ENDED is the intended end. */
int rota_receive(rota_receiver *receiver, void *buffer, size_t size, rota_unit *unit, uint64_t timeout_ns);
/* The counts of the channel's units so far; after ROTA_ENDED, of all units. */
int rota_receiver_tally(const rota_receiver *receiver, rota_tally *tally);
/* Units that the sender had handed over or left out on the channels that this one continues (rota_channel_reattach), as
 * it states; 0 for a new stream. */
uint64_t rota_receiver_units_before(const rota_receiver *receiver);
int rota_receiver_newest(rota_receiver *receiver, int newest);
int rota_receiver_close(rota_receiver *receiver);

/* ---- Channels in the terms of the Tenet paper, and their status ----------------------------------------------- */

/* Beyond rota_request, whose period is X_min and whose largest unit is S_max. 0: not stated. */
typedef struct rota_terms {
    uint64_t average_ns;      /* X_ave: X_min unless stated */
    uint64_t interval_ns;     /* I: X_ave unless stated */
    uint64_t delay_ns;        /* D: the longest delay that is borne */
    uint64_t jitter_ns;       /* J */
    uint32_t late_ppb;        /* messages in 10^9 that may be late or lost: above 0 in the statistical class */
    uint32_t loss_ppb;        /* messages in 10^9 that may be lost; 0: all is guaranteed */
} rota_terms;

typedef struct rota_about {
    uint64_t channel;         /* its id, the same at both ends */
    uint64_t node_id;         /* the sender's node */
    uint64_t period_ns;
    uint64_t bound_ns;
    uint32_t unit_octets_max;
    char from[64];            /* the sender's station */
} rota_about;

typedef struct rota_hop {
    uint64_t bound_ns;        /* of this node */
    uint64_t buffers;         /* packets for which it has room */
    uint64_t sent;            /* packets; at the sender of one segment units */
    uint64_t dropped;
    int port;
    char node[64];
    char medium[16];          /* "rether" or "link" */
} rota_hop;

/* The first hop of a way for which nothing is guaranteed: it leads through a network without Rota. */
typedef struct rota_withdrawn {
    char from[64];            /* the nodes before and behind it */
    char to[64];
    uint32_t more;            /* further such hops */
} rota_withdrawn;

/* As rota_channel_open; `terms` may be NULL. */
int rota_channel_open_terms(const char *control, const rota_request *request, const rota_terms *terms,
                            rota_channel **channel, rota_refusal *refusal);
/* Terms that came later. The structure grows at its end: set it to 0, and `size` to sizeof(rota_more). A library that is older
 * than the program refuses terms that it does not know (ROTA_WRONG_USE), and leaves out none. 0 and NULL: not stated. */
typedef struct rota_more {
    size_t size;              /* sizeof(rota_more) */
    const char *partition;    /* counted in the partition of this name at each part of the way that has one */
    const char *group;        /* a member of this group, which shares what is reserved */
    uint64_t start_ns;        /* booked for later: begins in so much time from now */
    uint64_t end_ns;          /* ends by itself in so much time from now: then both ends have ROTA_ENDED. What is
                               handed over later, until that is told, never leaves, and is lost */
    uint64_t reroute_ns;      /* for how long another path is looked for after a failure; UINT64_MAX: none is */
    uint32_t at_once;         /* members of the group that send at a time, 1 to 16; 0: one */
    int backup;               /* 1: a second path over other gateways is reserved beforehand */
    int allow_withdrawn;      /* 1: the way may lead through a network without Rota, where nothing is guaranteed */
    uint32_t reserved;        /* 0 */
    const char *via;          /* gateways that the path leads through, in this order, with commas between them */
} rota_more;

/* As rota_channel_open_terms; `terms` and `more` may be NULL. docs/across.md describes the terms. */
int rota_channel_open_more(const char *control, const rota_request *request, const rota_terms *terms,
                           const rota_more *more, rota_channel **channel, rota_refusal *refusal);
/* The same, and a channel back from the same station and service: both are open then, or none. The program there listens
 * (rota_listen) and waits to be asked (rota_invitee_begin); it opens the way back where rota_invitee_wait tells, as `channel`,
 * the one that it has accepted. `back` has room for `buffers` units; 0: four. */
int rota_channel_open_duplex(const char *control, const rota_request *request, const rota_terms *terms,
                             const rota_more *more, uint16_t buffers, rota_channel **channel, rota_receiver **back,
                             rota_refusal *refusal);
uint64_t rota_channel_id(const rota_channel *channel);
/* Whether the way has such a hop now: `is` is 1 and `hop` filled, or 0. It changes when a channel moves to another path after a
 * failure. `hop` may be NULL. */
int rota_channel_withdrawn(rota_channel *channel, int *is, rota_withdrawn *hop);
int rota_receiver_withdrawn(rota_receiver *receiver, int *is, rota_withdrawn *hop);
int rota_receiver_about(const rota_receiver *receiver, rota_about *about);
/* Waits for the next channel about which a listener of rota_listen_asked is asked. */
int rota_asked(rota_listener *listener, uint64_t timeout_ns, rota_about *about);
/* The same, and whether the way has a hop without a guarantee: `is` is 1 and `hop` filled, or 0. `hop` may be NULL. */
int rota_asked_withdrawn(rota_listener *listener, uint64_t timeout_ns, rota_about *about, int *is, rota_withdrawn *hop);
/* Takes such a channel or denies it, finally; the node denies it after a second by itself, where its
 * sender has several receivers sooner, with 16 after three eighths of a second. rota_accept gives one that was taken, once it is
 * open. ROTA_FAILED: its sender has given it up, or that time is over. */
int rota_answer(rota_listener *listener, uint64_t channel, int accept);
/* Channels that their receivers ask for, on this segment or beyond. The receiver listens for one channel of `from`, whose
 * node is asked: rota_accept gives it, or ROTA_REFUSED, or ROTA_NO_LISTENER where nobody was there to answer. */
int rota_invite(const char *control, const char *from, uint16_t service, uint16_t buffers, rota_listener **listener);
/* The source waits to be asked for one channel of the service. `about` tells who asks: `from`, `node_id`, and as `channel` the
 * channel whose way back is wanted, or 0; it may be NULL. The source has a second to open the channel: `to` and `service` of the
 * request are not read, `terms` may be NULL, and the invitee is gone in any case. rota_invitee_close refuses a receiver that has asked. */
typedef struct rota_invitee rota_invitee;
int rota_invitee_begin(const char *control, uint16_t service, rota_invitee **invitee);
int rota_invitee_wait(rota_invitee *invitee, uint64_t timeout_ns, rota_about *about);
int rota_invitee_open(rota_invitee *invitee, const rota_request *request, const rota_terms *terms, rota_channel **channel,
                    rota_refusal *refusal);
/* As rota_invitee_open, with all terms that there are. */
int rota_invitee_open_more(rota_invitee *invitee, const rota_request *request, const rota_terms *terms,
                           const rota_more *more, rota_channel **channel, rota_refusal *refusal);
/* Readable when a receiver has asked. */
int rota_invitee_fd(const rota_invitee *invitee);
int rota_invitee_close(rota_invitee *invitee);
/* Each node of the way of a channel that this station sends on, the destination left out: the first `room` of them, and how
 * many there are (`count` may be NULL). The counts are a second old at most. ROTA_BROKEN: it has ended. */
int rota_channel_status(const char *control, uint64_t channel, rota_hop *hops, size_t room, size_t *count);
/* The certificate of the channel's promise at present, as JSON text for `rota check`: `octets` of it without its end, which is
 * always there, and may be NULL. ROTA_TOO_LONG: `room` octets are too few, and `octets` tells how many the text has. ROTA_FAILED:
 * the channel has none, for the reason that rota_error gives; ROTA_BROKEN: it has ended. */
int rota_channel_certificate(const rota_channel *channel, char *text, size_t room, size_t *octets);

/* ---- Streams of continuous media (CMTP): units by time, shared buffers in the place of calls ------------------ */

/* Both ends state `ahead`, the units of work-ahead: 1 to 48. The source puts unit k up to so many periods before its time,
 * and the node takes it by time. The receiver has it at its play-out point, or is told that it is missing. The channel has
 * `ahead` + 4 buffers at both ends (rota_request.buffers, rota_listen). */
typedef struct rota_stream rota_stream;
typedef struct rota_player rota_player;

typedef enum rota_unit_state {
    ROTA_WHOLE = 0,
    ROTA_IN_PART = 1,
    ROTA_UNIT_LATE = 2,       /* nothing is there at its play-out point; it may still come, and is not played then */
    ROTA_LOST = 3             /* a later unit came without it */
} rota_unit_state;

typedef struct rota_played {
    rota_unit unit;           /* of a late or lost one only the number; lost_before: units without a play-out point */
    uint64_t due_ns;          /* its play-out point on this host's clock */
    int state;                /* a rota_unit_state */
} rota_played;

/* Each unit of a stream that has ended is in one of the first four. */
typedef struct rota_stream_tally {
    uint64_t whole;
    uint64_t in_part;
    uint64_t late;            /* came behind their play-out point */
    uint64_t lost;
    uint64_t latest_by_ns;
} rota_stream_tally;

/* Takes the channel over, also when it fails; waits for its first slot. */
int rota_stream_begin(rota_channel *channel, uint16_t ahead, uint64_t timeout_ns, rota_stream **stream);
/* Units of work-ahead for which ring and contract have room. */
uint16_t rota_stream_ahead(const rota_stream *stream);
/* Sleeps until the next unit may be put; units whose time has passed are left out, and have numbers. */
int rota_stream_wait(rota_stream *stream, uint64_t *number);
/* ROTA_LEFT_OUT: its time has passed; it is lost, and the next one follows. `number` may be NULL. */
int rota_stream_put(rota_stream *stream, const void *unit, size_t octets, uint64_t *number);
/* As rota_channel_finish. */
int rota_stream_finish(rota_stream *stream, uint64_t drain_ns, rota_tally *tally);

/* Takes the receiver over. */
int rota_player_begin(rota_receiver *receiver, uint16_t ahead, rota_player **player);
/* Sleeps until the play-out point of the next unit; `timeout_ns` is for the first one only. ROTA_ENDED is the intended end. */
int rota_player_next(rota_player *player, void *buffer, size_t size, rota_played *unit, uint64_t timeout_ns);
int rota_player_tally(const rota_player *player, rota_stream_tally *tally);
int rota_player_close(rota_player *player);

/* ---- LLC messages: datagrams of eight priorities between sockets of stations -------------------------------- */

typedef struct rota_llc rota_llc;
typedef struct rota_socket rota_socket;

#define ROTA_BROADCAST 255    /* node address of every station, the sender's too */

typedef struct rota_address {
    uint8_t socket;           /* even, 2 to 254 */
    uint8_t node;
} rota_address;

typedef struct rota_transmit {
    uint64_t time_ns;         /* how long it may take; 0: for ever */
    uint8_t priority;         /* 0 (lowest) to 7 */
    uint8_t ack;              /* 1: the other station acknowledges */
    uint8_t tries;            /* attempts with ack, 1 to 255; 0 counts as 1 */
} rota_transmit;

typedef enum rota_outcome {
    ROTA_SENT = 0,            /* it has left */
    ROTA_ACKNOWLEDGED = 1,
    ROTA_NOT_SENT = 2,        /* failed; with ack: no acknowledgement after all tries */
    ROTA_LATE = 3             /* its time was over */
} rota_outcome;

typedef enum rota_progress { ROTA_PENDING = 0, ROTA_IN_PROGRESS = 1, ROTA_DONE = 2 } rota_progress;

typedef struct rota_message {
    void *packet;
    size_t octets;            /* to send; when receiving: room there, then what came */
    rota_address address;     /* to whom; when receiving: from whom */
    uint8_t priority;         /* received with; not used when sending */
    uint8_t truncated;        /* received: the room was too small */
    uint8_t reserved;         /* received: it came on a channel that its sender has reserved */
} rota_message;

/* The stations' LLC service, with room for so many sockets of this program. */
int rota_llc_connect(const char *control, uint16_t sockets, rota_llc **llc);
/* This station's node address, 0 for a null pointer. */
uint8_t rota_llc_node(const rota_llc *llc);
int rota_llc_disconnect(rota_llc *llc);

int rota_socket_open(rota_llc *llc, uint8_t sap, rota_socket **socket);
/* Waits for the node, at most a second, and at most five for what reserved channels have taken to leave; a node that has just
 * been silent to another socket of the program is waited for a twentieth of a second each. */
int rota_socket_close(rota_socket *socket);
/* Never waits. `options` NULL: priority 0, no ack, no time limit. `number` (may be NULL) names the message. */
int rota_socket_transmit(rota_socket *socket, rota_address to, const void *packet, size_t octets,
                         const rota_transmit *options, uint64_t *number);
/* ROTA_WOULD_BLOCK: no transmission has ended since. `number` and `outcome` may be NULL. Outcomes that nobody asks for
 * are kept up to 1,024, the newest. */
int rota_socket_completion(rota_socket *socket, uint64_t *number, int *outcome);
int rota_socket_progress(const rota_socket *socket, uint64_t number, int *progress);
/* One message into message->packet; ROTA_WOULD_BLOCK: none is there; ROTA_NODE_GONE: nor will be. */
int rota_socket_receive(rota_socket *socket, rota_message *message);
/* As many as go at once; `done` says how many, and the status is ROTA_OK unless the first one failed. */
int rota_socket_transmit_batch(rota_socket *socket, const rota_message *messages, size_t count,
                               const rota_transmit *options, size_t *done);
int rota_socket_receive_batch(rota_socket *socket, rota_message *messages, size_t count, size_t *done);
/* Puts the socket on a reserved channel towards `to`, whose program has called rota_socket_listen_reserved: one message
 * of at most `octets_max` octets in each period, each within
 * `bound_ns` (may be NULL). From then on messages to there leave in its slots, whatever their priority, and are
 * ROTA_SENT when the channel has taken them; a longer one is ROTA_TOO_LONG, with `ack` ROTA_WRONG_USE. After ROTA_BUSY
 * rota_socket_wait returns, and rota_socket_fd is readable, when to try again. ROTA_REFUSED fills `refusal` (may be
 * NULL). Closing the socket closes the channel. */
int rota_socket_reserve(rota_socket *socket, rota_address to, uint32_t octets_max, uint64_t period_ns,
                        uint64_t *bound_ns, rota_refusal *refusal);
/* Closes that channel when what it has taken has left; in five seconds at most. */
int rota_socket_release(rota_socket *socket, rota_address to);
/* The same in parts, for programs that go on with the socket meanwhile: the first and the last never wait, and
 * rota_reservation_open may run in another thread, for seconds where the other station is silent. rota_socket_put takes
 * the reservation over, also when it fails; then the channel is closed, as by rota_reservation_close, in five seconds at
 * most. rota_socket_take_off gives a channel back, which is then to be closed. */
typedef struct rota_reservation rota_reservation;
int rota_socket_reservation(const rota_socket *socket, rota_address to, rota_reservation **reservation);
int rota_reservation_open(rota_reservation *reservation, uint32_t octets_max, uint64_t period_ns,
                          uint64_t *bound_ns, rota_refusal *refusal);
int rota_socket_put(rota_socket *socket, rota_reservation *reservation);
int rota_socket_take_off(rota_socket *socket, rota_address to, rota_reservation **reservation);
int rota_reservation_close(rota_reservation *reservation);
/* From now on the socket also receives what comes on channels that others reserve to it. Take rota_socket_fd after
 * this and after rota_socket_reserve: it is another one then. */
int rota_socket_listen_reserved(rota_socket *socket);
/* Takes back what has not left yet. */
int rota_socket_cancel(rota_socket *socket);
/* Sleeps until something came or ended, or the time is over. Where the last waits were short it looks for up to
 * 0.2 ms first. */
int rota_socket_wait(rota_socket *socket, uint64_t timeout_ns);
/* Binds the calling thread, and those that it starts later, to the CPU of its node, where short messages one at a
 * time are fastest. 1 when it did; 0, and nothing has changed, where the node is bound to none or the thread may not
 * run there. */
int rota_socket_stay_near_node(const rota_socket *socket);
/* Readable when something came or ended: then receive and take completions until ROTA_WOULD_BLOCK. */
int rota_socket_fd(const rota_socket *socket);
/* Whether its node lives. */
int rota_socket_is_alive(const rota_socket *socket);

/* ---- Reliable virtual circuits: each message once and in order, whatever the wire loses --------------------- */

typedef struct rota_circuit rota_circuit;

/* What a program keeps where its next life finds it; see bindings/c/README.md for what that promises. */
typedef struct rota_mark {
    uint64_t sender;
    uint64_t number;
} rota_mark;

/* These take the socket over, also when they fail. `mark` NULL: begins anew. `priority` is the circuit's one priority.
 * A receiver hears `from` only; NULL: the first that speaks to it. */
int rota_circuit_sender(rota_socket *socket, rota_address to, uint8_t priority, const rota_mark *mark,
                        rota_circuit **circuit);
int rota_circuit_receiver(rota_socket *socket, const rota_address *from, uint8_t priority, const rota_mark *mark,
                          rota_circuit **circuit);
/* Returns when the receiver's program has taken the message. After ROTA_TIMED_OUT it is still on its way: call
 * rota_circuit_settle. ROTA_IN_DOUBT: it will not be sent again. */
int rota_circuit_send(rota_circuit *circuit, const void *message, size_t octets, uint64_t timeout_ns);
int rota_circuit_settle(rota_circuit *circuit, uint64_t timeout_ns);
/* The sender's mark: of the first message that is not known to be taken. */
int rota_circuit_mark(const rota_circuit *circuit, rota_mark *mark);
/* The next message; it also confirms the one before. `octets` is the buffer's size, then the message's. `begins`: a
 * sender begins that was not known. `mark` is to be kept together with the message's effect. Any may be NULL but octets. */
int rota_circuit_receive(rota_circuit *circuit, void *buffer, size_t *octets, int *begins, rota_mark *mark,
                         uint64_t timeout_ns);
/* The program is done with the last message. */
int rota_circuit_confirm(rota_circuit *circuit);
/* A receiver confirms its last message, again if its sender asks, until nothing was asked for `linger_ns`. */
int rota_circuit_close(rota_circuit *circuit, uint64_t linger_ns);

/* ---- Receiving on an ordinary port of UDP, past the kernel's layers ------------------------------------------- */

/* Plain packets go from the interface straight into a queue of the program, all others through the kernel's layers into the
 * same queue, in order; the sender needs nothing (docs/end-host.md). Without a node, or where it gives no queue, an ordinary
 * socket serves. */
typedef struct rota_udp rota_udp;

typedef struct rota_udp_packet {
    size_t octets;
    uint32_t from_address;    /* as in sockaddr_in: in the order of the network */
    uint32_t to_address;      /* the one that it was sent to; 0: not known */
    uint16_t from_port;
    uint16_t bypassed;        /* 1: past the layers */
} rota_udp_packet;

typedef struct rota_udp_queue {
    int own;                  /* 1: a queue of the program; 0: the kernel's own, of an ordinary socket */
    char why[256];            /* 0: why; 1: why all packets took the full path when it was opened, empty if not so */
} rota_udp_queue;

/* `address` as "0.0.0.0:5004", with port 0 for any. `peer` NULL: packets of everybody, else of this address and port alone.
 * `ring_octets` is a power of two, 256 KiB to 64 MiB; 0: 1 MiB. ROTA_BUSY: the port is taken, or not allowed. */
int rota_udp_bind(const char *control, const char *address, const char *peer, uint32_t ring_octets, rota_udp **udp);
/* The next packet, in place: it lies at `octets` until the next call upon this handle. `packet` may be NULL. `timeout_ns` 0:
 * never waits (ROTA_WOULD_BLOCK), and the kernel wakes nobody meanwhile; else ROTA_TIMED_OUT. */
int rota_udp_receive(rota_udp *udp, const void **octets, rota_udp_packet *packet, uint64_t timeout_ns);
/* From now on rota_udp_fd becomes readable with the next packet; `waits` is 1 where one waits already. A program that waits
 * for several descriptors calls this before; the next rota_udp_receive ends it. */
int rota_udp_arm(rota_udp *udp, int *waits);
int rota_udp_fd(const rota_udp *udp);
/* The port, in the order of the network. */
uint16_t rota_udp_port(const rota_udp *udp);
int rota_udp_filler(const rota_udp *udp, rota_udp_queue *queue);
/* Packets for which the queue had no room: they are lost. ROTA_NODE_GONE: nobody knows any more; receiving goes on. */
int rota_udp_discarded(const rota_udp *udp, uint64_t *packets);
int rota_udp_close(rota_udp *udp);

#ifdef __cplusplus
}
#endif
#endif
