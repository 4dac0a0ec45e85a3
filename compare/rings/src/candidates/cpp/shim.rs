//! Bindings to shim/rivals.hpp.

use crate::{
    candidates::{Candidate, Mode, Origin},
    ends::{Receiver, Sender},
};
use std::{
    ffi::{CStr, c_char, c_void},
    ptr::NonNull,
    slice,
    sync::Arc,
};

/// Must match the struct in shim/rivals.hpp.
#[repr(C)]
pub struct Entry {
    name: *const c_char,
    mode: u32,
    bytes: usize,
    create: unsafe extern "C" fn(capacity: usize, burst: usize) -> *mut c_void,
    send: unsafe extern "C" fn(rival: *mut c_void, burst: usize, from: u64, to: u64),
    receive: unsafe extern "C" fn(rival: *mut c_void, burst: usize, from: u64, to: u64) -> u64,
    destroy: unsafe extern "C" fn(rival: *mut c_void),
}

pub type Table = unsafe extern "C" fn(count: *mut usize) -> *const Entry;

unsafe extern "C" {
    #[cfg(boost)]
    pub fn rivals_boost(count: *mut usize) -> *const Entry;
    #[cfg(moodycamel)]
    pub fn rivals_moodycamel(count: *mut usize) -> *const Entry;
    #[cfg(dpdk)]
    pub fn rivals_dpdk(count: *mut usize) -> *const Entry;
}

/// The candidates of a table: one for each name and mode, with all item sizes.
pub fn candidates(table: Table) -> Vec<Candidate> {
    let mut count = 0;
    // SAFETY: the function returns a constant array and writes its length.
    let entries: &'static [Entry] = unsafe { slice::from_raw_parts(table(&mut count), count) };
    let alike = entries.chunk_by(|a, b| (a.name(), a.mode) == (b.name(), b.mode));
    alike
        .map(|sizes| {
            let mode =
                [Mode::Single, Mode::Copy, Mode::InPlace, Mode::Blocking][sizes[0].mode as usize];
            let make = move |bytes, capacity, burst| {
                let entry = sizes.iter().find(|entry| entry.bytes == bytes).expect("all sizes");
                // SAFETY: creates a new queue; it aborts the process if there is no memory.
                let rival = NonNull::new(unsafe { (entry.create)(capacity, burst) });
                let rival = rival.expect("never null");
                let rival = Arc::new(Rival { rival, entry, burst });
                let (sender, receiver) = (End(Arc::clone(&rival)), End(rival));
                (Box::new(sender) as Box<dyn Sender>, Box::new(receiver) as Box<dyn Receiver>)
            };
            Candidate::new(sizes[0].name(), mode, Origin::Rival, Box::new(make))
        })
        .collect()
}

impl Entry {
    fn name(&self) -> &str {
        // SAFETY: `name` is a string literal.
        unsafe { CStr::from_ptr(self.name) }.to_str().expect("ASCII")
    }
}

struct Rival {
    rival: NonNull<c_void>,
    entry: &'static Entry,
    burst: usize,
}

// SAFETY: one thread may call `send` while another calls `receive`. Each is reachable only through
// the one end that `candidates` creates for it, and needs that end mutably.
unsafe impl Send for Rival {}
// SAFETY: as above.
unsafe impl Sync for Rival {}

impl Drop for Rival {
    fn drop(&mut self) {
        // SAFETY: both ends have been dropped.
        unsafe { (self.entry.destroy)(self.rival.as_ptr()) }
    }
}

/// One end: the sender's thread calls `send` only, the receiver's thread `receive` only.
struct End(Arc<Rival>);

impl Sender for End {
    fn send(&mut self, from: u64, to: u64) {
        let Rival { rival, entry, burst } = &*self.0;
        // SAFETY: this is the only caller of `send` for this queue.
        unsafe { (entry.send)(rival.as_ptr(), *burst, from, to) }
    }
}

impl Receiver for End {
    fn receive(&mut self, from: u64, to: u64) -> u64 {
        let Rival { rival, entry, burst } = &*self.0;
        // SAFETY: this is the only caller of `receive` for this queue.
        unsafe { (entry.receive)(rival.as_ptr(), *burst, from, to) }
    }
}
