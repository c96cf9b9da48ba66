/* What other threads may do while one waits for admission: "reserving PID" what is under way, "reserving PID off" end it
 * all. PID is the other station's node, 100, which is stopped, so that the answer takes its time; once it is known to be
 * gone there is no wait. Ends with 0 and "all right", or names the line. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <llcio.h>
#include <rota.h>

#include "expect.h"

enum { WAITS = -1 };
static unsigned char peer[2] = { 24, 100 }, self[2] = { 6, 0 };
static int answer;

static int answered(void) { return __atomic_load_n(&answer, __ATOMIC_SEQ_CST); }

static void *reserve(void *unused)
{
    (void)unused;
    __atomic_store_n(&answer, LLCreserve(4, peer, 100, 1), __ATOMIC_SEQ_CST);
    return NULL;
}

/* A message to oneself through a socket; nothing of it waits for another station. */
static void exchange(int sock)
{
    unsigned int status;
    char room[10];
    self[0] = sock;
    EXPECT(LLCrecv(sock, NULL, room, sizeof room), OPACC);
    EXPECT(LLCxmit(sock, self, "hello", 5), OPACC);
    while (LLCstatus(sock, 'r', &status) == OPACC && (status & STBUSY))
        ;
    EXPECT(status, 0);
    while (LLCstatus(sock, 'x', &status) == OPACC && (status & STBUSY))
        ;
    EXPECT(status, 0);
}

/* Another socket, and the same one's two directions. */
static void goes_on(pthread_t thread)
{
    exchange(6);
    exchange(4);
    EXPECT(LLCreserve(4, peer, 100, 1), OPBUSY);
    EXPECT(LLCrelease(4, peer), OPBUSY);
    EXPECT(LLClisten(4), OPBUSY);
    EXPECT(LLCoption(4, NULL, NULL, 0, 0, 7, 1), OPBUSY);
    EXPECT(LLCclose(4), OPBUSY);
    EXPECT(LLCclose(6), OPACC);
    EXPECT(LLCopen(6), OPACC);
    EXPECT(answered(), WAITS);
    pthread_join(thread, NULL);
    EXPECT(answer, OPNORES);
    EXPECT(LLCoption(4, NULL, NULL, 0, 0, 7, 1), OPACC);
    EXPECT(LLCclose(4), OPACC);
}

/* Another socket of the number stands there when the answer comes. */
static void ends(pthread_t thread)
{
    EXPECT(LLCoff(), OPACC);
    EXPECT(LLCon(2), OPACC);
    EXPECT(LLCopen(4), OPACC);
    EXPECT(LLCoption(4, NULL, NULL, 0, 0, 7, 1), OPACC);
    EXPECT(answered(), WAITS);
    pthread_join(thread, NULL);
    EXPECT(answer, OPINVAL);
    exchange(4);
    EXPECT(LLCclose(4), OPACC);
}

int main(int argc, char **argv)
{
    pid_t other = argc > 1 ? atoi(argv[1]) : 0;
    pthread_t thread;
    EXPECT(LLCon(2), OPACC);
    self[1] = LLCnode();
    EXPECT(LLCopen(4), OPACC);
    EXPECT(LLCopen(6), OPACC);
    if (other <= 0 || kill(other, SIGSTOP))
        return perror("kill"), 1;
    answer = WAITS;
    pthread_create(&thread, NULL, reserve, NULL);
    usleep(200000);
    if (argc > 2)
        ends(thread);
    else
        goes_on(thread);
    EXPECT(LLCoff(), OPACC);
    kill(other, SIGCONT);
    puts(wrong ? "WRONG" : "all right");
    return wrong;
}
