// C functions for datasketches-cpp: its Count-Min sketch and its frequent items sketch, for keys of
// 13 bytes.
#include <array>
#include <cstdint>
#include <cstring>

#include <count_min.hpp>
#include <frequent_items_sketch.hpp>

namespace {

using Key = std::array<uint8_t, 13>;
using CountMin = datasketches::count_min_sketch<uint32_t>;

// The hash function that the library uses for its other sketches.
struct Hash {
    size_t operator()(const Key &key) const {
        HashState state;
        MurmurHash3_x64_128(key.data(), key.size(), datasketches::DEFAULT_SEED, state);
        return state.h1;
    }
};

using Frequent = datasketches::frequent_items_sketch<Key, uint64_t, Hash>;

} // namespace

extern "C" {

CountMin *apache_count_min(uint8_t rows, uint32_t width) { return new CountMin(rows, width); }

void apache_count_min_feed(CountMin *sketch, const Key *keys, size_t n) {
    for (size_t i = 0; i < n; i++) sketch->update(keys[i].data(), keys[i].size(), 1);
}

uint64_t apache_count_min_upper(const CountMin *sketch, const Key *key) {
    return sketch->get_estimate(key->data(), key->size());
}

void apache_count_min_free(CountMin *sketch) { delete sketch; }

Frequent *apache_frequent(uint8_t lg_slots) { return new Frequent(lg_slots, lg_slots); }

void apache_frequent_feed(Frequent *sketch, const Key *keys, size_t n) {
    for (size_t i = 0; i < n; i++) sketch->update(keys[i]);
}

uint64_t apache_frequent_upper(const Frequent *sketch, const Key *key) { return sketch->get_upper_bound(*key); }

// Writes at most `room` keys whose estimate reaches the threshold; returns the number of such keys.
size_t apache_frequent_heavy(const Frequent *sketch, uint64_t threshold, Key *keys, size_t room) {
    size_t n = 0;
    for (const auto &row : sketch->get_frequent_items(datasketches::NO_FALSE_NEGATIVES, 0)) {
        if (row.get_estimate() < threshold) continue;
        if (n < room) keys[n] = row.get_item();
        n++;
    }
    return n;
}

// A slot is a key, a count and two bytes of state.
size_t apache_frequent_bytes(uint8_t lg_slots) { return (sizeof(Key) + sizeof(uint64_t) + 2) << lg_slots; }

void apache_frequent_free(Frequent *sketch) { delete sketch; }
}
