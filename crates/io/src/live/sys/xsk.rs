//! The four rings of an AF_XDP socket, and the memory for frames (UMEM).
//!
//! ```text
//!            fill: empty buffers ──▶            tx: frames to send ──▶
//! user ───────────────────────▶ kernel   user ───────────────────────▶ kernel
//!      ◀── rx: received frames                ◀── completion: sent buffers
//! ```
//!
//! A ring has one producer and one consumer; each has an index that only it writes. Indices increase and wrap at 2³².
//!
//! Invariant: a buffer is in one place: in one of the rings (then it belongs to the kernel), or held by this side.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use super::mapping::Mapping;
use super::{check, socket};

/// An entry of a ring: an address in UMEM (fill, completion) or a descriptor (rx, tx).
///
/// # Safety
/// Any bytes are a valid value of the type, and it has the size and alignment of the kernel's type.
pub(super) unsafe trait Entry: Copy {}

// SAFETY: `__u64`.
unsafe impl Entry for u64 {}
// SAFETY: `struct xdp_desc`, which consists of integers.
unsafe impl Entry for libc::xdp_desc {}

/// A ring that is shared with the kernel; this side is the producer or the consumer.
pub(super) struct Ring<T> {
    _map: Mapping,
    producer: NonNull<AtomicU32>,
    consumer: NonNull<AtomicU32>,
    flags: NonNull<AtomicU32>,
    entries: NonNull<T>,
    mask: u32,
    /// The index of this side.
    own: u32,
    /// The last read index of the kernel.
    theirs: u32,
}

// SAFETY: the pointers point into the mapping that the ring owns, which does not belong to a thread.
unsafe impl<T: Entry> Send for Ring<T> {}

/// The ring, with its socket option and offsets.
#[derive(Clone, Copy)]
pub(super) enum Which {
    Fill,
    Completion,
    Rx,
    Tx,
}

impl<T: Entry> Ring<T> {
    /// Creates a ring of `size` entries, a power of two, for the socket, and maps it.
    pub(super) fn new(socket: &OwnedFd, which: Which, size: u32) -> io::Result<Self> {
        assert!(size.is_power_of_two());
        let option = match which {
            Which::Fill => libc::XDP_UMEM_FILL_RING,
            Which::Completion => libc::XDP_UMEM_COMPLETION_RING,
            Which::Rx => libc::XDP_RX_RING,
            Which::Tx => libc::XDP_TX_RING,
        };
        socket::set(socket, libc::SOL_XDP, option, &size)?;
        // SAFETY: zeros are a valid value of this struct of integers.
        let offsets: libc::xdp_mmap_offsets = unsafe { std::mem::zeroed() };
        let offsets = socket::get(socket, libc::SOL_XDP, libc::XDP_MMAP_OFFSETS, offsets)?;
        let (offsets, place) = match which {
            Which::Fill => (offsets.fr, libc::XDP_UMEM_PGOFF_FILL_RING as i64),
            Which::Completion => (offsets.cr, libc::XDP_UMEM_PGOFF_COMPLETION_RING as i64),
            Which::Rx => (offsets.rx, libc::XDP_PGOFF_RX_RING),
            Which::Tx => (offsets.tx, libc::XDP_PGOFF_TX_RING),
        };
        let bytes = size as usize * size_of::<T>();
        let map = Mapping::shared(socket, offsets.desc as usize + bytes, place)?;
        Ok(Self {
            producer: map.at(offsets.producer as usize, 4).cast(),
            consumer: map.at(offsets.consumer as usize, 4).cast(),
            flags: map.at(offsets.flags as usize, 4).cast(),
            entries: map.at(offsets.desc as usize, bytes).cast(),
            mask: size - 1,
            own: 0,
            theirs: 0,
            _map: map,
        })
    }

    /// Returns true if the kernel needs a system call to continue.
    #[inline]
    pub(super) fn wants_waking(&self) -> bool {
        // SAFETY: an aligned word in the mapping, which both sides access as a whole.
        let flags = unsafe { self.flags.as_ref() };
        flags.load(Ordering::Relaxed) & libc::XDP_RING_NEED_WAKEUP != 0
    }

    /// Consumer: the number of waiting entries.
    #[inline]
    pub(super) fn waiting(&mut self) -> u32 {
        if self.theirs == self.own {
            // SAFETY: as in `wants_waking`. Acquire pairs with the kernel's Release of the index after it wrote the
            // entries and the frames.
            self.theirs = unsafe { self.producer.as_ref() }.load(Ordering::Acquire);
        }
        self.theirs.wrapping_sub(self.own)
    }

    /// Consumer: the current number of waiting entries, and the capacity.
    pub(super) fn backlog(&self) -> (usize, usize) {
        // SAFETY: as in `wants_waking`.
        let theirs = unsafe { self.producer.as_ref() }.load(Ordering::Relaxed);
        (theirs.wrapping_sub(self.own) as usize, self.mask as usize + 1)
    }

    /// The number of entries for which it has space.
    pub(super) fn capacity(&self) -> u32 {
        self.mask + 1
    }

    /// Consumer: the entry at `offset` from the first waiting one; `offset` is less than their number. Producer: with the
    /// negative of `offset`, wrapped, the entry that was submitted last, and those before it.
    #[inline]
    pub(super) fn look(&self, offset: u32) -> T {
        let at = self.own.wrapping_add(offset) & self.mask;
        // SAFETY: the mask keeps the position within the entries, and the kernel does not write to waiting entries.
        unsafe { self.entries.add(at as usize).read() }
    }

    /// Consumer: releases `count` entries.
    #[inline]
    pub(super) fn done(&mut self, count: u32) {
        self.own = self.own.wrapping_add(count);
        // SAFETY: as in `wants_waking`. Release pairs with the kernel's Acquire before it writes there again.
        unsafe { self.consumer.as_ref() }.store(self.own, Ordering::Release);
    }

    /// Producer: the number of entries that the kernel has not taken yet.
    #[inline]
    pub(super) fn pending(&mut self) -> u32 {
        // SAFETY: as in `wants_waking`. Acquire pairs with the kernel's Release after it read the entries.
        self.theirs = unsafe { self.consumer.as_ref() }.load(Ordering::Acquire);
        self.own.wrapping_sub(self.theirs)
    }

    /// Producer: writes the entry at `offset` behind the last one. The ring has space for it: it has as many entries as
    /// there are buffers.
    #[inline]
    pub(super) fn put(&mut self, offset: u32, entry: T) {
        let at = self.own.wrapping_add(offset) & self.mask;
        // SAFETY: the mask keeps the position within the entries; the kernel reads the entry only after the index is
        // moved.
        unsafe { self.entries.add(at as usize).write(entry) };
    }

    /// Producer: submits the `count` written entries.
    #[inline]
    pub(super) fn submit(&mut self, count: u32) {
        self.own = self.own.wrapping_add(count);
        // SAFETY: as in `wants_waking`. Release pairs with the kernel's Acquire: the kernel sees the entries and, if it
        // sends them, the frames.
        unsafe { self.producer.as_ref() }.store(self.own, Ordering::Release);
    }
}

/// Memory for frames, in buffers of `1 << shift` bytes.
pub(super) struct Umem {
    map: Mapping,
    pub(super) shift: u32,
    pub(super) buffers: u32,
    /// True if it is in reserved huge pages.
    pub(super) huge: bool,
}

impl Umem {
    /// Registers `buffers` new buffers with the socket.
    pub(super) fn new(socket: &OwnedFd, buffers: u32, shift: u32) -> io::Result<Self> {
        let (map, huge) = Mapping::anonymous((buffers as usize) << shift)?;
        let request = libc::xdp_umem_reg {
            addr: map.at(0, 0).as_ptr() as u64,
            len: u64::from(buffers) << shift,
            chunk_size: 1 << shift,
            headroom: 0,
            flags: 0,
            tx_metadata_len: 0,
        };
        // SAFETY: the kernel reads the struct and pins the memory it describes, all of it in the mapping. The kernel
        // keeps the pages itself, and writes only to them.
        check(unsafe {
            libc::setsockopt(
                socket.as_raw_fd(),
                libc::SOL_XDP,
                libc::XDP_UMEM_REG,
                std::ptr::from_ref(&request).cast(),
                size_of::<libc::xdp_umem_reg>() as u32,
            )
        })?;
        Ok(Self { map, shift, buffers, huge })
    }

    /// Size in bytes.
    pub(super) fn len(&self) -> usize {
        (self.buffers as usize) << self.shift
    }

    /// The address of the first of `len` bytes at `address`, if all are within one buffer.
    #[inline]
    pub(super) fn at(&self, address: u64, len: u32) -> Option<NonNull<u8>> {
        let begin = usize::try_from(address).ok()?;
        let within = begin & ((1 << self.shift) - 1);
        let fits = begin < self.len() && within + len as usize <= 1 << self.shift;
        fits.then(|| self.map.at(begin, len as usize))
    }

    /// The start of the buffer that contains `address`.
    #[inline]
    pub(super) fn buffer(&self, address: u64) -> u64 {
        address >> self.shift << self.shift
    }
}
