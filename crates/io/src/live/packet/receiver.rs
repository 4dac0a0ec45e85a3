//! One AF_PACKET socket with its ring.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use ringtap_wire::LinkType;

use super::{Promiscuous, vlan};
use crate::live::counters::{Counters, Dropped};
use crate::live::description::Path;
use crate::live::frame::Frame;
use crate::live::offload::Offload;
use crate::live::sys::block_ring::{BlockRing, HEADROOM};
use crate::live::sys::socket;

/// Receives the frames of one queue.
pub(crate) struct PacketReceiver {
    pub(super) ring: BlockRing,
    pub(super) socket: OwnedFd,
    pub(super) link: LinkType,
    /// Longest part of a frame that is lent, in bytes.
    pub(super) snap: usize,
    pub(super) hardware_time: bool,
    pub(super) memory: usize,
    /// Bytes of a frame that surely fit a block.
    pub(super) whole: usize,
    pub(super) counters: Counters,
    /// Frames that the kernel has counted, dropped ones included.
    pub(super) counted: u64,
    /// Lent frames that the kernel may have dropped afterwards.
    pub(super) unhandled: u64,
    /// Whether the host supports IPv6.
    pub(super) ipv6: bool,
    pub(super) _promiscuous: Option<Arc<Promiscuous>>,
}

impl PacketReceiver {
    pub(crate) fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    #[inline]
    pub(crate) fn burst(&mut self, most: usize, each: impl FnMut(Frame<'_>)) -> usize {
        self.lend_while(most, |_| true, each)
    }

    /// As `burst`, but only frames up to the time `until_ns`.
    #[inline]
    pub(crate) fn burst_until(
        &mut self,
        until_ns: u64,
        most: usize,
        each: impl FnMut(Frame<'_>),
    ) -> usize {
        self.lend_while(most, |ring| ring.next_ns().is_none_or(|next| next <= until_ns), each)
    }

    /// Time of the next frame; `None` if no frame is visible yet.
    #[inline]
    pub(crate) fn next_ns(&mut self) -> Option<u64> {
        loop {
            let next = self.ring.next_ns();
            if next.is_some() {
                return next;
            }
            self.ring.give_back();
            if self.ring.take() == 0 {
                return None;
            }
        }
    }

    #[inline(always)]
    fn lend_while(
        &mut self,
        most: usize,
        may: impl Fn(&BlockRing) -> bool,
        mut each: impl FnMut(Frame<'_>),
    ) -> usize {
        let mut lent = 0;
        while lent < most && may(&self.ring) {
            let Some(raw) = self.ring.lend() else {
                self.ring.give_back();
                if self.ring.take() == 0 {
                    break;
                }
                continue;
            };
            let (ts_ns, original_len) = (raw.ts_ns, raw.original_len);
            let offload = raw.virtio.map_or(Offload::Done, Offload::from_virtio);
            let (data, more) = if self.link == LinkType::ETHERNET {
                self.unhandled += u64::from(vlan::may_be_dropped(&raw, self.ipv6));
                vlan::restored(raw)
            } else {
                (raw.bytes.get(HEADROOM..).unwrap_or_default(), 0)
            };
            each(Frame {
                ts_ns,
                link: self.link,
                original_len: original_len + more,
                data: data.get(..self.snap).unwrap_or(data),
                // The kernel's offsets are for the frame in the ring, without the tag.
                offload: offload.shifted(more),
            });
            lent += 1;
        }
        if self.ring.exhausted() {
            self.ring.give_back();
        }
        self.counters.received += lent as u64;
        lent
    }

    pub(crate) fn shut(&mut self) {
        // A filter that refuses all frames. The socket does not count refused frames. An error is
        // ignored: further frames show that the filter is not in place.
        let _ = socket::attach_filter(&self.socket, &[socket::accept_up_to(0)]);
    }

    /// Waits until a frame is there or `timeout` is over; returns whether a frame waits.
    pub(crate) fn wait(&mut self, timeout: Duration) -> bool {
        if self.ring.waiting() {
            return true;
        }
        match socket::poll(&self.socket, libc::POLLIN, timeout) {
            // The interface is down or gone. Clears the error, otherwise the next call does not
            // sleep.
            Ok(events) if events & libc::POLLERR != 0 => {
                socket::take_error(&self.socket);
                self.ring.waiting()
            }
            Ok(events) => events & libc::POLLIN != 0,
            Err(_) => self.ring.waiting(),
        }
    }

    pub(crate) fn counters(&mut self) -> Counters {
        let none = libc::tpacket_stats_v3 { tp_packets: 0, tp_drops: 0, tp_freeze_q_cnt: 0 };
        // The kernel resets these counters to 0 at each read.
        let new = socket::get(&self.socket, libc::SOL_PACKET, libc::PACKET_STATISTICS, none);
        if let Ok(new) = new {
            let Counters { dropped: Dropped { ring_full, .. }, freezes, .. } = &mut self.counters;
            self.counted += u64::from(new.tp_packets);
            *ring_full += u64::from(new.tp_drops);
            *freezes += u64::from(new.tp_freeze_q_cnt);
        }
        self.counters
    }

    /// Whether the kernel has counted frames that were not lent yet. They may be in a block that is
    /// not visible yet: the kernel shows a block only when it is full or its time is over.
    pub(crate) fn has_unread(&mut self) -> bool {
        let Counters { received, dropped, .. } = self.counters();
        self.counted > received + dropped.ring_full
    }

    /// Upper bound of the frames that the kernel counts as dropped and that are in this receiver's
    /// counters too. Frames dropped by a full ring are of unknown type, so all of them count if any
    /// lent frame may have been dropped.
    pub(crate) fn counted_twice(&self) -> u64 {
        match self.unhandled {
            0 => 0,
            unhandled => unhandled + self.counters.dropped.ring_full,
        }
    }

    pub(crate) fn backlog(&self) -> (usize, usize) {
        self.ring.backlog()
    }

    /// Longest frame that is not truncated for lack of room, in bytes, at least.
    pub(crate) fn longest_whole(&self) -> usize {
        self.whole
    }

    pub(crate) fn link(&self) -> LinkType {
        self.link
    }

    pub(crate) fn describe(&self) -> (Path, usize) {
        (Path::Packet { hardware_time: self.hardware_time }, self.memory)
    }
}
