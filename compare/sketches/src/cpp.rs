//! Bindings to the C++ library of DataSketches through `shim/datasketches.cpp`.

use crate::stream::Key;
use std::marker::{PhantomData, PhantomPinned};

/// An opaque C++ object.
#[repr(C)]
struct Opaque {
    _none: [u8; 0],
    _foreign: PhantomData<(*mut u8, PhantomPinned)>,
}

unsafe extern "C" {
    safe fn apache_count_min(rows: u8, width: u32) -> *mut Opaque;
    fn apache_count_min_feed(sketch: *mut Opaque, keys: *const Key, n: usize);
    fn apache_count_min_upper(sketch: *const Opaque, key: *const Key) -> u64;
    fn apache_count_min_free(sketch: *mut Opaque);
    safe fn apache_frequent(lg_slots: u8) -> *mut Opaque;
    fn apache_frequent_feed(sketch: *mut Opaque, keys: *const Key, n: usize);
    fn apache_frequent_upper(sketch: *const Opaque, key: *const Key) -> u64;
    fn apache_frequent_heavy(
        sketch: *const Opaque,
        threshold: u64,
        keys: *mut Key,
        room: usize,
    ) -> usize;
    safe fn apache_frequent_bytes(lg_slots: u8) -> usize;
    fn apache_frequent_free(sketch: *mut Opaque);
}

/// `datasketches::count_min_sketch<uint32_t>`.
pub struct CountMin(*mut Opaque);

impl CountMin {
    pub fn new(rows: u8, width: u32) -> Self {
        Self(apache_count_min(rows, width))
    }

    pub fn feed(&mut self, keys: &[Key]) {
        // SAFETY: the sketch lives as long as self, and the keys live during the call.
        unsafe { apache_count_min_feed(self.0, keys.as_ptr(), keys.len()) }
    }

    pub fn upper(&self, key: &Key) -> u64 {
        // SAFETY: as in `feed`.
        unsafe { apache_count_min_upper(self.0, key) }
    }
}

impl Drop for CountMin {
    fn drop(&mut self) {
        // SAFETY: the sketch was created by `new` and is not used again.
        unsafe { apache_count_min_free(self.0) }
    }
}

/// `datasketches::frequent_items_sketch` with its full size from the start.
pub struct FrequentItems {
    sketch: *mut Opaque,
    lg_slots: u8,
}

impl FrequentItems {
    pub fn new(lg_slots: u8) -> Self {
        Self { sketch: apache_frequent(lg_slots), lg_slots }
    }

    pub fn feed(&mut self, keys: &[Key]) {
        // SAFETY: the sketch lives as long as self, and the keys live during the call.
        unsafe { apache_frequent_feed(self.sketch, keys.as_ptr(), keys.len()) }
    }

    pub fn upper(&self, key: &Key) -> u64 {
        // SAFETY: as in `feed`.
        unsafe { apache_frequent_upper(self.sketch, key) }
    }

    pub fn heavy(&self, threshold: u64) -> Vec<Key> {
        let mut keys = vec![Key::default(); 1 << self.lg_slots];
        // SAFETY: at most `keys.len()` keys are written.
        let n =
            unsafe { apache_frequent_heavy(self.sketch, threshold, keys.as_mut_ptr(), keys.len()) };
        keys.truncate(n);
        keys
    }

    pub fn bytes(&self) -> usize {
        apache_frequent_bytes(self.lg_slots)
    }
}

impl Drop for FrequentItems {
    fn drop(&mut self) {
        // SAFETY: the sketch was created by `new` and is not used again.
        unsafe { apache_frequent_free(self.sketch) }
    }
}
