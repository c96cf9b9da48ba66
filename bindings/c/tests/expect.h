/* What a test expects of a call; where it does not come, the line is named and the test goes on. */
#include <stdio.h>

#include <llcio.h>

static int wrong;
#define EXPECT(call, wanted)                                                                      \
    do {                                                                                          \
        int got = (call);                                                                         \
        if (got != (wanted)) {                                                                    \
            printf("line %d: %s: %d (%s), not %d\n", __LINE__, #call, got, LLCopbits(got), (wanted)); \
            wrong = 1;                                                                            \
        }                                                                                         \
    } while (0)
