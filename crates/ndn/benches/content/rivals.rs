//! Other eviction policies, by keys and weights only: LRU; SIEVE (Y. Zhang et al., NSDI 2024);
//! W-TinyLFU (G. Einziger, R. Friedman, B. Manes, *TinyLFU*, ACM Transactions on Storage 2017).

use std::collections::{BTreeMap, HashMap};

use crate::streams::Request;

/// A cache.
pub(crate) trait Policy {
    /// Looks up a key, and stores it if it is missing; returns whether it was there.
    fn request(&mut self, request: &Request) -> bool;
}

/// The bytes that a Data with this content needs in the content store: blocks of 128 bytes and their
/// places in the index and among the ghosts.
pub(crate) fn weight(size: usize) -> usize {
    let wire = size + 75;
    (1 + (wire - 64).div_ceil(123)) * 141
}

/// Keys in the order of their last use.
#[derive(Default)]
struct Order {
    by_time: BTreeMap<u64, u64>,
    /// By key: its time and weight.
    of_key: HashMap<u64, (u64, usize)>,
    weight: usize,
    time: u64,
}

impl Order {
    fn has(&self, key: u64) -> bool {
        self.of_key.contains_key(&key)
    }

    /// Adds a key as the newest one.
    fn add(&mut self, key: u64, weight: usize) {
        self.time += 1;
        self.by_time.insert(self.time, key);
        self.of_key.insert(key, (self.time, weight));
        self.weight += weight;
    }

    /// Removes a key; returns its weight.
    fn remove(&mut self, key: u64) -> Option<usize> {
        let (time, weight) = self.of_key.remove(&key)?;
        self.by_time.remove(&time);
        self.weight -= weight;
        Some(weight)
    }

    /// Makes a key the newest one; returns false if it is missing.
    fn refresh(&mut self, key: u64) -> bool {
        let weight = self.remove(key);
        weight.map(|weight| self.add(key, weight)).is_some()
    }

    fn oldest(&self) -> Option<(u64, usize)> {
        let (_, &key) = self.by_time.first_key_value()?;
        Some((key, self.of_key.get(&key)?.1))
    }
}

/// Evicts the least recently used key.
pub(crate) struct Lru {
    order: Order,
    bytes: usize,
}

impl Lru {
    pub(crate) fn new(bytes: usize) -> Self {
        Self { order: Order::default(), bytes }
    }
}

impl Policy for Lru {
    fn request(&mut self, request: &Request) -> bool {
        let is_hit = self.order.refresh(request.key);
        if !is_hit {
            self.order.add(request.key, weight(request.size));
        }
        while let Some((key, _)) = self.order.oldest().filter(|_| self.order.weight > self.bytes) {
            self.order.remove(key);
        }
        is_hit
    }
}

/// Evicts the first key without a use that a hand finds from the oldest to the newest.
pub(crate) struct Sieve {
    order: Order,
    used: HashMap<u64, bool>,
    hand: u64,
    bytes: usize,
}

impl Sieve {
    pub(crate) fn new(bytes: usize) -> Self {
        Self { order: Order::default(), used: HashMap::new(), hand: 0, bytes }
    }

    fn evict(&mut self) {
        loop {
            let next = self.order.by_time.range(self.hand..).next();
            let Some((&time, &key)) = next else {
                self.hand = 0;
                continue;
            };
            self.hand = time + 1;
            match self.used.get_mut(&key) {
                Some(used) if *used => *used = false,
                _ => {
                    self.order.remove(key);
                    self.used.remove(&key);
                    return;
                }
            }
        }
    }
}

impl Policy for Sieve {
    fn request(&mut self, request: &Request) -> bool {
        if self.order.has(request.key) {
            self.used.insert(request.key, true);
            return true;
        }
        let weight = weight(request.size);
        while self.order.weight + weight > self.bytes && self.order.weight > 0 {
            self.evict();
        }
        self.order.add(request.key, weight);
        false
    }
}

/// A window of one per cent, and a main part of two segments, into which a key comes if it was
/// requested more often than those that it replaces.
pub(crate) struct TinyLfu {
    window: Order,
    probation: Order,
    protected: Order,
    sketch: Vec<u8>,
    added: usize,
    bytes: usize,
}

impl TinyLfu {
    const ROWS: usize = 4;
    const COLUMNS: usize = 1 << 16;
    /// Number of additions after which all counters are halved, about ten for each stored key.
    const SAMPLE: usize = 100_000;

    pub(crate) fn new(bytes: usize) -> Self {
        let sketch = vec![0; Self::ROWS * Self::COLUMNS];
        let [window, probation, protected] = std::array::from_fn(|_| Order::default());
        Self { window, probation, protected, sketch, added: 0, bytes }
    }

    fn counters(key: u64) -> [usize; Self::ROWS] {
        let hash = ringtap_base::SplitMix::new(key).next();
        std::array::from_fn(|row| {
            row * Self::COLUMNS + (hash >> (16 * row)) as usize % Self::COLUMNS
        })
    }

    fn count(&mut self, key: u64) {
        for at in Self::counters(key) {
            self.sketch[at] = (self.sketch[at] + 1).min(15);
        }
        self.added += 1;
        if self.added == Self::SAMPLE {
            self.sketch.iter_mut().for_each(|counter| *counter /= 2);
            self.added = 0;
        }
    }

    fn frequency(&self, key: u64) -> u8 {
        Self::counters(key).map(|at| self.sketch[at]).into_iter().min().unwrap_or(0)
    }

    /// Moves a key from the window to the main part, if its frequency admits it.
    fn admit(&mut self, key: u64, weight: usize) {
        let main = self.bytes - self.bytes / 100;
        while self.probation.weight + self.protected.weight + weight > main {
            let from = if self.probation.weight > 0 { &self.probation } else { &self.protected };
            let Some((victim, _)) = from.oldest() else { return };
            if self.frequency(victim) >= self.frequency(key) {
                return;
            }
            if self.probation.remove(victim).is_none() {
                self.protected.remove(victim);
            }
        }
        self.probation.add(key, weight);
    }
}

impl Policy for TinyLfu {
    fn request(&mut self, request: &Request) -> bool {
        let key = request.key;
        self.count(key);
        if self.window.refresh(key) || self.protected.refresh(key) {
            return true;
        }
        if let Some(weight) = self.probation.remove(key) {
            self.protected.add(key, weight);
            while self.protected.weight > self.bytes / 100 * 79 {
                let Some((oldest, weight)) = self.protected.oldest() else { break };
                self.protected.remove(oldest);
                self.probation.add(oldest, weight);
            }
            return true;
        }
        self.window.add(key, weight(request.size));
        while self.window.weight > self.bytes / 100 {
            let Some((oldest, weight)) = self.window.oldest() else { break };
            self.window.remove(oldest);
            self.admit(oldest, weight);
        }
        false
    }
}
