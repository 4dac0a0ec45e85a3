//! The ghost queue of S3-FIFO: names of Data that were evicted soon after they were stored. If one
//! is stored again, it is of use beyond the small queue.
//!
//! ```text
//!  set, 32 bytes:  | tag: 16, time: 16 | tag, time | … 8 names |     time: in blocks evicted
//! ```
//!
//! A name is valid while as many blocks as the main queue can have are evicted. A wrong match, by
//! an equal tag or a time that wrapped around, only moves a Data to the other queue.

const WAYS: usize = 8;

/// Bytes of the ghosts for each block of the store.
pub(super) const BYTES_PER_BLOCK: usize = 2;

/// Number of units of time for which a name is valid.
const UNITS: u64 = 256;

#[derive(Debug)]
pub(super) struct Ghosts {
    sets: Vec<[u32; WAYS]>,
    /// Number of blocks evicted from the small queue.
    evicted: u64,
    /// Number of evicted blocks in a unit of time.
    unit: u64,
}

impl Ghosts {
    /// Ghosts of a store with this number of blocks.
    pub(super) fn new(blocks: usize) -> Self {
        let sets = blocks * BYTES_PER_BLOCK / size_of::<[u32; WAYS]>();
        Self {
            sets: vec![[0; WAYS]; sets],
            evicted: 0,
            unit: (blocks as u64).div_ceil(UNITS).max(1),
        }
    }

    /// The time; never 0, the time of an empty place.
    fn now(&self) -> u16 {
        (self.evicted / self.unit) as u16 | 1
    }

    fn set(&mut self, hash: u64) -> Option<&mut [u32; WAYS]> {
        let at = (u128::from(hash) * self.sets.len() as u128) >> 64;
        self.sets.get_mut(at as usize)
    }

    /// Stores the name of an evicted Data of this number of blocks. In a full set it replaces the
    /// oldest one.
    pub(super) fn put(&mut self, hash: u64, blocks: usize) {
        self.evicted += blocks as u64;
        let now = self.now();
        let Some(set) = self.set(hash) else { return };
        let age =
            |place: &u32| if *place == 0 { u16::MAX } else { now.wrapping_sub(*place as u16) };
        if let Some(oldest) = set.iter_mut().max_by_key(|place| age(place)) {
            *oldest = tag(hash) | u32::from(now);
        }
    }

    /// Removes a name; returns whether it was there and valid.
    pub(super) fn take(&mut self, hash: u64) -> bool {
        let now = self.now();
        let Some(set) = self.set(hash) else { return false };
        let valid = |place: &u32| {
            *place != 0
                && *place & 0xffff_0000 == tag(hash)
                && u64::from(now.wrapping_sub(*place as u16)) <= UNITS
        };
        match set.iter_mut().find(|place| valid(place)) {
            Some(place) => {
                *place = 0;
                true
            }
            None => false,
        }
    }
}

/// The tag of a hash: its lower 16 bits, which do not select the set.
fn tag(hash: u64) -> u32 {
    (hash as u32) << 16
}
