/* rether.h: the procedural interface of RETHER (Venkatramani and Chiueh, 1995, section 3.1) on Rota.
 *
 * A session carries one unit of bufLength octets in each cycle of the segment. Calls return 0 or more, or one of the
 * negative numbers below; retherError() then says why in one sentence. A session is used by one thread at a time.
 */
#ifndef RETHER_H
#define RETHER_H

#ifdef __cplusplus
extern "C" {
#endif

#define RETHER_SENDER 0
#define RETHER_RECEIVER 1
#define RETHER_NONBLOCK 0
#define RETHER_BLOCK 1

#define RETHER_EAGAIN (-1)   /* not blocking, and no buffer is free, or none is filled */
#define RETHER_EREFUSED (-2) /* admission refused: retherError() says what would fit */
#define RETHER_EINVAL (-3)   /* no such session, a null pointer, a value out of range, the wrong end */
#define RETHER_EEND (-4)     /* the sender closed the session */
#define RETHER_EFAIL (-5)

/* What the utility functions of the paper tell about a session. */
struct retherState {
    unsigned long long boundNs;  /* sender: from retherSend to arrival, proven; 0 before retherAdmit */
    unsigned long long cycleNs;  /* the target token rotation time */
    unsigned long long units;    /* sent, or received */
    unsigned long long lost;     /* receiver: units of which nothing came, and units that were overwritten */
    int octets;                  /* receiver: length of the last unit */
    int missing;                 /* receiver: octets of it that did not come; they are zero */
};

/* Registers numBufs buffers of bufLength octets. A sender names the receiver's station in receiverId and gets a
 * sessionId (or proposes one from 1 to 65535; 0 asks for any); a receiver gives the sessionId of its sender, and
 * receiverId may be NULL. flag: RETHER_SENDER or RETHER_RECEIVER. */
int retherOpenRTsession(void *bufAddressVector[], int bufLength, int numBufs, int *sessionId, int flag,
                        const char *receiverId);
/* Ends the reservation. */
int retherCloseRTsession(int sessionId);
/* The admission test; the first session of a segment switches it to the token. */
int retherAdmit(int sessionId);
/* Sends the next buffer, which the program has filled. Returns the number of the buffer to fill next. */
int retherSend(int sessionId, int blockFlag);
/* Fills the next buffer with the newest unit and returns the buffer's number. */
int retherRecv(int sessionId, int blockFlag);
/* Utility: state and statistics. */
int retherGetState(int sessionId, struct retherState *state);

/* Ours: why this thread's last call failed. */
const char *retherError(void);

#ifdef __cplusplus
}
#endif
#endif
