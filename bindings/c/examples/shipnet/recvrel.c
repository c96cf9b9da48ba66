/* "recvrel" - receiver for the reliable communication service
 *
 * From TR-88-15, section 3.2. Repaired where the scan had broken it ("seqn" stood as "segn", "LLCon(1)" as "LLCon(l)",
 * braces as "(", "[" and "i"), and where marked: F2, F3, F4. It ends by the time-out of its last LLCrecv, as it
 * always did: its sender sends MSND - 1 messages.
 */
#include <stdio.h>
#include <stdlib.h>              /* exit: Turbo C declared it in stdio.h */
#include <llcio.h>               /* LLC interface */

#define MRCV    1000             /* number of messages to receive */

int     cls     = 0,             /* service class */
        toutr   = 100,           /* timeout units */
        touts   = 0,
        retry   = 0,             /* retry limit */
        ns      = 2,             /* source socket number */
        dones   = 0,             /* set when acknowledgement sent */
        doner   = 0,             /* set when message received */
        mnum;
struct {
        unsigned char seqn;      /* sequence number */
        unsigned life;           /* F2: which life of the sender speaks */
        char message[100];       /* message received */
        } din;
unsigned
 int    status1,                 /* status returned */
        status2;
unsigned
 char   netadr[2] = { 2, 5 };    /* remote: socket number, node address */
/* F2: an acknowledgement names the life that it answers. */
struct  { char seqack; unsigned life; } ack = { 0 };   /* acknowledgement - sequence number */

/* receive signal handler */
sigr() {if (LLCstatus(ns, 'r', &status1), !(status1&STBUSY)) doner++;}

/* transmit signal handler */
sigs() {if (LLCstatus(ns, 'x', &status2), !(status2&STBUSY)) dones++;}

opstat (s, tag)                  /* check the operation status and return it */
  int s;
  char *tag;
  { if (s)
     printf("*** LLC%s rejected, status: \n \t %s \n", tag, LLCopbits(s));
      return (s);
  }

down (opn)                       /* close down */
  char opn;
  { switch (opn) {
      case 'r' : while (opstat(LLCreset(ns,'r'), "reset") ) ;
      case 'c' : opstat(LLCclose(ns), "open");
      case 'o' : opstat(LLCoff(), "off");
      default : exit(1);
    }
  }

main()                           /* receiver for reliable communication */
  {
    /* initialize, open and set options for the socket */
    if ( opstat(LLCon(1), "on") ) exit(1);
    if ( opstat(LLCopen(ns), "open") ) down ('o');
    /* F3: one class, and so one priority, for all acknowledgements. */
    if ( opstat(LLCoption(ns, sigs, sigr, touts, toutr, cls, retry), "option") ) down ('c');
    /* post the initial receive buffer for the message to arrive */
    if(opstat(LLCrecv(ns, netadr, &din, sizeof(din)), "recv")) down('r');
    /* receiving messages and sending acknowledgements */
    for (mnum = 1; mnum <= MRCV; mnum++) {
        while (!doner );                        /* wait until receive done */
        /* signal handler indicators */
        dones = doner = 0;
        /* post another receive buffer for the message */
        if (opstat (LLCrecv(ns, netadr, &din, sizeof(din)), "recv")) down('r');
        /* receive failed or timeout? */
        if (status1&(STFAIL|STLATE)) {
            printf("*** hexstat = %x\n", status1);
            printf("*** transmit failed, status: %s\n", LLCstbits(status1,'x'));
            down ('r');
        }
        /* F2: a life that was not heard before begins with its own sequence numbers. */
        if (ack.life != din.life) {
            ack.life = din.life;
            ack.seqack = !din.seqn;
        }
        /* is this the next message ? */
        if (din.seqn != ack.seqack ) {
            ack.seqack = din.seqn;              /* set the acknowledgement seq.number */
            /* F4: the paper processed the message behind its acknowledgement. The receive that is posted already
               has the same buffer, and what the acknowledgement calls for may be in it before. */
            /***.......PROCESS THE MESSAGE ......***/
            printf(" received: %d %s \n", din.seqn, din.message);
            /* send the acknowledgement */
            if(opstat(LLCxmit(ns, netadr, &ack, sizeof(ack)), "xmit")) down('r');
            while (!dones) ;                    /* wait until done */
        }
        else {                                  /* retransmitted message */
            printf(" the same message \n");
            /* send the old acknowledgement */
            if(opstat(LLCxmit(ns, netadr, &ack, sizeof(ack)), "xmit")) down('r');
            while (!dones) ;                    /* wait until done */
        }
    }
  }
