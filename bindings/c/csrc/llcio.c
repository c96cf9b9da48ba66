/* The ten calls of SHIPNET on the LLC messages of rota.h.
 *
 * A direction of a socket is idle, pending, in progress, failed or timed out, as the paper has it. Without a signal
 * function LLCstatus itself looks what became of an operation. With one, the completion thread does, and calls the
 * function; to every other thread the operation is over when the function has returned, as it was in 1988, when the
 * function ran in an interrupt.
 *
 * Choices where the paper is silent, all in llcio(3): the numbers of the statuses; OPNONET and OPOPT; the unit of time;
 * the service class; LLCoption, and calls other than LLCstatus, LLCxmit and LLCrecv from a signal function, are
 * "socket busy" while an operation is pending or the function runs.
 */
#define _GNU_SOURCE
#include "llcio.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "rota.h"

enum { SAPS = 127 };
#define ALIVE_EVERY_NS 10000000u
#define UNREAD_EVERY_NS 1000000u

/* One direction of a socket. */
struct side {
    unsigned int status; /* what LLCstatus tells */
    unsigned int result; /* of an operation whose signal function has not returned */
    int over;            /* there is such an operation */
    int calling;         /* the signal function runs */
    LLCsignal signal;
    uint64_t time_ns; /* 0: never times out */
    uint64_t due_ns;  /* of the operation, 0: never */
};

struct entry {
    rota_socket *socket; /* NULL: not open */
    int fd, dead;
    int reserving; /* a thread waits for admission, without the lock */
    unsigned long opening; /* which of all openings this is: another one may stand here after a wait without the lock */
    int unread; /* something waits that nobody has asked for: its descriptor stays readable, and is not polled */
    rota_transmit options;
    struct side x, r;
    uint64_t number, look_ns;
    unsigned char *source, *packet;
    unsigned int size, length;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t returned = PTHREAD_COND_INITIALIZER;
static struct entry table[SAPS];
static rota_llc *llc; /* NULL: off */
static int room, opened;
static unsigned long openings, services; /* so many there were, this one included */
static pthread_t thread;
static int threaded, stopping, wake = -1;
static __thread int on_thread; /* in the completion thread */
static uint64_t sleeps_until; /* when the completion thread looks again, unless it is woken */

/* The open socket of that number, or NULL. Everything in its entry is read and written with the lock. */
static struct entry *find(int sock)
{
    struct entry *e;
    if (sock < 2 || sock > 254 || sock % 2)
        return NULL;
    e = &table[sock / 2 - 1];
    return e->socket ? e : NULL;
}

static struct side *side_of(struct entry *e, int direction)
{
    return direction == 'x' ? &e->x : direction == 'r' ? &e->r : NULL;
}

static int operation(int status)
{
    switch (status) {
    case ROTA_OK: return OPACC;
    case ROTA_DUPLICATE_SOCKET: return OPDUP;
    case ROTA_TOO_MANY_SOCKETS: return OPMANY;
    case ROTA_BUSY:
    case ROTA_WOULD_BLOCK: return OPBUSY;
    case ROTA_TOO_LONG: return OPLARGE;
    case ROTA_REFUSED:
    case ROTA_NO_LISTENER:
    case ROTA_NO_SUCH_STATION:
    case ROTA_BROKEN: return OPNORES;
    case ROTA_WRONG_USE: return OPOPT;
    default: return OPINVAL;
    }
}

/* As `operation`, for what takes or gives channels: it needs a node that runs now, and what it lacks is a channel. */
static int reservation(int status)
{
    switch (status) {
    case ROTA_NODE_GONE: return OPNONET;
    case ROTA_TIMED_OUT:
    case ROTA_FAILED: return OPNORES;
    default: return operation(status);
    }
}

/* Whether the direction has an operation that is not over, as the calling thread sees it. */
static int is_taken(const struct side *side)
{
    return (side->status & STBUSY) && !(on_thread && side->calling && side->over);
}

/* Wakes the completion thread. */
static void kick(void)
{
    uint64_t one = 1;
    if (threaded)
        (void)!write(wake, &one, sizeof one);
}

static void begin(struct side *side, uint64_t now)
{
    side->over = 0;
    /* The node itself keeps the time of a transmission, and says so: `now` is 0 then. */
    side->due_ns = now && side->time_ns ? now + side->time_ns : 0;
    side->status = STPEND;
}

static void finish(struct side *side, unsigned int result)
{
    if (side->signal) {
        side->result = result;
        side->over = 1;
    } else
        side->status = result;
}

static void look_x(struct entry *e)
{
    uint64_t number;
    int outcome, progress;
    while (rota_socket_completion(e->socket, &number, &outcome) == ROTA_OK)
        if (number == e->number) {
            finish(&e->x, outcome == ROTA_LATE ? STLATE : outcome == ROTA_NOT_SENT ? STFAIL : 0);
            return;
        }
    if (rota_socket_progress(e->socket, e->number, &progress) == ROTA_OK && progress == ROTA_IN_PROGRESS)
        e->x.status = STPROG;
}

static void look_r(struct entry *e, uint64_t now)
{
    rota_message message;
    memset(&message, 0, sizeof message);
    message.packet = e->packet;
    message.octets = e->size;
    if (rota_socket_receive(e->socket, &message) == ROTA_OK) {
        if (e->source) {
            e->source[0] = message.address.socket;
            e->source[1] = message.address.node;
        }
        e->length = message.octets < e->size ? message.octets : e->size;
        finish(&e->r, message.truncated ? STFAIL | STCUT : 0);
    } else if (e->r.due_ns && now >= e->r.due_ns)
        finish(&e->r, STLATE);
}

/* Looks what became of the operation of one direction, if there is one. */
static void look(struct entry *e, struct side *side)
{
    uint64_t now;
    if (!(side->status & STBUSY) || side->over)
        return;
    now = rota_now();
    if (side == &e->x)
        look_x(e);
    else
        look_r(e, now);
    if (!(side->status & STBUSY) || side->over || now < e->look_ns)
        return;
    /* All that came before its death has been taken; nothing else will come from a dead node. */
    e->look_ns = now + ALIVE_EVERY_NS;
    if (!rota_socket_is_alive(e->socket)) {
        e->dead = 1;
        finish(side, STFAIL);
    }
}

/* Calls the signal function of what is over; whether it did. The lock is not held meanwhile. */
static int call(struct side *side)
{
    LLCsignal signal = side->signal;
    if (!side->over || side->calling)
        return 0;
    side->calling = 1;
    pthread_mutex_unlock(&lock);
    signal();
    pthread_mutex_lock(&lock);
    side->calling = 0;
    /* Unless the function has begun another operation. */
    if (side->over) {
        side->over = 0;
        side->status = side->result;
    }
    pthread_cond_broadcast(&returned);
    return 1;
}

/* Looks at both directions of a socket that has a signal function; whether one was called. */
static int attend(struct entry *e, uint64_t now)
{
    int called;
    if (e->r.signal)
        look(e, &e->r);
    if (e->x.status & STBUSY)
        look(e, &e->x);
    else if (!e->r.signal || !(e->r.status & STBUSY)) {
        /* Somebody rang, and nobody waits for it: asking silences the bell until it rings for news. */
        struct pollfd rung;
        rota_socket_completion(e->socket, NULL, NULL);
        rung.fd = e->fd;
        rung.events = POLLIN;
        e->unread = poll(&rung, 1, 0) > 0;
        if (now >= e->look_ns) {
            e->look_ns = now + ALIVE_EVERY_NS;
            e->dead |= !rota_socket_is_alive(e->socket);
        }
    }
    /* Each message was sent before its answer came. Nobody closes a socket under a signal function. */
    called = call(&e->x);
    called |= call(&e->r);
    return called;
}

static void *complete(void *unused)
{
    struct pollfd fds[SAPS + 1];
    (void)unused;
    on_thread = 1;
    pthread_mutex_lock(&lock);
    while (!stopping) {
        uint64_t now, count;
        int k, n = 1, busy = 0, called = 0;
        sleeps_until = ~0ull;
        for (k = 0; k < SAPS; k++) {
            struct entry *e = &table[k];
            if (!e->socket || e->fd < 0)
                continue;
            called |= attend(e, rota_now());
            busy |= (e->x.status | e->r.status) & STBUSY;
            if (e->r.signal && (e->r.status & STBUSY) && e->r.due_ns && e->r.due_ns < sleeps_until)
                sleeps_until = e->r.due_ns;
            /* A dead node's descriptor is readable for ever. */
            fds[n].fd = e->dead || e->unread ? -1 : e->fd;
            if (e->unread && (e->x.status & STBUSY) && sleeps_until > rota_now() + UNREAD_EVERY_NS)
                sleeps_until = rota_now() + UNREAD_EVERY_NS;
            fds[n++].events = POLLIN;
        }
        if (called)
            continue;
        fds[0].fd = wake;
        fds[0].events = POLLIN;
        now = rota_now();
        /* While something is pending it is looked now and then whether its node lives. */
        if (busy && sleeps_until > now + ALIVE_EVERY_NS * 10ull)
            sleeps_until = now + ALIVE_EVERY_NS * 10ull;
        pthread_mutex_unlock(&lock);
        {
            uint64_t left = sleeps_until > now ? sleeps_until - now : 0;
            struct timespec ts;
            ts.tv_sec = left / 1000000000u;
            ts.tv_nsec = left % 1000000000u;
            if (ppoll(fds, n, sleeps_until == ~0ull ? NULL : &ts, NULL) > 0 && fds[0].revents)
                (void)!read(wake, &count, sizeof count);
        }
        pthread_mutex_lock(&lock);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

/* Waits until no signal function of the socket runs; the caller holds the lock. */
static void settle(const struct entry *e)
{
    while (!on_thread && (e->x.calling || e->r.calling))
        pthread_cond_wait(&returned, &lock);
}

/* The lock, and the open socket behind all its signal functions; NULL without the lock. */
static struct entry *enter(int sock)
{
    struct entry *e;
    pthread_mutex_lock(&lock);
    e = find(sock);
    if (e) {
        settle(e);
        e = find(sock);
    }
    if (!e)
        pthread_mutex_unlock(&lock);
    return e;
}

static int leave(int status)
{
    pthread_mutex_unlock(&lock);
    return status;
}

static int is_open(int sock)
{
    pthread_mutex_lock(&lock);
    return leave(find(sock) != NULL);
}

int LLCon(int socks)
{
    int status;
    pthread_mutex_lock(&lock);
    if (llc)
        return leave(OPBUSY);
    if (socks < 0 || socks > SAPS)
        return leave(OPMANY);
    status = rota_llc_connect(NULL, socks, &llc);
    if (status) {
        llc = NULL;
        return leave(status == ROTA_TOO_MANY_SOCKETS ? OPMANY : OPNONET);
    }
    room = socks;
    services++;
    return leave(OPACC);
}

int LLCoff(void)
{
    int k;
    if (on_thread)
        return OPBUSY;
    pthread_mutex_lock(&lock);
    /* Another thread is at it already. */
    while (stopping)
        pthread_cond_wait(&returned, &lock);
    if (!llc)
        return leave(OPINVAL);
    if (threaded) {
        stopping = 1;
        kick();
        pthread_mutex_unlock(&lock);
        pthread_join(thread, NULL);
        pthread_mutex_lock(&lock);
        close(wake);
        wake = -1;
        threaded = stopping = 0;
    }
    for (k = 0; k < SAPS; k++)
        if (table[k].socket) {
            rota_socket_close(table[k].socket);
            memset(&table[k], 0, sizeof table[k]);
        }
    opened = 0;
    rota_llc_disconnect(llc);
    llc = NULL;
    pthread_cond_broadcast(&returned);
    return leave(OPACC);
}

int LLCopen(int sock)
{
    struct entry *e;
    rota_socket *socket;
    int status;
    if (sock < 2 || sock > 254 || sock % 2)
        return OPINVAL;
    pthread_mutex_lock(&lock);
    e = &table[sock / 2 - 1];
    if (!llc)
        return leave(OPINVAL);
    if (on_thread)
        return leave(OPBUSY);
    if (e->socket)
        return leave(OPDUP);
    if (opened >= room)
        return leave(OPMANY);
    status = operation(rota_socket_open(llc, sock, &socket));
    if (status)
        return leave(status);
    memset(e, 0, sizeof *e);
    e->fd = -1;
    e->options.tries = 1;
    e->socket = socket;
    e->opening = ++openings;
    opened++;
    return leave(OPACC);
}

/* For calls that need a socket in which nothing is under way: the entry, locked, or NULL and why not. */
static struct entry *enter_idle(int sock, int *refused)
{
    struct entry *e;
    if (on_thread) {
        *refused = is_open(sock) ? OPBUSY : OPINVAL;
        return NULL;
    }
    e = enter(sock);
    *refused = OPINVAL;
    if (e && (e->reserving || (e->x.status | e->r.status) & STBUSY)) {
        *refused = leave(OPBUSY);
        e = NULL;
    }
    return e;
}

int LLCclose(int sock)
{
    rota_socket *socket;
    unsigned long service;
    int refused;
    struct entry *e = enter_idle(sock, &refused);
    if (!e)
        return refused;
    socket = e->socket;
    service = services;
    memset(e, 0, sizeof *e);
    kick();
    /* A silent node may take a second, and packets on channels more, in which other threads go on. */
    pthread_mutex_unlock(&lock);
    rota_socket_close(socket);
    pthread_mutex_lock(&lock);
    if (llc && service == services)
        opened--;
    return leave(OPACC);
}

int LLCoption8(int sock, LLCsignal xsignal, LLCsignal rsignal, unsigned int xtime, unsigned int rtime, int priority,
               int ack, int tries)
{
    int refused;
    struct entry *e = enter_idle(sock, &refused);
    if (!e)
        return refused;
    if (priority < 0 || priority > 7 || tries < 0 || tries > 255)
        return leave(OPOPT);
    if ((xsignal || rsignal) && !threaded) {
        wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (wake < 0 || pthread_create(&thread, NULL, complete, NULL)) {
            if (wake >= 0)
                close(wake);
            return leave(OPBUSY);
        }
        threaded = 1;
    }
    /* Asking for the descriptor makes the node ring it, which costs: only where a thread will listen. */
    e->fd = xsignal || rsignal ? rota_socket_fd(e->socket) : -1;
    e->unread = 0;
    e->x.signal = xsignal;
    e->r.signal = rsignal;
    e->x.time_ns = xtime * (LLCTICK * 1000000ull);
    e->r.time_ns = rtime * (LLCTICK * 1000000ull);
    e->options.time_ns = e->x.time_ns;
    e->options.priority = priority;
    e->options.ack = ack != 0;
    e->options.tries = tries ? tries : 1;
    kick();
    return leave(OPACC);
}

int LLCoption7(int sock, LLCsignal xsignal, LLCsignal rsignal, unsigned int xtime, unsigned int rtime, int cls,
               int tries)
{
    if (cls & ~(LLCACKED | 7))
        return is_open(sock) ? OPOPT : OPINVAL;
    return LLCoption8(sock, xsignal, rsignal, xtime, rtime, cls & 7, cls & LLCACKED, tries);
}

static rota_address address_of(const unsigned char *to)
{
    rota_address address;
    address.socket = to[0];
    address.node = to[1];
    return address;
}

/* The socket's descriptor is another one once it has channels. */
static int leave_renewed(struct entry *e, int status)
{
    if (e->fd >= 0)
        e->fd = rota_socket_fd(e->socket);
    e->unread = 0;
    kick();
    return leave(reservation(status));
}

int LLCreserve(int sock, const void *destination, unsigned int size, unsigned int cycles)
{
    rota_reservation *asked;
    unsigned long opening;
    uint64_t cycle;
    int status;
    struct entry *e = enter_idle(sock, &status);
    if (!e)
        return status;
    if (e->dead || !destination)
        return leave(OPINVAL);
    if (!cycles)
        return leave(OPOPT);
    status = reservation(rota_socket_reservation(e->socket, address_of(destination), &asked));
    if (status)
        return leave(status);
    e->reserving = 1;
    opening = e->opening;
    /* Admission may take seconds, in which other threads go on, with this socket too. */
    pthread_mutex_unlock(&lock);
    status = rota_cycle_ns(NULL, &cycle)
                 ? OPNONET
                 : reservation(rota_reservation_open(asked, size, cycle * cycles, NULL, NULL));
    pthread_mutex_lock(&lock);
    e = find(sock);
    if (!e || e->opening != opening)
        status = OPINVAL; /* Another thread has called LLCoff. */
    else {
        e->reserving = 0;
        if (!status)
            return leave_renewed(e, rota_socket_put(e->socket, asked));
    }
    pthread_mutex_unlock(&lock);
    rota_reservation_close(asked);
    return status;
}

int LLCrelease(int sock, const void *destination)
{
    rota_reservation *taken;
    int refused;
    struct entry *e = enter_idle(sock, &refused);
    if (!e)
        return refused;
    if (!destination)
        return leave(OPINVAL);
    if (rota_socket_take_off(e->socket, address_of(destination), &taken))
        return leave(OPNORES);
    /* The messages that the channel has taken leave first, in which other threads go on. */
    pthread_mutex_unlock(&lock);
    rota_reservation_close(taken);
    return OPACC;
}

int LLClisten(int sock)
{
    int refused;
    struct entry *e = enter_idle(sock, &refused);
    if (!e)
        return refused;
    return e->dead ? leave(OPINVAL) : leave_renewed(e, rota_socket_listen_reserved(e->socket));
}

int LLCxmit(int sock, const void *destination, const void *packet, unsigned int size)
{
    const unsigned char *to = destination;
    struct entry *e = enter(sock);
    int status;
    if (!e)
        return OPINVAL;
    if (is_taken(&e->x))
        return leave(OPBUSY);
    /* Node 0 is no node: it stands for "no address" in a station's announcement. */
    if (e->dead || !to || !to[1])
        return leave(OPINVAL);
    if (size && !packet)
        return leave(OPLARGE);
    status = operation(rota_socket_transmit(e->socket, address_of(to), packet, size, &e->options, &e->number));
    if (status == OPACC)
        begin(&e->x, 0);
    if (e->unread && e->x.signal)
        kick();
    return leave(status);
}

int LLCrecv(int sock, void *source, void *packet, unsigned int size)
{
    struct entry *e = enter(sock);
    if (!e)
        return OPINVAL;
    if (is_taken(&e->r))
        return leave(OPBUSY);
    if (e->dead)
        return leave(OPINVAL);
    if (size && !packet)
        return leave(OPLARGE);
    e->source = source;
    e->packet = packet;
    e->size = size;
    begin(&e->r, rota_now());
    if (e->unread) {
        e->unread = 0;
        kick();
    }
    /* It may be here already; else asking for it has armed the bell that wakes the thread. */
    if (e->r.signal && !on_thread) {
        look(e, &e->r);
        if (e->r.over || (e->r.due_ns && e->r.due_ns < sleeps_until))
            kick();
    }
    return leave(OPACC);
}

int LLCreset(int sock, int direction)
{
    struct entry *e;
    struct side *side;
    int progress = ROTA_PENDING;
    if (on_thread)
        return is_open(sock) ? OPBUSY : OPINVAL;
    e = enter(sock);
    if (!e)
        return OPINVAL;
    side = side_of(e, direction);
    if (!side)
        return leave(OPOPT);
    look(e, side);
    if (side == &e->x && (side->status & STBUSY) && !side->over) {
        /* A message that the card has cannot be taken back: the programs of the paper call again. */
        rota_socket_progress(e->socket, e->number, &progress);
        if (progress == ROTA_IN_PROGRESS)
            return leave(OPBUSY);
        rota_socket_cancel(e->socket);
    }
    e->number = side == &e->x ? ~0ull : e->number;
    side->over = 0;
    side->status = 0;
    return leave(OPACC);
}

int LLCstatus(int sock, int direction, unsigned int *status)
{
    struct entry *e;
    struct side *side;
    if (!status)
        return OPINVAL;
    pthread_mutex_lock(&lock);
    e = find(sock);
    if (!e)
        return leave(OPINVAL);
    side = side_of(e, direction);
    if (!side)
        return leave(OPOPT);
    if ((side->status & STBUSY) && !side->signal)
        look(e, side);
    *status = on_thread && side->over ? side->result : side->status;
    pthread_mutex_unlock(&lock);
    /* Programs of 1988 had the processor to themselves and ask in a loop; the node wants its turn. */
    if ((*status & STBUSY) && !on_thread)
        sched_yield();
    return OPACC;
}

const char *LLCopbits(int status)
{
    static const char *const texts[] = {
        "operation accepted", "invalid socket",   "duplicate socket",   "too many sockets",
        "socket busy",        "packet too large", "no node runs here", "invalid option",
        "no reserved channel",
    };
    return status < 0 || status > OPNORES ? "unknown operation status" : texts[status];
}

const char *LLCstbits(unsigned int status, int direction)
{
    int x = direction == 'x';
    if (!x && direction != 'r')
        return "unknown direction";
    if (status & STPROG)
        return x ? "transmit in progress" : "receive in progress";
    if (status & STPEND)
        return x ? "transmit pending" : "receive pending";
    if (status & STLATE)
        return x ? "transmit timed out" : "receive timed out";
    if (status & STCUT)
        return "receive failed: the packet was larger than the buffer";
    if (status & STFAIL)
        return x ? "transmit failed" : "receive failed";
    return x ? "no transmit pending" : "no receive pending";
}

int LLClength(int sock)
{
    struct entry *e;
    pthread_mutex_lock(&lock);
    e = find(sock);
    return leave(e ? (int)e->length : 0);
}

int LLCnode(void)
{
    int node;
    pthread_mutex_lock(&lock);
    node = rota_llc_node(llc);
    pthread_mutex_unlock(&lock);
    return node;
}
