/* A node that says nothing any more. "silent stopped PID" stops it, closes sockets that listen, lets it go on and opens
 * them again; "silent killed" keeps a socket that listens until somebody kills the program, which outlives its node. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <llcio.h>
#include <rota.h>

#define EXPECT(call)                                                                       \
    do {                                                                                   \
        int got = (call);                                                                  \
        if (got) {                                                                         \
            printf("line %d: %s: %d (%s)\n", __LINE__, #call, got, LLCopbits(got));        \
            exit(1);                                                                       \
        }                                                                                  \
    } while (0)

static void listen_all(void)
{
    int sock;
    EXPECT(LLCon(3));
    for (sock = 24; sock <= 28; sock += 2) {
        EXPECT(LLCopen(sock));
        EXPECT(LLClisten(sock));
    }
}

/* One second for what the node does not answer, and as much for a machine that is busy. */
static void within(uint64_t begun, const char *what)
{
    uint64_t took = rota_now() - begun;
    if (took > 2000000000u) {
        printf("%s took %lu ms\n", what, (unsigned long)(took / 1000000));
        exit(1);
    }
}

static void stopped(pid_t node)
{
    uint64_t begun;
    listen_all();
    if (kill(node, SIGSTOP)) {
        perror("kill");
        exit(1);
    }
    begun = rota_now();
    EXPECT(LLCclose(24));
    within(begun, "closing one socket");
    begun = rota_now();
    EXPECT(LLCoff());
    within(begun, "LLCoff of two sockets");
    kill(node, SIGCONT);
    listen_all();
    EXPECT(LLCoff());
    puts("all right");
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IONBF, 0);
    if (rota_version()[0] < '0' || rota_version()[0] > '9')
        return 1;
    if (argc > 2 && !strcmp(argv[1], "stopped"))
        stopped(atoi(argv[2]));
    else {
        listen_all();
        fprintf(stderr, "listening\n");
        for (;;)
            pause();
    }
    return 0;
}
