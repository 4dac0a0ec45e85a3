/* Prints the flow records of captures or interfaces. The arguments are the options of ringtap_open:
 *
 *     cargo build --release -p ringtap-c
 *     cc examples/c/flows.c -I capi/include -L target/release -lringtap_c -Wl,-rpath,$PWD/target/release -o flows
 *     ./flows read=examples/office.pcap 'flows=udp port 53'
 */
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>

#include <ringtap.h>

int main(int count, char **arguments) {
    (void)count;
    char error[512];
    ringtap_run *run = ringtap_open((const char *const *)(arguments + 1), error, sizeof error);
    if (run == NULL) {
        fprintf(stderr, "%s\n", error);
        return 2;
    }
    ringtap_flow flow;
    uint64_t flows = 0, packets = 0, octets = 0;
    int got;
    while ((got = ringtap_next(run, &flow, sizeof flow)) == 1) {
        int family = flow.ip_version == 6 ? AF_INET6 : AF_INET;
        char source[INET6_ADDRSTRLEN], destination[INET6_ADDRSTRLEN], name[256];
        inet_ntop(family, flow.source, source, sizeof source);
        inet_ntop(family, flow.destination, destination, sizeof destination);
        ringtap_text(run, "dnsQueryName", 0, name, sizeof name);
        printf("%" PRIu64 " %s %u > %s %u protocol %u packets %" PRIu64 "+%" PRIu64 " %s %s %s\n", flow.start_ms, source,
               flow.source_port, destination, flow.destination_port, flow.protocol, flow.packets[0], flow.packets[1],
               flow.community_id, flow.application, name);
        flows++;
        packets += flow.packets[0] + flow.packets[1];
        octets += flow.octets[0] + flow.octets[1];
    }
    if (got < 0)
        fprintf(stderr, "%s\n", ringtap_error(run));
    printf("%" PRIu64 " flows, %" PRIu64 " packets, %" PRIu64 " octets, %" PRIu64 " lost\n", flows, packets, octets,
           ringtap_lost(run));
    ringtap_close(run);
    return got < 0;
}
