// boost::lockfree::spsc_queue: single items; ranges copied in and out; ranges copied in and read in
// place.
#include "rivals.hpp"
#include <boost/lockfree/spsc_queue.hpp>

namespace {

template <class T> struct Single {
    boost::lockfree::spsc_queue<T> queue;

    Single(size_t capacity, size_t) : queue(capacity) {}
    size_t put(uint64_t next, size_t) { return queue.push(T(next)); }
    size_t take(uint64_t next, size_t, uint64_t &wrong) {
        T item;
        if (!queue.pop(item)) return 0;
        wrong |= item.differs(next);
        return 1;
    }
};

template <class T> struct Copy {
    boost::lockfree::spsc_queue<T> queue;
    std::vector<T> sent, received;

    Copy(size_t capacity, size_t burst) : queue(capacity), sent(burst), received(burst) {}
    size_t put(uint64_t next, size_t wanted) {
        make(sent.data(), wanted, next);
        return queue.push(sent.data(), wanted);
    }
    size_t take(uint64_t next, size_t wanted, uint64_t &wrong) {
        size_t taken = queue.pop(received.data(), wanted);
        check(received.data(), taken, next, wrong);
        return taken;
    }
};

template <class T> struct InPlace : Copy<T> {
    using Copy<T>::Copy;
    // Takes all items in the queue; the sender never sends more than the receiver is to take.
    size_t take(uint64_t next, size_t, uint64_t &wrong) {
        uint64_t all = 0;
        size_t taken = this->queue.consume_all([&](const T &item) { all |= item.differs(next++); });
        wrong |= all;
        return taken;
    }
};

const Entry TABLE[] = {
    ALL_SIZES("boost spsc_queue", SINGLE, Single),
    ALL_SIZES("boost spsc_queue", COPY, Copy),
    ALL_SIZES("boost spsc_queue", IN_PLACE, InPlace),
};

} // namespace

EXPORT(rivals_boost, TABLE)
