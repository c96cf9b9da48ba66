/* A listener that takes reliable and guaranteed circuits alone, and the certificate of a guaranteed one: "vcpicky serve SERVICE"
 * in one station, "vcpicky ask NODE SERVICE FILE" in another. Each ends with 0 and "all right", or names the line. */
#include "vcexpect.h"

enum { REASON = 4711 };
static char room[1 << 20];

static int serve(char **words)
{
    int ears = rota_vc_socket(NULL), k;
    EXPECT(rota_vc_bind(ears, atoi(words[0])), 0);
    EXPECT(rota_vc_set(ears, ROTA_VC_SIMPLEX, 1), 0);
    EXPECT(rota_vc_set(ears, ROTA_VC_TAKES, ROTA_VC_RELIABLE | ROTA_VC_GUARANTEED), 0);
    EXPECT(rota_vc_set(ears, ROTA_VC_REASON, REASON), 0);
    EXPECT(rota_vc_listen(ears, 4), 0);
    fprintf(stderr, "listening\n");
    /* The one without error control that came first is not among them. */
    for (k = 0; k < 2; k++) {
        int vc = rota_vc_accept(ears, NULL, 0);
        EXPECT(vc >= 0, 1);
        EXPECT(rota_vc_get(vc, ROTA_VC_BOUND_NS) > 0, k == 0);
        EXPECT(rota_vc_recv(vc, room, sizeof room, 0), 5);
        EXPECT(rota_vc_recv(vc, room, sizeof room, 0), 0);
        EXPECT(rota_vc_certificate(vc, NULL, 0), -1);
        EXPECT(errno, EOPNOTSUPP);
        EXPECT(rota_vc_close(vc), 0);
    }
    EXPECT(rota_vc_close(ears), 0);
    return wrong;
}

static void declined(const char *node, const char *service)
{
    rota_vc_qos qos = { .size = sizeof qos, .simplex = 1, .unreliable = 1, .flow = ROTA_VC_OPEN_FLOW };
    int vc = rota_vc_socket(NULL);
    if (rota_vc_connect(vc, node, atoi(service), &qos) == 0)
        while (rota_vc_send(vc, room, 100, 0) == 100)
            usleep(10000);
    EXPECT(errno, ECONNREFUSED);
    EXPECT(strstr(rota_error(), "4711") != NULL, 1);
    EXPECT(rota_vc_get(vc, ROTA_VC_REASON), REASON);
    rota_vc_close(vc);
}

static void save(int vc, const char *path)
{
    ssize_t octets = rota_vc_certificate(vc, NULL, 0);
    FILE *file = fopen(path, "w");
    EXPECT(octets > 100 && octets < (ssize_t)sizeof room, 1);
    room[0] = 'x';
    EXPECT(rota_vc_certificate(vc, room, octets), octets);
    EXPECT(room[0], 'x');
    EXPECT(rota_vc_certificate(vc, room, octets + 1), octets);
    EXPECT(strlen(room), octets);
    EXPECT(file != NULL && fputs(room, file) >= 0 && fclose(file) == 0, 1);
}

static int ask(char **words)
{
    const char *node = words[0], *service = words[1];
    rota_vc_qos qos = { .size = sizeof qos, .simplex = 1, .unreliable = 1, .flow = ROTA_VC_CHANNEL_FLOW };
    rota_vc_qos plain = { .size = sizeof qos, .simplex = 1 };
    int vc;
    declined(node, service);
    qos.rate_bps = 4000000;
    vc = rota_vc_socket(NULL);
    EXPECT(rota_vc_connect(vc, node, atoi(service), &qos), 0);
    save(vc, words[2]);
    EXPECT(rota_vc_send(vc, "1234", 5, 0), 5);
    EXPECT(rota_vc_close(vc), 0);
    vc = rota_vc_socket(NULL);
    EXPECT(rota_vc_connect(vc, node, atoi(service), &plain), 0);
    EXPECT(rota_vc_certificate(vc, NULL, 0), -1);
    EXPECT(errno, EOPNOTSUPP);
    EXPECT(rota_vc_get(vc, ROTA_VC_REASON), 0);
    EXPECT(rota_vc_send(vc, "5678", 5, 0), 5);
    EXPECT(rota_vc_close(vc), 0);
    return wrong;
}

int main(int count, char **words)
{
    return run(count, words, serve, ask, 3, "vcpicky serve SERVICE | vcpicky ask NODE SERVICE FILE");
}
