// DPDK's rte_ring, one producer and one consumer: single items, bursts copied in and out, and
// bursts in place (its zero-copy interface). A ring of `capacity` slots holds `capacity` - 1 items.
#include "rivals.hpp"
#include <cstdlib>
#include <rte_ring.h>
#include <rte_ring_peek_zc.h>

namespace {

template <class T> struct Ring {
    rte_ring *ring;
    std::vector<T> sent, received;

    Ring(size_t capacity, size_t burst) : sent(burst), received(burst) {
        ssize_t size = rte_ring_get_memsize_elem(sizeof(T), capacity);
        ring = size < 0 ? nullptr : static_cast<rte_ring *>(std::aligned_alloc(4096, (size + 4095) / 4096 * 4096));
        if (!ring || rte_ring_init(ring, "ring", capacity, RING_F_SP_ENQ | RING_F_SC_DEQ) != 0) std::abort();
    }
    ~Ring() { std::free(ring); }
    Ring(const Ring &) = delete;
};

template <class T> struct Single : Ring<T> {
    using Ring<T>::Ring;
    size_t put(uint64_t next, size_t) {
        T item(next);
        return rte_ring_sp_enqueue_elem(this->ring, &item, sizeof(T)) == 0;
    }
    size_t take(uint64_t next, size_t, uint64_t &wrong) {
        T item;
        if (rte_ring_sc_dequeue_elem(this->ring, &item, sizeof(T)) != 0) return 0;
        wrong |= item.differs(next);
        return 1;
    }
};

template <class T> struct Copy : Ring<T> {
    using Ring<T>::Ring;
    size_t put(uint64_t next, size_t wanted) {
        make(this->sent.data(), wanted, next);
        return rte_ring_sp_enqueue_burst_elem(this->ring, this->sent.data(), sizeof(T), wanted, nullptr);
    }
    size_t take(uint64_t next, size_t wanted, uint64_t &wrong) {
        T *items = this->received.data();
        size_t taken = rte_ring_sc_dequeue_burst_elem(this->ring, items, sizeof(T), wanted, nullptr);
        check(items, taken, next, wrong);
        return taken;
    }
};

template <class T> struct InPlace : Ring<T> {
    using Ring<T>::Ring;
    size_t put(uint64_t next, size_t wanted) {
        rte_ring_zc_data slots;
        size_t n = rte_ring_enqueue_zc_burst_elem_start(this->ring, sizeof(T), wanted, &slots, nullptr);
        if (n == 0) return 0;
        make(static_cast<T *>(slots.ptr1), slots.n1, next);
        make(static_cast<T *>(slots.ptr2), n - slots.n1, next + slots.n1);
        rte_ring_enqueue_zc_elem_finish(this->ring, n);
        return n;
    }
    size_t take(uint64_t next, size_t wanted, uint64_t &wrong) {
        rte_ring_zc_data items;
        size_t n = rte_ring_dequeue_zc_burst_elem_start(this->ring, sizeof(T), wanted, &items, nullptr);
        if (n == 0) return 0;
        check(static_cast<T *>(items.ptr1), items.n1, next, wrong);
        check(static_cast<T *>(items.ptr2), n - items.n1, next + items.n1, wrong);
        rte_ring_dequeue_zc_elem_finish(this->ring, n);
        return n;
    }
};

const Entry TABLE[] = {
    ALL_SIZES("rte_ring", SINGLE, Single),
    ALL_SIZES("rte_ring", COPY, Copy),
    ALL_SIZES("rte_ring", IN_PLACE, InPlace),
};

} // namespace

EXPORT(rivals_dpdk, TABLE)
