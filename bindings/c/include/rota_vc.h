/* rota_vc.h: circuits as sockets. A circuit carries a stream of octets, or messages of any size, to a program of another
 * node, in order; with error control, which is usual, each once and none lost; see docs/circuits.md for what is promised.
 *
 * A handle is the number of a descriptor, which poll, epoll and select know: it is readable while rota_vc_accept or
 * rota_vc_recv has something to do. It belongs to this library: it is closed by rota_vc_close alone, and read, write, dup
 * and fork are not for it. A call returns -1 where it fails, sets errno, and rota_error() gives one sentence that says why.
 * A null pointer, a number that is no handle, a length that is none, a station that does not exist or a node that died is
 * such an answer, never a crash. A handle may be used by several threads. The octets of a call that waits are never mixed
 * with those of other threads; a message in several calls belongs to one thread.
 */
#ifndef ROTA_VC_H
#define ROTA_VC_H

#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include <rota.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a circuit carries. */
enum { ROTA_VC_STREAM = 0, ROTA_VC_MESSAGES = 1 };

/* What holds its sender: a window that follows losses; the receiver's room alone; a leaky bucket of depth_octets at rate_bps; a
 * channel, which reserves rate_bps and carries the circuit: the guaranteed one, with simplex and unreliable. */
enum { ROTA_VC_WINDOW_FLOW = 0, ROTA_VC_OPEN_FLOW = 1, ROTA_VC_BUCKET_FLOW = 2, ROTA_VC_CHANNEL_FLOW = 3 };

/* The quality of a circuit. A 0 stands for the usual: a duplex stream, reliable, behind a window. */
typedef struct rota_vc_qos {
    size_t size;              /* sizeof(rota_vc_qos) */
    uint64_t depth_octets;    /* of a leaky bucket, headers counted; of a channel what may be sent at once */
    uint64_t rate_bps;
    uint32_t window;          /* TPDUs on their way at most, to 16384; 0: 256 */
    uint8_t kind;             /* ROTA_VC_STREAM, ROTA_VC_MESSAGES */
    uint8_t simplex;          /* 1: the connecting end sends, the accepting one receives */
    uint8_t unreliable;       /* 1, with simplex alone: nothing is sent again; a message comes whole or not at all */
    uint8_t flow;             /* ROTA_VC_WINDOW_FLOW, ROTA_VC_OPEN_FLOW, ROTA_VC_BUCKET_FLOW, ROTA_VC_CHANNEL_FLOW */
    uint8_t level;            /* of the queue of ordinary traffic, 0 (lowest) to 7 */
    uint8_t reserved[3];      /* 0 */
    /* With ROTA_VC_CHANNEL_FLOW alone. */
    uint32_t message_octets;  /* the largest message that is one unit of the channel; 0: what the rate carries in 33 ms */
    uint64_t peak_bps;        /* the rate at which what is sent at once leaves; 0: rate_bps */
    uint64_t delay_ns;        /* the longest delay that is borne; 0: any */
} rota_vc_qos;

/* For rota_vc_set and rota_vc_get. A handle that is accepted has those of its listener, and blocks. */
enum {
    ROTA_VC_NONBLOCK = 1,     /* 1: no call waits, but rota_vc_close; EAGAIN and EINPROGRESS say so */
    ROTA_VC_LINGER_MS = 2,    /* how long rota_vc_close waits; 20000 */
    ROTA_VC_TIMEOUT_MS = 3,   /* how long another call waits; 0: for ever */
    ROTA_VC_WINDOW = 4,       /* the largest window that a listener grants; 256 */
    ROTA_VC_SIMPLEX = 5,      /* 1: the listener takes simplex circuits, and no duplex ones */
    ROTA_VC_MESSAGE_MAX = 6,  /* a larger message ends its circuit; 64 MiB */
    /* Only for rota_vc_get, of a handle with a circuit. */
    ROTA_VC_KIND = 7,         /* ROTA_VC_STREAM or ROTA_VC_MESSAGES */
    /* Of the receiving end; 0 with error control. A TPDU is a piece of a stream or of a message, one frame. */
    ROTA_VC_LOST_TPDUS = 8,   /* TPDUs lost for good, those that were dropped with their message among them */
    ROTA_VC_LOST_MESSAGES = 9, /* messages that were not delivered, as far as is known */
    ROTA_VC_GAP = 10,         /* TPDUs lost in front of what rota_vc_recv gave last, told once: ask after each call. No call
                               * joins octets of a stream from before and behind a gap */
    ROTA_VC_BOUND_NS = 11,    /* of a guaranteed circuit: from the turn of a TPDU to its arrival, at most; 0 of another one */
    ROTA_VC_TPDU = 12,        /* octets of a TPDU at most; one of a guaranteed circuit takes its turn however short it is */
    /* For both. */
    ROTA_VC_TAKES = 13,       /* of a listener, before rota_vc_listen: the classes that it takes, a sum of those below; 7 */
    ROTA_VC_REASON = 14       /* of a listener, before rota_vc_listen: what the program of another class hears, 0 to 2^32 - 1. Of
                               * a handle that got ECONNREFUSED because the other program did not take it: that number */
};

/* Classes of circuits: with error control; without it; carried by a channel. A guaranteed one that is not taken is given up,
 * and its program hears ECONNRESET and no reason. */
enum { ROTA_VC_RELIABLE = 1, ROTA_VC_BEST_EFFORT = 2, ROTA_VC_GUARANTEED = 4 };

/* For send and recv. */
enum { ROTA_VC_DONTWAIT = 1, ROTA_VC_MORE = 2 };

/* A new handle at the node that `control` names; see rota.h. */
int rota_vc_socket(const char *control);
/* 1 if the number is a handle, 0 if it is another descriptor or none: for programs that keep both in one place. */
int rota_vc_is(int number);
/* Takes a service for rota_vc_listen. Services from 0xc0000000 on are drawn by lot for the way back of duplex circuits. */
int rota_vc_bind(int vc, uint32_t service);
/* Circuits may come: `backlog`, 1 to 64, of them may wait for rota_vc_accept. Set ROTA_VC_SIMPLEX before. */
int rota_vc_listen(int vc, int backlog);
/* The next circuit, as a handle of its own. The name of its other station goes to `from`, which may be NULL, cut to `room`. */
int rota_vc_accept(int vc, char *from, size_t room);
/* Opens a circuit to a service of a node, which is a name, a number or an address. `qos` may be NULL. A duplex circuit is
 * open when the other program has accepted it. Where the channel of a guaranteed one does not fit, ECONNREFUSED comes with a
 * sentence that says by how much, and what would fit. A handle that does not block gives EINPROGRESS: wait for POLLOUT, call again,
 * and EISCONN means that it is open. */
int rota_vc_connect(int vc, const char *node, uint32_t service, const rota_vc_qos *qos);
/* Sends octets of a stream, or one message, and returns how many octets were taken: all of them, where the handle blocks.
 * Where it took less of a message, the rest follows by the next call. With ROTA_VC_MORE the message goes on after all of it.
 * EMSGSIZE: without error control a message of more octets than window times TPDU can never arrive. */
ssize_t rota_vc_send(int vc, const void *octets, size_t count, int flags);
/* Takes octets of a stream, or one message; 0 at the end. A message that is larger than the buffer gives EMSGSIZE and is
 * kept. An empty message is 0, too: where there may be some, ask rota_vc_next before. */
ssize_t rota_vc_recv(int vc, void *buffer, size_t room, int flags);
/* Waits for a message: 1, and its length in `octets`, which may be NULL; 0 at the end. */
int rota_vc_next(int vc, size_t *octets);
/* poll(2) with handles among the descriptors. POLLIN: accept or recv has something, the end included. POLLOUT: send has room,
 * or the circuit is open, or it is broken. */
int rota_vc_poll(struct pollfd *fds, size_t count, int timeout_ms);
/* For select, epoll and poll(2): a descriptor that is *readable* while there is something to do, of POLLIN (the handle itself)
 * or POLLOUT. It may say so once too often. It is the library's, and not to be closed. */
int rota_vc_descriptor(int vc, int events);
/* SHUT_WR: nothing is sent behind what was, and the other program reads the end. SHUT_RD: this one takes no more, and the
 * other one is told. */
int rota_vc_shutdown(int vc, int how);
/* Closes a handle, whatever it returns. It waits until the other program has taken all that was sent, for ROTA_VC_LINGER_MS:
 * 0 says that it has. A process that ends without it resets its circuits. */
int rota_vc_close(int vc);
/* The certificate of a guaranteed circuit's channel, as JSON text for `rota check`, at its sender: its length without its end.
 * Where `room` does not hold it and its end, nothing is written; `text` may be NULL then. */
ssize_t rota_vc_certificate(int vc, char *text, size_t room);
int rota_vc_set(int vc, int option, long value);
long rota_vc_get(int vc, int option);

#ifdef __cplusplus
}
#endif

#endif
