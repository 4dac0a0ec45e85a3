/*
 * The functions of DPDK that ringtap uses, as plain functions with plain structs: some of DPDK's are inline, and its
 * structs differ between releases. raw.rs has the same structs as below.
 *
 * Results: 0 or more for success, a negative errno for failure.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_ether.h>
#include <rte_lcore.h>
#include <rte_log.h>
#include <rte_mbuf.h>

struct rt_device {
	uint16_t queues_most;
	/* True if the device can distribute frames over its queues by their addresses. */
	uint16_t shares_out;
	uint16_t send_queues_most;
	char driver[42];
};

struct rt_counters {
	uint64_t missed;
	uint64_t errors;
	uint64_t no_buffer;
};

struct rt_frame {
	const uint8_t *data;
	/* Bytes in the first piece, at data, and in all pieces. */
	uint32_t piece_len;
	uint32_t len;
};

_Static_assert(sizeof(struct rt_device) == 48, "as in raw.rs");
_Static_assert(sizeof(struct rt_counters) == 24, "as in raw.rs");
_Static_assert(sizeof(struct rt_frame) == 16, "as in raw.rs");
_Static_assert(sizeof(struct rte_mbuf) == 128, "mbufs of a layout that was never tried");

static char log_text[4096];
static FILE *log_stream;

/* Clears the log buffer and records DPDK's log from now on, until the buffer is full. */
void rt_log_begin(void)
{
	if (log_stream == NULL) {
		/* The last byte is always 0. */
		log_stream = fmemopen(log_text, sizeof(log_text) - 1, "w");
		if (log_stream == NULL)
			return;
		setvbuf(log_stream, NULL, _IONBF, 0);
		rte_openlog_stream(log_stream);
	}
	flockfile(log_stream);
	rewind(log_stream);
	memset(log_text, 0, sizeof(log_text));
	funlockfile(log_stream);
}

const char *rt_log(void)
{
	return log_text;
}

int rt_cpu(void)
{
	return sched_getcpu();
}

int rt_start(int argc, char **argv)
{
	return rte_eal_init(argc, argv) < 0 ? -rte_errno : 0;
}

int rt_attach(const char *device)
{
	return rte_dev_probe(device);
}

int rt_find(const char *name)
{
	uint16_t port;
	int error = rte_eth_dev_get_port_by_name(name, &port);

	return error != 0 ? error : port;
}

/* The packet types whose hash uses only the addresses, so that fragments go to the same queue. Cards that do not support
 * "any IPv4" need each transport. */
static uint64_t hash_of(const struct rte_eth_dev_info *info)
{
	uint64_t wanted = RTE_ETH_RSS_IP;

	if (!(info->flow_type_rss_offloads & RTE_ETH_RSS_IPV4))
		wanted |= RTE_ETH_RSS_TCP | RTE_ETH_RSS_UDP | RTE_ETH_RSS_SCTP;
	return info->flow_type_rss_offloads & wanted;
}

int rt_describe(uint16_t port, struct rt_device *device)
{
	struct rte_eth_dev_info info;
	int error = rte_eth_dev_info_get(port, &info);

	if (error != 0)
		return error;
	device->queues_most = info.max_rx_queues;
	device->shares_out = hash_of(&info) != 0;
	device->send_queues_most = info.max_tx_queues;
	snprintf(device->driver, sizeof(device->driver), "%s", info.driver_name ? info.driver_name : "?");
	return 0;
}

struct rte_mempool *rt_pool(uint16_t port, uint16_t queue, uint32_t mbufs)
{
	char name[RTE_MEMPOOL_NAMESIZE];

	snprintf(name, sizeof(name), "ringtap_%u_%u", port, queue);
	return rte_pktmbuf_pool_create(name, mbufs, 64, 0, RTE_MBUF_DEFAULT_BUF_SIZE, rte_eth_dev_socket_id(port));
}

void rt_pool_free(struct rte_mempool *pool)
{
	rte_mempool_free(pool);
}

int rt_errno(void)
{
	return rte_errno;
}

/* With one send queue, if the device has any. */
int rt_configure(uint16_t port, uint16_t queues)
{
	/* This key repeats every 16 bits, so the hash of both directions is equal (Woo and Park 2012). */
	static uint8_t key[64];
	struct rte_eth_dev_info info;
	struct rte_eth_conf conf = {0};
	int error = rte_eth_dev_info_get(port, &info);

	if (error != 0)
		return error;
	for (size_t i = 0; i < sizeof(key); i += 2) {
		key[i] = 0x6d;
		key[i + 1] = 0x5a;
	}
	if (queues > 1 && hash_of(&info) != 0) {
		conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
		conf.rx_adv_conf.rss_conf.rss_hf = hash_of(&info);
		if (info.hash_key_size > 0 && info.hash_key_size <= sizeof(key)) {
			conf.rx_adv_conf.rss_conf.rss_key = key;
			conf.rx_adv_conf.rss_conf.rss_key_len = info.hash_key_size;
		}
	}
	return rte_eth_dev_configure(port, queues, info.max_tx_queues > 0, &conf);
}

/* The length of a receive ring that the device supports, for the requested length `wanted`. */
int rt_ring_len(uint16_t port, uint16_t wanted)
{
	uint16_t receive = wanted, send = wanted;
	int error = rte_eth_dev_adjust_nb_rx_tx_desc(port, &receive, &send);

	return error != 0 ? error : receive;
}

int rt_receive_queue(uint16_t port, uint16_t queue, uint16_t ring, struct rte_mempool *pool)
{
	return rte_eth_rx_queue_setup(port, queue, ring, rte_eth_dev_socket_id(port), NULL, pool);
}

int rt_send_queue(uint16_t port, uint16_t wanted)
{
	uint16_t receive = wanted, send = wanted;
	int error = rte_eth_dev_adjust_nb_rx_tx_desc(port, &receive, &send);

	return error != 0 ? error : rte_eth_tx_queue_setup(port, 0, send, rte_eth_dev_socket_id(port), NULL);
}

int rt_go(uint16_t port, int promiscuous)
{
	int error = rte_eth_dev_start(port);

	/* Devices without addresses do not support these calls, and receive all frames anyway. */
	if (error == 0 && promiscuous) {
		(void)rte_eth_promiscuous_enable(port);
		(void)rte_eth_allmulticast_enable(port);
	}
	return error;
}

/* Closes the port and releases its device. */
void rt_close(uint16_t port)
{
	struct rte_eth_dev_info info;
	int known = rte_eth_dev_info_get(port, &info) == 0;

	(void)rte_eth_dev_stop(port);
	(void)rte_eth_dev_close(port);
	if (known && info.device != NULL)
		(void)rte_dev_remove(info.device);
}

uint16_t rt_receive(uint16_t port, uint16_t queue, struct rte_mbuf **mbufs, struct rt_frame *frames, uint16_t most)
{
	uint16_t count = rte_eth_rx_burst(port, queue, mbufs, most);

	for (uint16_t i = 0; i < count; i++) {
		/* Put back a tag that the driver removed from the frame. */
		if (mbufs[i]->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED)
			(void)rte_vlan_insert(&mbufs[i]);
		frames[i].data = rte_pktmbuf_mtod(mbufs[i], const uint8_t *);
		frames[i].piece_len = rte_pktmbuf_data_len(mbufs[i]);
		frames[i].len = rte_pktmbuf_pkt_len(mbufs[i]);
		rte_prefetch0(frames[i].data);
	}
	return count;
}

void rt_free(struct rte_mbuf **mbufs, uint16_t count)
{
	rte_pktmbuf_free_bulk(mbufs, count);
}

/* Copies the first bytes of a frame in several pieces. Returns their number. */
uint32_t rt_join(const struct rte_mbuf *mbuf, uint8_t *to, uint32_t room)
{
	uint32_t done = 0;

	for (; mbuf != NULL && done < room; mbuf = mbuf->next) {
		uint32_t piece = RTE_MIN((uint32_t)mbuf->data_len, room - done);

		memcpy(to + done, rte_pktmbuf_mtod(mbuf, const uint8_t *), piece);
		done += piece;
	}
	return done;
}

/* Returns 1 if the frame was queued, 0 if the queue is full. */
int rt_send(uint16_t port, struct rte_mempool *pool, const uint8_t *data, uint16_t len)
{
	struct rte_mbuf *mbuf = rte_pktmbuf_alloc(pool);
	char *to;

	if (mbuf == NULL)
		return 0;
	to = rte_pktmbuf_append(mbuf, len);
	if (to == NULL) {
		rte_pktmbuf_free(mbuf);
		return -EMSGSIZE;
	}
	memcpy(to, data, len);
	if (rte_eth_tx_burst(port, 0, &mbuf, 1) == 1)
		return 1;
	rte_pktmbuf_free(mbuf);
	return 0;
}

int rt_counters(uint16_t port, struct rt_counters *counters)
{
	struct rte_eth_stats stats;
	int error = rte_eth_stats_get(port, &stats);

	if (error != 0)
		return error;
	counters->missed = stats.imissed;
	counters->errors = stats.ierrors;
	counters->no_buffer = stats.rx_nombuf;
	return 0;
}

/* The number of frames that wait in a queue; few drivers of virtual devices report it. */
int rt_waiting(uint16_t port, uint16_t queue)
{
	return rte_eth_rx_queue_count(port, queue);
}

/* 1 up, 0 down, -ENODEV gone. */
int rt_link(uint16_t port)
{
	struct rte_eth_link link;

	if (rte_eth_dev_is_removed(port))
		return -ENODEV;
	return rte_eth_link_get_nowait(port, &link) == 0 ? link.link_status : 1;
}

int rt_thread_enter(void)
{
	return rte_lcore_id() != LCORE_ID_ANY ? 1 : rte_thread_register() < 0 ? -rte_errno : 0;
}

void rt_thread_leave(void)
{
	rte_thread_unregister();
}
