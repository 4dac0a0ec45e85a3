// The study "DPDK Mempool Size" with a real mempool: one core receives from DPDK's null device and passes packets to
// another core over a ring device, which counts them in a Count-Min sketch and frees them.
//
//   mempool BUFFERS RATE PACKETS TRAIN [EAL options]
//
// RATE is in packets a second. With TRAIN 1 packets are due evenly; otherwise trains of that many are due at four times
// the rate, with pauses between them. The card keeps 512 packets that are due, as its descriptors would; a further one is
// dropped, and so are packets for which the pool has not enough buffers. Cores keep no buffers of their own.
// Prints a line of JSON; times are of bursts of 32, in nanoseconds a packet.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <rte_bus_vdev.h>
#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_jhash.h>
#include <rte_launch.h>
#include <rte_mbuf.h>

enum { BURST = 32, DESCRIPTORS = 512, RING = 1 << 18, ROWS = 4, WIDTH = 1 << 16, FLOWS = 100000 };

static uint16_t null_port, ring_port;
static uint64_t packets;
static int is_over;
static uint32_t counters[ROWS][WIDTH];
static uint64_t counted, busy;

static void fail(const char *what) {
    fprintf(stderr, "error: %s\n", what);
    exit(1);
}

// Counts packets until the other core has ended and the ring is empty.
static int count(void *unused) {
    struct rte_mbuf *burst[BURST];
    for (;;) {
        int last = __atomic_load_n(&is_over, __ATOMIC_ACQUIRE);
        uint64_t start = rte_rdtsc();
        uint16_t n = rte_eth_rx_burst(ring_port, 0, burst, BURST);
        if (n == 0) {
            if (last)
                return 0;
            rte_pause();
            continue;
        }
        for (uint16_t i = 0; i < n; i++) {
            uint32_t flow;
            memcpy(&flow, rte_pktmbuf_mtod_offset(burst[i], void *, 26), sizeof flow);
            for (uint32_t row = 0; row < ROWS; row++)
                counters[row][rte_jhash_1word(flow, row) % WIDTH]++;
        }
        rte_pktmbuf_free_bulk(burst, n);
        busy += rte_rdtsc() - start;
        counted += n;
    }
}

// Packets that are due `at` cycles after the start.
static uint64_t due(uint64_t at, double per_cycle, uint64_t train) {
    if (train < 2)
        return at * per_cycle;
    double period = train / per_cycle;
    uint64_t trains = at / period;
    double within = (at - trains * period) * per_cycle * 4;
    return trains * train + (within < train ? (uint64_t)within : train);
}

// Receives what is due from the null device and passes it on; returns the number of packets dropped.
static uint64_t receive(double per_cycle, uint64_t train) {
    struct rte_mbuf *burst[BURST];
    uint64_t sent = 0, dropped = 0, start = rte_rdtsc();
    uint32_t random = 1;
    while (sent < packets) {
        uint64_t until = due(rte_rdtsc() - start, per_cycle, train);
        until = until < packets ? until : packets;
        if (sent >= until) {
            rte_pause();
            continue;
        }
        if (until - sent > DESCRIPTORS) {
            dropped += until - sent - DESCRIPTORS;
            sent = until - DESCRIPTORS;
        }
        uint16_t wanted = until - sent < BURST ? until - sent : BURST;
        uint16_t n = rte_eth_rx_burst(null_port, 0, burst, wanted);
        for (uint16_t i = 0; i < n; i++) {
            random = random * 1664525 + 1013904223;
            uint32_t flow = (random >> 8) % FLOWS;
            memcpy(rte_pktmbuf_mtod_offset(burst[i], void *, 26), &flow, sizeof flow);
        }
        uint16_t passed = n ? rte_eth_tx_burst(ring_port, 0, burst, n) : 0;
        rte_pktmbuf_free_bulk(burst + passed, n - passed);
        dropped += wanted - passed;
        sent += wanted;
    }
    return dropped;
}

static void start(uint16_t port, struct rte_mempool *pool) {
    struct rte_eth_conf conf = {0};
    if (rte_eth_dev_configure(port, 1, 1, &conf) || rte_eth_rx_queue_setup(port, 0, DESCRIPTORS, 0, NULL, pool) ||
        rte_eth_tx_queue_setup(port, 0, DESCRIPTORS, 0, NULL) || rte_eth_dev_start(port))
        fail("a device does not start");
}

int main(int argc, char **argv) {
    if (argc < 5)
        fail("usage: mempool BUFFERS RATE PACKETS TRAIN [EAL options]");
    unsigned buffers = atoi(argv[1]);
    double rate = atof(argv[2]);
    packets = strtoull(argv[3], NULL, 10);
    uint64_t train = strtoull(argv[4], NULL, 10);
    argv[4] = argv[0];
    if (rte_eal_init(argc - 4, argv + 4) < 0)
        fail("the EAL does not start");
    unsigned worker = rte_get_next_lcore(-1, 1, 0);
    if (worker >= RTE_MAX_LCORE)
        fail("two cores are needed");
    struct rte_mempool *pool = rte_pktmbuf_pool_create("pool", buffers, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
    struct rte_ring *ring = rte_ring_create("between", RING, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
    if (!pool || !ring)
        fail("not enough memory");
    if (rte_vdev_init("net_null0", "size=64,copy=1") || rte_eth_dev_get_port_by_name("net_null0", &null_port))
        fail("there is no null device");
    int made = rte_eth_from_rings("between", &ring, 1, &ring, 1, SOCKET_ID_ANY);
    if (made < 0)
        fail("there is no ring device");
    ring_port = made;
    start(null_port, pool);
    start(ring_port, pool);
    rte_eal_remote_launch(count, NULL, worker);
    double per_cycle = rate / rte_get_tsc_hz();
    uint64_t began = rte_rdtsc();
    uint64_t dropped = receive(per_cycle, train);
    double seconds = (double)(rte_rdtsc() - began) / rte_get_tsc_hz();
    __atomic_store_n(&is_over, 1, __ATOMIC_RELEASE);
    rte_eal_mp_wait_lcore();
    if (counted + dropped != packets)
        fail("packets are missing");
    printf("{\"buffers\": %u, \"packets\": %lu, \"dropped\": %lu, \"packet_drop_rate\": %.6f, \"processing_ns_mean\": %.2f, "
           "\"behind\": %.4f}\n",
           buffers, packets, dropped, (double)dropped / packets, busy * 1e9 / rte_get_tsc_hz() / (counted ? counted : 1),
           seconds * rate / packets - 1);
    return 0;
}
