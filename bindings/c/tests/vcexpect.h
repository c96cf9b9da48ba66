/* Tests of two ends of circuits: where a call does not give what is expected, the line is named and the test goes on. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rota_vc.h>

static int wrong;

#define EXPECT(call, wanted)                                                                                       \
    do {                                                                                                           \
        long got = (long)(call);                                                                                   \
        if (got != (wanted)) {                                                                                     \
            printf("line %d: %s: %ld, %s (%s)\n", __LINE__, #call, got, strerror(errno), rota_error());            \
            wrong = 1;                                                                                             \
        }                                                                                                          \
    } while (0)

/* Runs one end: "serve SERVICE" in one station, "ask" with so many words in another. It ends with 0 and "all right", or has named
 * the line. */
static int run(int count, char **words, int (*serve)(char **), int (*ask)(char **), int asked, const char *usage)
{
    int ended = 2;
    if (count == 3 && strcmp(words[1], "serve") == 0)
        ended = serve(words + 2);
    else if (count == 2 + asked && strcmp(words[1], "ask") == 0)
        ended = ask(words + 2);
    else
        fprintf(stderr, "%s\n", usage);
    if (ended == 0)
        printf("all right\n");
    return ended;
}
