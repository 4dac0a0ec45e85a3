//! One AF_XDP socket with its rings.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use ringtap_wire::LinkType;

use super::program::Attachment;
use crate::live::counters::{Counters, Dropped};
use crate::live::description::Path;
use crate::live::frame::Frame;
use crate::live::offload::Offload;
use crate::live::packet::Promiscuous;
use crate::live::send::XdpSender;
use crate::live::sys::socket;
use crate::live::sys::xsk_receive::XskReceive;

/// Receives the frames of one queue.
pub(crate) struct XdpReceiver {
    pub(super) rings: XskReceive,
    pub(super) socket: Arc<OwnedFd>,
    pub(super) snap: usize,
    /// Longest frame that fits a buffer, in bytes.
    pub(super) longest: usize,
    pub(super) zero_copy: bool,
    pub(super) busy_poll: bool,
    /// Offload of every frame: `Unknown`, or `Done` if the caller did not request offload data.
    pub(super) offload: Offload,
    pub(super) received: u64,
    pub(super) attachment: Arc<Attachment>,
    /// Sends on the same queue, if that was requested.
    pub(super) sender: Option<Box<XdpSender>>,
    pub(super) _promiscuous: Option<Arc<Promiscuous>>,
}

impl XdpReceiver {
    #[inline]
    pub(crate) fn burst(&mut self, most: usize, mut each: impl FnMut(Frame<'_>)) -> usize {
        if self.rings.waiting() == 0 {
            if self.busy_poll {
                self.rings.poll_device(&self.socket);
            } else {
                self.rings.wake(&self.socket);
            }
            if self.rings.waiting() == 0 {
                return 0;
            }
        }
        let ts_ns = ringtap_base::now_ns();
        let most = u32::try_from(most).unwrap_or(u32::MAX);
        let lent = self.rings.burst(most, |data| {
            each(Frame {
                ts_ns,
                link: LinkType::ETHERNET,
                original_len: data.len() as u32,
                data: data.get(..self.snap).unwrap_or(data),
                offload: self.offload,
            });
        });
        self.rings.wake(&self.socket);
        self.received += u64::from(lent);
        lent as usize
    }

    pub(crate) fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Whether a frame waits.
    pub(crate) fn waits(&mut self) -> bool {
        self.rings.waiting() > 0
    }

    pub(crate) fn take_sender(&mut self) -> Option<Box<XdpSender>> {
        self.sender.take()
    }

    pub(crate) fn shut(&mut self, queue: u32) {
        self.attachment.remove_socket(queue);
    }

    /// Waits until a frame is there or `timeout` is over; returns whether a frame waits.
    pub(crate) fn wait(&mut self, timeout: Duration) -> bool {
        if self.rings.waiting() > 0 {
            return true;
        }
        match socket::poll(&self.socket, libc::POLLIN, timeout) {
            // The interface is gone. Clears the error, otherwise the next call does not sleep.
            Ok(events) if events & libc::POLLERR != 0 => {
                socket::take_error(&self.socket);
            }
            _ => {}
        }
        self.rings.waiting() > 0
    }

    pub(crate) fn counters(&mut self) -> Counters {
        let none = libc::xdp_statistics {
            rx_dropped: 0,
            rx_invalid_descs: 0,
            tx_invalid_descs: 0,
            rx_ring_full: 0,
            rx_fill_ring_empty_descs: 0,
            tx_ring_empty_descs: 0,
        };
        let kernel = socket::get(&self.socket, libc::SOL_XDP, libc::XDP_STATISTICS, none);
        let kernel = kernel.unwrap_or(none);
        let no_buffer = kernel.rx_fill_ring_empty_descs;
        Counters {
            received: self.received,
            dropped: Dropped {
                no_buffer,
                rx_ring_full: kernel.rx_ring_full,
                // When the kernel copies, it also counts frames without a buffer here.
                too_long: kernel.rx_dropped.saturating_sub(no_buffer),
                invalid: kernel.rx_invalid_descs,
                ..Dropped::default()
            },
            freezes: 0,
        }
    }

    pub(crate) fn backlog(&self) -> (usize, usize) {
        self.rings.backlog()
    }

    /// Longest frame that is not dropped for its length, in bytes.
    pub(crate) fn longest(&self) -> usize {
        self.longest
    }

    pub(crate) fn describe(&self) -> (Path, usize) {
        let (memory, huge_pages) = self.rings.memory();
        let native = self.attachment.native;
        (Path::Xdp { native, zero_copy: self.zero_copy, huge_pages }, memory)
    }
}
