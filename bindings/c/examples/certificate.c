/* A channel by way of gateways that the source names, and the certificate of its promise: "certificate n4 7 C.json gw2". Then
 * "rota check C.json" examines each number by code of its own. Without a gateway the network chooses the way. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <rcap.h>

#define MS 1000000ull
enum { NODES = 8 };

static int die(const char *what)
{
    fprintf(stderr, "certificate: %s: %s\n", what, rota_error());
    return 1;
}

/* Writes the certificate, whose length is asked for first. */
static int save(const RcapChannel *channel, const char *path)
{
    size_t octets;
    char *text;
    FILE *file;
    if (RcapCertificate(channel, NULL, 0, &octets) != ROTA_TOO_LONG)
        return die("certificate");
    text = malloc(octets + 1);
    if (!text || RcapCertificate(channel, text, octets + 1, NULL))
        return die("certificate");
    file = fopen(path, "w");
    if (!file || fprintf(file, "%s\n", text) < 0 || fclose(file)) {
        perror(path);
        return 1;
    }
    free(text);
    return 0;
}

int main(int argc, char **argv)
{
    RcapTraffic traffic = { .Xmin = 40 * MS, .Smax = 5000 };
    RcapService service = { .D = 400 * MS };
    rota_more more = { .size = sizeof more };
    rota_hop nodes[NODES];
    rota_refusal refusal;
    RcapChannel *channel;
    size_t count, k;
    if (argc < 4 || argc > 5) {
        fprintf(stderr, "usage: certificate STATION SERVICE FILE [GATEWAYS]\n");
        return 2;
    }
    more.via = argv[4];
    if (RcapEstablishMore(argv[1], atoi(argv[2]), &traffic, &service, &more, &channel, &refusal))
        return die("establish");
    if (RcapStatusRequest(channel, nodes, NODES, &count))
        return die("status");
    for (k = 0; k < count && k < NODES; k++)
        printf("node %s: each packet within %" PRIu64 " ns\n", nodes[k].node, nodes[k].bound_ns);
    if (save(channel, argv[3]))
        return 1;
    printf("each message within %" PRIu64 " ns\n", rota_channel_bound_ns(RcapSender(channel)));
    return RcapCloseRequest(channel, NULL) ? die("close") : 0;
}
