/* Several threads on one LLC: one talks to itself through signal functions, others ask and mistake themselves, and two
 * end it at the same time. Ends with 0 and "all right", or says what went wrong. */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include <llcio.h>

enum { ROUNDS = 20, MESSAGES = 50 };

static unsigned char self[2] = { 4, 0 };
static char packet[100];
static int received, sent, stop, ends[2];
static pthread_barrier_t both;

static int count(int *counter) { return __atomic_add_fetch(counter, 1, __ATOMIC_SEQ_CST); }
static int now(int *counter) { return __atomic_load_n(counter, __ATOMIC_SEQ_CST); }

static int on_receive(void)
{
    static char room[200];
    if (count(&received) < MESSAGES)
        LLCrecv(4, NULL, room, sizeof room);
    return 0;
}

static int on_sent(void)
{
    if (count(&sent) < MESSAGES)
        LLCxmit(4, self, packet, sizeof packet);
    return 0;
}

static void *ask(void *unused)
{
    unsigned int status;
    (void)unused;
    while (!now(&stop)) {
        LLCstatus(4, 'x', &status);
        LLCstatus(4, 'r', &status);
        LLCstatus(6, 'r', &status);
        LLClength(4);
        LLCoption7(4, NULL, NULL, 0, 0, ~0, 1);
        LLCclose(4);
        LLCopen(6);
        LLCclose(6);
    }
    return NULL;
}

static void *end(void *which)
{
    pthread_barrier_wait(&both);
    *(int *)which = LLCoff();
    return NULL;
}

static int round_of(void)
{
    static char room[200];
    pthread_t asking, ending[2];
    int k;
    received = sent = stop = 0;
    if (LLCon(3) != OPACC || LLCopen(4) != OPACC || LLCoption(4, on_sent, on_receive, 0, 0, 3, 1) != OPACC)
        return printf("LLCon, LLCopen or LLCoption failed\n");
    self[1] = LLCnode();
    /* Both are pending from here, so that the other threads cannot close the socket. */
    if (LLCrecv(4, NULL, room, sizeof room) != OPACC || LLCxmit(4, self, packet, sizeof packet) != OPACC)
        return printf("LLCrecv or LLCxmit failed\n");
    pthread_create(&asking, NULL, ask, NULL);
    while (now(&received) < MESSAGES)
        sched_yield();
    for (k = 0; k < 2; k++)
        pthread_create(&ending[k], NULL, end, &ends[k]);
    for (k = 0; k < 2; k++)
        pthread_join(ending[k], NULL);
    __atomic_store_n(&stop, 1, __ATOMIC_SEQ_CST);
    pthread_join(asking, NULL);
    if (ends[0] + ends[1] != OPACC + OPINVAL || ends[0] == ends[1])
        return printf("two LLCoff at once: %d and %d\n", ends[0], ends[1]);
    return 0;
}

int main(void)
{
    int k;
    pthread_barrier_init(&both, NULL, 2);
    for (k = 0; k < ROUNDS; k++)
        if (round_of())
            return 1;
    printf("all right\n");
    return 0;
}
