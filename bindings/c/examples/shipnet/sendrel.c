/* "sendrel" - transmitter for the reliable communication service
 *
 * From TR-88-15, section 3.2. Repaired where the scan had broken it ("&" stood as "f", "LLCrecv" as "LLCredv",
 * "seqack" as "seqadk", "||" as "| |", "s" as "#" and "*"; the lines between "transmit failed" and the comparison of
 * the acknowledgement are lost, and stand here as the text describes them), and where marked: F1, F2, F3. Its receiver has
 * node address 100.
 */
#include <stdio.h>
#include <stdlib.h>              /* exit: Turbo C declared it in stdio.h */
#include <time.h>                /* F2 */
#include <unistd.h>              /* F2 */
#include <llcio.h>               /* LLC interface */

#define MSND    100              /* number of messages to send */

int     cls     = 0,             /* service class */
        toutr   = 60,            /* timeout units */
        touts   = 0,
        retry   = 0,             /* retry limit */
        ns      = 2,             /* source socket number */
        dones   = 0,             /* set when message sent */
        doner   = 0,             /* set when acknowledgement received */
        rpt     = 10,            /* retries */
        mnum;
struct {
        unsigned char seqn;      /* sequence number */
        /* F2: which life of this program speaks. If it were started again, its first message could have the
           sequence number of its last one, and be taken for a retransmission and swallowed. */
        unsigned life;
        char message[100];       /* message sent */
        } dout;
unsigned
 int    status1,                 /* status returned */
        status2;
unsigned
 char   netadr[2] = { 2, 100 };  /* destination: socket number, node address */
/* F2: an acknowledgement names the life that it answers. */
struct  { char seqack; unsigned life; } ack;   /* received acknowledgement */
/* F1: LLCrecv writes the source of a packet; the destination must not be lost to a stranger's. */
unsigned
 char   source[2];

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

main()                           /* reliable transmitter */
  {
    /* initialize, open and set options for the socket */
    if ( opstat(LLCon(1), "on") ) exit(1);
    if ( opstat(LLCopen(ns), "open") ) down ('o');
    /* F3: one class, and so one priority, for all messages: two on one socket would overtake each other. */
    if ( opstat(LLCoption(ns, sigs, sigr, touts, toutr, cls, retry), "option") ) down ('c');
                                                /* initialize out message */
    sprintf(dout.message, "MESSAGE....");
                                                /* initialize seq number */
    dout.seqn = 0;
    dout.life = time(NULL) * 1000 + getpid();   /* F2 */

    /* send MSND messages with 10 retries upon failure */
    for (mnum = 1; mnum < MSND; mnum++) {
        if ( rpt == 0 ) down('r');              /* if 10 retries -> down! */
        /***.........PREPARE THE MESSAGE HERE.......***/
                                                /* flip sequence number */
        dout.seqn = (dout.seqn == 0) ? 1 : 0 ;
        printf( " Sending %d %s \n", dout.seqn, dout.message );
        rpt = 10;                               /* transmission retries */
        do {
            /* signal handler indicators */
            doner = dones = 0;
            /* receive acknowledgement */
            if(opstat(LLCrecv(ns, source, &ack, sizeof(ack)), "recv")) down('r');
            /* send message */
            if(opstat(LLCxmit(ns, netadr, &dout, sizeof(dout)), "xmit")) down('r');
            while ( !dones || !doner );         /* wait until done */
                                                /* transmission failed */
            if (status2&STFAIL) {
                printf("*** hexstat = %x\n", status2);
                printf("*** transmit failed, status: %s\n", LLCstbits(status2,'x'));
            }
            /* F1: an acknowledgement that does not fit is a late duplicate of an older one; the paper's program
               ended on it. It is ignored, and the right one awaited. */
            while (!(status1&(STFAIL|STLATE)) &&
                   (dout.seqn != ack.seqack || dout.life != ack.life)) {
                doner = 0;
                if(opstat(LLCrecv(ns, source, &ack, sizeof(ack)), "recv")) down('r');
                while ( !doner );
            }
            if (!(status1&(STFAIL|STLATE)))     /* O.K. -> send next message */
                       break;
        } while ( (rpt--) , ( rpt > 0 ));
    }
    down ('r');
  }
