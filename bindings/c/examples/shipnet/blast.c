/* Program "blast" will broadcast MSND messages
    of size SIZE to all nodes in the network.
 *
 * From TR-88-15, section 3.1. Repaired where the scan had broken it, and in nothing else: the brace behind the two
 * "for" and "if" of the last loop stood as "(", "ns" as "n#", "SIZE" as "STZE", "0" as a letter, "mnum;" as "moum:".
 * It sends MSND - 1 messages, as it always did. It ends with exit(1), as it always did.
 */
#include <stdio.h>               /* standard I/O */
#include <stdlib.h>              /* exit: Turbo C declared it in stdio.h */
#include <llcio.h>               /* LLC interface */

#define MSND    100              /* number of messages to send */
#define SIZE    1000             /* size of the message */
#define BROADC  255              /* broadcast address */

int     cls     = 0,             /* service class */
        tout    = 0,             /* timeout */
        retry   = 1,             /* retry limit */
        ns      = 2,             /* source socket */
        mnum;
unsigned
 int    status;                  /* returned status */
char    message[SIZE] = { "Message..." };   /* broadcast message */
unsigned
 char   netadr[2] = {2, 255};    /* destination: socket number, node address */

nop() { }                        /* signal function */

down (opn)                       /* close down */
 char opn;
  { switch (opn) {
    case 'r' :
       while (status = LLCreset(ns,'x'))
          printf("*** LLCreset rejected, status : %s\n ", LLCopbits(status));
    case 'c' :
       if (status = LLCclose(ns))
           printf("*** LLCclose rejected, status : %s\n", LLCopbits(status));
    case 'o' :
       if (status = LLCoff())
           printf("*** LLCoff rejected, status : %s\n", LLCopbits(status));
    default:
       exit (1);
   }
}

main()                           /* transmit MSND messages */
{
   /* initialize the network, open the socket and set the options */
   if (status = LLCon(1)) {
     printf("*** LLCon rejected, status : %s\n", LLCopbits(status));
     exit(1);
   }
   if (status = LLCopen(ns)) {
     printf("*** LLCopen rejected, status : %s\n", LLCopbits(status));
     down ('o');
   }
   if (status = LLCoption(ns, nop, nop, tout, tout, cls, retry)) {
     printf("*** LLCoption rejected, status : %s\n", LLCopbits(status));
     down ('c');
   }
   /* transmit MSND messages, wait for nonbusy status after each transmission */
   for (mnum = 1; mnum < MSND; mnum++) {
     if (status = LLCxmit(ns, netadr, message, sizeof(message))){
       printf("*** LLCxmit rejected, status : %s\n", LLCopbits(status));
       down ('r');
     }
     while (LLCstatus(ns, 'x', &status), (status&STBUSY))
                ; /* wait until not busy */
   }
   LLCclose(ns);                /* F5: the paper's program closed down as after an error, and ended with 1 */
   LLCoff();
   exit(0);
}
