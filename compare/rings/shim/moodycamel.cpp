// moodycamel::ReaderWriterQueue, bounded by try_enqueue; and its blocking variant, which sleeps on
// a semaphore.
#include "rivals.hpp"
#include <readerwriterqueue/readerwriterqueue.h>

namespace {

template <class T> struct Single {
    moodycamel::ReaderWriterQueue<T> queue;

    Single(size_t capacity, size_t) : queue(capacity) {}
    size_t put(uint64_t next, size_t) { return queue.try_enqueue(T(next)); }
    size_t take(uint64_t next, size_t, uint64_t &wrong) {
        T item;
        if (!queue.try_dequeue(item)) return 0;
        wrong |= item.differs(next);
        return 1;
    }
};

template <class T> struct Blocking {
    moodycamel::BlockingReaderWriterQueue<T> queue;

    Blocking(size_t capacity, size_t) : queue(capacity) {}
    size_t put(uint64_t next, size_t) { return queue.try_enqueue(T(next)); }
    size_t take(uint64_t next, size_t, uint64_t &wrong) {
        T item;
        queue.wait_dequeue(item);
        wrong |= item.differs(next);
        return 1;
    }
};

const Entry TABLE[] = {
    ALL_SIZES("moodycamel", SINGLE, Single),
    ALL_SIZES("moodycamel", BLOCKING, Blocking),
};

} // namespace

EXPORT(rivals_moodycamel, TABLE)
