/* llcio.h: the ten calls of SHIPNET (University of Virginia, TR-88-15, 1988), on Rota.
 *
 * Each call returns an operation status: OPACC (0), or why it was not accepted. LLCstatus tells the outcome of an
 * accepted transmit or receive. See llcio(3).
 */
#ifndef LLCIO_H
#define LLCIO_H

#ifdef __cplusplus
extern "C" {
#endif

/* Operation status. The paper names the first six and prints no numbers; they are ours. */
#define OPACC 0     /* operation accepted */
#define OPINVAL 1   /* invalid socket: odd, 0, above 254, not open, its node died, or sent to node 0 */
#define OPDUP 2     /* duplicate socket: open already */
#define OPMANY 3    /* too many sockets: more than LLCon made room for */
#define OPBUSY 4    /* socket busy */
#define OPLARGE 5   /* packet too large */
#define OPNONET 6   /* ours: no node runs at this station */
#define OPOPT 7     /* ours: invalid option */
#define OPNORES 8   /* ours: no reserved channel: refused, ended, or nobody listens there */

/* Status of one direction of a socket; 0: no operation pending, and the last one, if any, went well. */
#define STPEND 0x01 /* operation pending */
#define STPROG 0x02 /* I/O in progress */
#define STBUSY 0x03 /* either */
#define STFAIL 0x04 /* operation failed */
#define STLATE 0x08 /* operation timed out */
#define STCUT 0x10  /* with STFAIL: the packet was larger than the buffer, which holds its first octets */

#define LLCBROAD 255 /* the node address of every station, one's own included */
#define LLCTICK 55   /* milliseconds in a unit of xtime and rtime: a tick of the clock of the PCs of the paper */

/* Service class, in the form of LLCoption with seven arguments: a priority from 0 to 7, and this. */
#define LLCACKED 8

/* A signal function. It runs in a thread of the library and may call LLCstatus, LLCxmit and LLCrecv only. */
typedef int (*LLCsignal)(void);

int LLCon(int socks);
int LLCoff(void);
int LLCopen(int sock);
int LLCclose(int sock);
/* A destination and a source are two octets: { socket number, node address }. */
int LLCxmit(int sock, const void *destination, const void *packet, unsigned int size);
int LLCrecv(int sock, void *source, void *packet, unsigned int size);
int LLCreset(int sock, int direction);
int LLCstatus(int sock, int direction, unsigned int *status);
const char *LLCopbits(int operation_status);
const char *LLCstbits(unsigned int status, int direction);

/* Ours: the length of the last packet received, which the paper's calls do not tell, and this station's address. */
int LLClength(int sock);
int LLCnode(void);

/* Ours: a channel with a proven bound to a socket whose program has called LLClisten. From then on packets to there, of
 * at most `size` octets, leave one in so many of the segment's cycles, whatever their priority, and without ack. */
int LLCreserve(int sock, const void *destination, unsigned int size, unsigned int cycles);
int LLCrelease(int sock, const void *destination);
int LLClisten(int sock);

/* `tries` is 0 to 255, and 0 counts as 1; without acknowledgement one try is all.
 * The paper describes LLCoption with eight arguments and calls it with seven; both work. */
int LLCoption8(int sock, LLCsignal xsignal, LLCsignal rsignal, unsigned int xtime, unsigned int rtime, int priority,
               int ack, int tries);
int LLCoption7(int sock, LLCsignal xsignal, LLCsignal rsignal, unsigned int xtime, unsigned int rtime, int cls,
               int tries);
#define LLC_PICK(a, b, c, d, e, f, g, h, form, ...) form
#define LLCoption(...) LLC_PICK(__VA_ARGS__, LLCoption8, LLCoption7, 0)(__VA_ARGS__)

#ifdef __cplusplus
}
#endif
#endif
