// The interface of C and C++ rivals: items, loops and waiting as in src/item.rs and src/ends.rs,
// implemented in C++ so that no call between languages is timed.
//
// A rival is a class with
//     Rival(size_t capacity, size_t burst)
//     size_t put(uint64_t next, size_t wanted)                       inserts up to `wanted` items; returns their number
//     size_t take(uint64_t next, size_t wanted, uint64_t &wrong)     takes up to `wanted` items and reads them
// `put` is called by one thread and `take` by another. A file exports a table of entries; its
// classes are in an unnamed namespace, because they have the same names in all files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <immintrin.h>
#include <new>
#include <sched.h>
#include <vector>

template <size_t BYTES> struct alignas(BYTES >= 64 ? 64 : BYTES) Item {
    static constexpr size_t WORDS = BYTES / 8;
    uint64_t words[WORDS];

    Item() = default;
    explicit Item(uint64_t number) {
        for (size_t i = 0; i < WORDS; i++) words[i] = number;
    }
    uint64_t differs(uint64_t number) const {
        uint64_t all = 0;
        for (size_t i = 0; i < WORDS; i++) all |= words[i] ^ number;
        return all;
    }
};

template <class T> inline void make(T *slots, size_t count, uint64_t first) {
    for (size_t i = 0; i < count; i++) new (slots + i) T(first + i);
}

template <class T> inline void check(const T *items, size_t count, uint64_t first, uint64_t &wrong) {
    for (size_t i = 0; i < count; i++) wrong |= items[i].differs(first + i);
}

// Spins while there is nothing to do; yields every 1,024 calls.
inline void wait_if(bool nothing, uint32_t &idle) {
    if (!nothing)
        idle = 0;
    else if (++idle % 1024 == 0)
        sched_yield();
    else
        _mm_pause();
}

enum Mode : uint32_t { SINGLE = 0, COPY = 1, IN_PLACE = 2, BLOCKING = 3 };

// Must match the struct in src/candidates/cpp/shim.rs.
struct Entry {
    const char *name;
    Mode mode;
    size_t bytes;
    void *(*create)(size_t capacity, size_t burst);
    void (*send)(void *rival, size_t burst, uint64_t from, uint64_t to);
    uint64_t (*receive)(void *rival, size_t burst, uint64_t from, uint64_t to);
    void (*destroy)(void *rival);
};

template <class Rival> void *create(size_t capacity, size_t burst) {
    return new Rival(capacity, burst);
}

template <class Rival> void send(void *rival, size_t burst, uint64_t from, uint64_t to) {
    Rival &ring = *static_cast<Rival *>(rival);
    uint32_t idle = 0;
    while (from < to) {
        size_t put = ring.put(from, to - from < burst ? to - from : burst);
        from += put;
        wait_if(put == 0, idle);
    }
}

template <class Rival> uint64_t receive(void *rival, size_t burst, uint64_t from, uint64_t to) {
    Rival &ring = *static_cast<Rival *>(rival);
    uint64_t wrong = 0;
    uint32_t idle = 0;
    while (from < to) {
        size_t taken = ring.take(from, to - from < burst ? to - from : burst, wrong);
        from += taken;
        wait_if(taken == 0, idle);
    }
    return wrong;
}

template <class Rival> void destroy(void *rival) {
    delete static_cast<Rival *>(rival);
}

template <class Rival> constexpr Entry entry(const char *name, Mode mode, size_t bytes) {
    return {name, mode, bytes, create<Rival>, send<Rival>, receive<Rival>, destroy<Rival>};
}

// The entries of a class template for all item sizes.
#define ALL_SIZES(NAME, MODE, RIVAL)                                                                               \
    entry<RIVAL<Item<8>>>(NAME, MODE, 8), entry<RIVAL<Item<64>>>(NAME, MODE, 64),                                  \
        entry<RIVAL<Item<128>>>(NAME, MODE, 128), entry<RIVAL<Item<1024>>>(NAME, MODE, 1024)

// The function that a file exports: returns the table and its length.
#define EXPORT(FUNCTION, TABLE)                                                                                    \
    extern "C" const Entry *FUNCTION(size_t *count) {                                                              \
        *count = sizeof TABLE / sizeof *TABLE;                                                                     \
        return TABLE;                                                                                              \
    }
