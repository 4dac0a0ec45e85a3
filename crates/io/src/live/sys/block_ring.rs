//! The ring of TPACKET_V3: blocks that the kernel fills and hands over whole.
//!
//! ```text
//!  block 0             block 1 (held)                      block 2
//!  | status: kernel |  | status: user | frame | frame … |  | status: kernel |  …
//!    kernel fills        lent in place, one by one     └ then status: kernel
//! ```
//!
//! Invariants: the memory of a block is accessed only between reading its status as the user's (Acquire) and setting it
//! to the kernel's (Release); the kernel does the reverse. One block is held at a time. Offsets from the kernel are
//! checked against the block.

use std::io;
use std::os::fd::OwnedFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use super::mapping::Mapping;
use crate::live::offload::VIRTIO;

/// Bytes before each frame that belong to it: space for a VLAN tag.
pub(crate) const HEADROOM: usize = 4;

/// Offsets of a block's status, its number of frames and the offset of the first frame.
const STATUS: usize = 8;
const FRAMES: usize = 12;
const FIRST: usize = 16;

/// A frame in a held block.
pub(crate) struct RawFrame<'a> {
    /// [`HEADROOM`] bytes, and then the captured bytes.
    pub(crate) bytes: &'a mut [u8],
    /// Bytes on the wire, without a removed tag.
    pub(crate) original_len: u32,
    /// Time of capture.
    pub(crate) ts_ns: u64,
    /// `TP_STATUS_…`.
    pub(crate) status: u32,
    /// The removed tag, if the status has one.
    pub(crate) tag: u16,
    /// Its type, if the status has one.
    pub(crate) tag_type: u16,
    /// The virtio header before the frame, in a ring that has one.
    pub(crate) virtio: Option<[u8; VIRTIO]>,
}

#[inline]
fn time_ns(header: &libc::tpacket3_hdr) -> u64 {
    u64::from(header.tp_sec) * 1_000_000_000 + u64::from(header.tp_nsec)
}

pub(crate) struct BlockRing {
    map: Mapping,
    block_size: usize,
    blocks: usize,
    /// Bytes before each frame that this side may use: those of the tag, or of the virtio header, which ends at the
    /// frame.
    room: usize,
    /// The held block, or the next one.
    current: usize,
    /// Frames of the held block that were not lent yet; `None` if no block is held.
    left: Option<u32>,
    /// Offset of the next frame in the block.
    at: usize,
}

impl BlockRing {
    /// Maps the ring of `socket`. `virtio`: frames have virtio headers.
    pub(crate) fn new(
        socket: &OwnedFd,
        block_size: usize,
        blocks: usize,
        virtio: bool,
    ) -> io::Result<Self> {
        let room = if virtio { VIRTIO.max(HEADROOM) } else { HEADROOM };
        let map = Mapping::shared(socket, block_size * blocks, 0)?;
        Ok(Self { map, block_size, blocks, room, current: 0, left: None, at: 0 })
    }

    /// Returns true if there are frames to lend.
    #[inline]
    pub(crate) fn waiting(&self) -> bool {
        self.left.is_some() || self.is_ours()
    }

    /// Returns true if the current block belongs to this side. The Acquire load pairs with the kernel's write barrier
    /// before it sets the status: the block's contents are visible.
    #[inline]
    fn is_ours(&self) -> bool {
        self.status().load(Ordering::Acquire) & libc::TP_STATUS_USER != 0
    }

    #[inline]
    fn status(&self) -> &AtomicU32 {
        self.status_of(self.current)
    }

    #[inline]
    fn status_of(&self, block: usize) -> &AtomicU32 {
        let at = self.map.at(block * self.block_size + STATUS, 4);
        // SAFETY: aligned, because blocks consist of pages; mapped while `self` exists; both sides access the word as a
        // whole.
        unsafe { AtomicU32::from_ptr(at.as_ptr().cast()) }
    }

    /// The number of waiting blocks, including the held one, and the number of all blocks.
    pub(crate) fn backlog(&self) -> (usize, usize) {
        // Blocks are filled and returned in order, so the waiting ones are consecutive.
        let (mut waiting, mut end) = (0, self.blocks);
        while waiting < end {
            let middle = waiting + (end - waiting) / 2;
            let block = (self.current + middle) % self.blocks;
            if self.status_of(block).load(Ordering::Relaxed) & libc::TP_STATUS_USER != 0 {
                waiting = middle + 1;
            } else {
                end = middle;
            }
        }
        (waiting, self.blocks)
    }

    /// Takes the next block if it is filled and none is held. Returns the number of frames left in the held block; 0
    /// without one.
    #[inline]
    pub(crate) fn take(&mut self) -> u32 {
        if self.left.is_none() && self.is_ours() {
            self.left = Some(self.word(FRAMES));
            self.at = self.word(FIRST) as usize;
        }
        self.left.unwrap_or(0)
    }

    /// Lends the next frame of the held block. `None`: no frame is left, or the rest of the block is invalid, and
    /// [`BlockRing::give_back`] must follow.
    #[inline]
    pub(crate) fn lend(&mut self) -> Option<RawFrame<'_>> {
        let (start, left) = self.next()?;
        let at = self.at;
        // SAFETY: the header is aligned and within the held block (`next` checks it), consists of integers, and the
        // kernel does not write to a held block.
        let header = unsafe { start.cast::<libc::tpacket3_hdr>().as_ref() };
        let begin = usize::from(header.tp_mac);
        let end = begin + header.tp_snaplen as usize;
        if begin < size_of::<libc::tpacket3_hdr>() + self.room || end > self.block_size - at {
            return None;
        }
        let virtio = (self.room >= VIRTIO).then(|| {
            // SAFETY: the bytes lie between the header and the frame (checked), the kernel has written them (a virtio
            // header comes right before the frame), and any bytes are valid. No reference to them exists yet.
            unsafe { start.add(begin - VIRTIO).cast::<[u8; VIRTIO]>().read() }
        });
        // The last frame has no next one.
        self.at = at + header.tp_next_offset as usize;
        self.left = Some(left - 1);
        let len = end - begin + HEADROOM;
        let frame = RawFrame {
            // SAFETY: the range lies within the held block and behind the header, both checked. The `&mut self` of this
            // call is borrowed as long as the frame, so there is no other reference to it, and the kernel does not
            // access a held block.
            bytes: unsafe {
                std::slice::from_raw_parts_mut(start.as_ptr().add(begin - HEADROOM), len)
            },
            original_len: header.tp_len,
            ts_ns: time_ns(header),
            status: header.tp_status,
            tag: header.hv1.tp_vlan_tci as u16,
            tag_type: header.hv1.tp_vlan_tpid,
            virtio,
        };
        Some(frame)
    }

    /// The time of the next frame of the held block. `None`: no frame is left, or the rest of the block is invalid.
    #[inline]
    pub(crate) fn next_ns(&self) -> Option<u64> {
        let (start, _) = self.next()?;
        // SAFETY: as in `lend`.
        let header = unsafe { start.cast::<libc::tpacket3_hdr>().as_ref() };
        Some(time_ns(header))
    }

    /// The start of the next frame of the held block, with space for its header and aligned for it, and the number of
    /// frames left, including this one.
    #[inline]
    fn next(&self) -> Option<(NonNull<u8>, u32)> {
        let left = self.left.filter(|&left| left > 0)?;
        let end = self.at.checked_add(size_of::<libc::tpacket3_hdr>())?;
        if end > self.block_size || !self.at.is_multiple_of(8) {
            return None;
        }
        // Blocks consist of pages, so an offset aligned in a block is an aligned address.
        Some((self.map.at(self.current * self.block_size + self.at, 0), left))
    }

    /// Returns true if a block is held and all of its frames were lent.
    #[inline]
    pub(crate) fn exhausted(&self) -> bool {
        self.left == Some(0)
    }

    /// Returns the held block to the kernel, if one is held.
    #[inline]
    pub(crate) fn give_back(&mut self) {
        if self.left.take().is_some() {
            // Pairs with the kernel's read of the status before it fills the block again: the last access to the block
            // comes before.
            self.status().store(libc::TP_STATUS_KERNEL, Ordering::Release);
            self.current = (self.current + 1) % self.blocks;
        }
    }

    /// A word of the current block's header; the block must belong to this side.
    #[inline]
    fn word(&self, offset: usize) -> u32 {
        let at = self.map.at(self.current * self.block_size + offset, 4);
        // SAFETY: aligned and mapped as the status is; the kernel wrote it before it released the block.
        unsafe { at.cast::<u32>().read() }
    }
}
