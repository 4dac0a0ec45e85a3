//! The four rings of an AF_XDP socket, and the memory that frames lie in (UMEM).
//!
//! ```text
//!            fill: empty buffers ──▶            tx: frames to send ──▶
//!   we ─────────────────────────▶ kernel   we ─────────────────────────▶ kernel
//!      ◀── rx: received frames                ◀── completion: buffers sent from
//! ```
//!
//! A ring has one producer and one consumer, each with an index that only it writes; indices run on
//! and wrap at 2³².
//!
//! Invariant: a buffer is in one place: in one of the rings (then it is the kernel's), or with us.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use super::mapping::Mapping;
use super::{check, socket};

/// What an entry of a ring is: an address in UMEM (fill, completion) or a descriptor (rx, tx).
///
/// # Safety
/// Any bytes are a value of the type, and it is as large and as aligned as the kernel's.
pub(super) unsafe trait Entry: Copy {}

// SAFETY: `__u64`.
unsafe impl Entry for u64 {}
// SAFETY: `struct xdp_desc`, of integers.
unsafe impl Entry for libc::xdp_desc {}

/// A ring that is shared with the kernel, seen from either end.
pub(super) struct Ring<T> {
    _map: Mapping,
    producer: NonNull<AtomicU32>,
    consumer: NonNull<AtomicU32>,
    flags: NonNull<AtomicU32>,
    entries: NonNull<T>,
    mask: u32,
    /// Our own index.
    own: u32,
    /// The kernel's index as last seen.
    theirs: u32,
}

// SAFETY: the pointers go into the mapping that the ring owns, which is not tied to a thread.
unsafe impl<T: Entry> Send for Ring<T> {}

/// Which ring, as socket options and offsets name it.
#[derive(Clone, Copy)]
pub(super) enum Which {
    Fill,
    Completion,
    Rx,
    Tx,
}

impl<T: Entry> Ring<T> {
    /// Gives the socket a ring of `size` entries, a power of two, and maps it.
    pub(super) fn new(socket: &OwnedFd, which: Which, size: u32) -> io::Result<Self> {
        assert!(size.is_power_of_two());
        let option = match which {
            Which::Fill => libc::XDP_UMEM_FILL_RING,
            Which::Completion => libc::XDP_UMEM_COMPLETION_RING,
            Which::Rx => libc::XDP_RX_RING,
            Which::Tx => libc::XDP_TX_RING,
        };
        socket::set(socket, libc::SOL_XDP, option, &size)?;
        // SAFETY: all zeros are a value of this struct of integers.
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

    /// Whether the kernel wants to be told by a system call that there is work.
    #[inline]
    pub(super) fn wants_waking(&self) -> bool {
        // SAFETY: an aligned word in the mapping, which both sides access as a whole.
        let flags = unsafe { self.flags.as_ref() };
        flags.load(Ordering::Relaxed) & libc::XDP_RING_NEED_WAKEUP != 0
    }

    /// For the consumer: how many entries wait.
    #[inline]
    pub(super) fn waiting(&mut self) -> u32 {
        if self.theirs == self.own {
            // SAFETY: as in `wants_waking`. Acquire pairs with the kernel's Release of the index
            // after it wrote the entries and the frames.
            self.theirs = unsafe { self.producer.as_ref() }.load(Ordering::Acquire);
        }
        self.theirs.wrapping_sub(self.own)
    }

    /// For the consumer: how many entries wait this moment, and how many can.
    pub(super) fn backlog(&self) -> (usize, usize) {
        // SAFETY: as in `wants_waking`.
        let theirs = unsafe { self.producer.as_ref() }.load(Ordering::Relaxed);
        (theirs.wrapping_sub(self.own) as usize, self.mask as usize + 1)
    }

    /// For the consumer: the entry `offset` behind the first that waits; fewer than wait.
    #[inline]
    pub(super) fn look(&self, offset: u32) -> T {
        let at = self.own.wrapping_add(offset) & self.mask;
        // SAFETY: the mask keeps the place within the entries, and the kernel writes to none that
        // wait for us.
        unsafe { self.entries.add(at as usize).read() }
    }

    /// For the consumer: is done with `count` entries.
    #[inline]
    pub(super) fn done(&mut self, count: u32) {
        self.own = self.own.wrapping_add(count);
        // SAFETY: as in `wants_waking`. Release pairs with the kernel's Acquire before it writes
        // there again.
        unsafe { self.consumer.as_ref() }.store(self.own, Ordering::Release);
    }

    /// For the producer: how many entries the kernel has not taken yet.
    #[inline]
    pub(super) fn pending(&mut self) -> u32 {
        // SAFETY: as in `wants_waking`. Acquire pairs with the kernel's Release after it read the
        // entries.
        self.theirs = unsafe { self.consumer.as_ref() }.load(Ordering::Acquire);
        self.own.wrapping_sub(self.theirs)
    }

    /// For the producer: writes the entry `offset` behind the last one. The ring has room for it:
    /// no more buffers exist than it has entries.
    #[inline]
    pub(super) fn put(&mut self, offset: u32, entry: T) {
        let at = self.own.wrapping_add(offset) & self.mask;
        // SAFETY: the mask keeps the place within the entries; the kernel reads it only once the
        // index says so.
        unsafe { self.entries.add(at as usize).write(entry) };
    }

    /// For the producer: hands over the `count` entries written.
    #[inline]
    pub(super) fn submit(&mut self, count: u32) {
        self.own = self.own.wrapping_add(count);
        // SAFETY: as in `wants_waking`. Release pairs with the kernel's Acquire: it sees the entries
        // and, if it is to send, the frames.
        unsafe { self.producer.as_ref() }.store(self.own, Ordering::Release);
    }
}

/// Memory for frames, in buffers of `1 << shift` bytes.
pub(super) struct Umem {
    map: Mapping,
    pub(super) shift: u32,
    pub(super) buffers: u32,
    /// Whether it lies in reserved huge pages.
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
        // SAFETY: the kernel reads the struct and pins the memory that it tells of, all of which is
        // in the mapping. It holds on to the pages itself, and writes into them alone.
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

    /// How many bytes there are.
    pub(super) fn len(&self) -> usize {
        (self.buffers as usize) << self.shift
    }

    /// The first of the `len` bytes at `address`, if that is within one buffer.
    #[inline]
    pub(super) fn at(&self, address: u64, len: u32) -> Option<NonNull<u8>> {
        let begin = usize::try_from(address).ok()?;
        let within = begin & ((1 << self.shift) - 1);
        let fits = begin < self.len() && within + len as usize <= 1 << self.shift;
        fits.then(|| self.map.at(begin, len as usize))
    }

    /// The address of the buffer that `address` lies in.
    #[inline]
    pub(super) fn buffer(&self, address: u64) -> u64 {
        address >> self.shift << self.shift
    }
}
