//! Sending with AF_PACKET: many frames per system call, by default straight to the driver.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use super::options::{SendOptions, Sent};
use crate::live::capability::Capability;
use crate::live::error::OpenError;
use crate::live::interface::Interface;
use crate::live::offload::Marks;
use crate::live::sys::socket;

/// Refusals in a row after which the call returns.
const MAX_REFUSALS: u32 = 64;

/// Longest sleep for room in the socket.
const ROOM: Duration = Duration::from_millis(1);

pub(super) struct PacketSender {
    socket: OwnedFd,
    /// Whether each frame has a virtio header.
    marked: bool,
    sent: Sent,
}

impl PacketSender {
    pub(super) fn open(interface: &Interface, options: &SendOptions) -> Result<Self, OpenError> {
        let SendOptions { bypass, marks: marked, memory, .. } = *options;
        let open = || {
            // Protocol 0: this socket receives nothing.
            let socket = socket::open(libc::AF_PACKET, libc::SOCK_RAW, 0)?;
            socket::bind_packet(&socket, interface.link.index, 0)?;
            socket::set(&socket, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, &i32::from(bypass))?;
            if marked {
                socket::set(&socket, libc::SOL_PACKET, libc::PACKET_VNET_HDR, &1)?;
                let room = i32::try_from(memory).unwrap_or(i32::MAX);
                let set = |name| socket::set(&socket, libc::SOL_SOCKET, name, &room);
                // Beyond the system's limit if the process has the right.
                let _ = set(libc::SO_SNDBUFFORCE).or_else(|_| set(libc::SO_SNDBUF));
            }
            Ok(socket)
        };
        let socket = open().map_err(OpenError::at(
            "opening an AF_PACKET socket for sending",
            Capability::PACKET,
        ))?;
        Ok(Self { socket, marked, sent: Sent::default() })
    }

    /// Whether frames may have marks.
    pub(super) fn takes_marks(&self) -> bool {
        self.marked
    }

    /// Sends frames until the kernel refuses too often; returns how many the kernel accepted.
    /// Returns an error only if the first frame fails for a lasting reason, or is a super-frame with
    /// `ENOBUFS`: then the device's queue is full or the interface does not take its kind.
    pub(super) fn send<'a>(
        &mut self,
        frames: impl ExactSizeIterator<Item = (Marks, &'a [u8])> + Clone,
    ) -> io::Result<usize> {
        let (mut accepted, mut refusals) = (0, 0);
        while accepted < frames.len() {
            let rest = frames.clone().skip(accepted);
            let first = rest.clone().next().is_some_and(|(marks, _)| marks.is_super_frame());
            match self.send_some(rest) {
                Ok(count) => {
                    accepted += count;
                    self.sent.accepted += count as u64;
                    refusals = 0;
                }
                Err(error) => {
                    let room = matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EINTR));
                    let full = error.raw_os_error() == Some(libc::ENOBUFS);
                    let temporary = room || full && !first;
                    if !temporary && accepted == 0 {
                        return Err(error);
                    }
                    self.sent.refused += u64::from(temporary);
                    refusals += 1;
                    if !temporary || refusals == MAX_REFUSALS {
                        break;
                    }
                    if room {
                        let _ = socket::poll(&self.socket, libc::POLLOUT, ROOM);
                    } else {
                        // The device's queue is full: the thread that drains it may need this core.
                        std::thread::yield_now();
                    }
                }
            }
        }
        Ok(accepted)
    }

    fn send_some<'a>(&self, frames: impl Iterator<Item = (Marks, &'a [u8])>) -> io::Result<usize> {
        if !self.marked {
            return socket::send_many(&self.socket, frames.map(|(_, frame)| [&[][..], frame]));
        }
        let mut headers = [Marks::default(); socket::SEND_MOST];
        let mut bodies = [&[][..]; socket::SEND_MOST];
        let mut count = 0;
        for ((marks, frame), (header, body)) in frames.zip(headers.iter_mut().zip(&mut bodies)) {
            (*header, *body) = (marks, frame);
            count += 1;
        }
        let parts = headers.iter().zip(bodies).take(count);
        socket::send_many(&self.socket, parts.map(|(header, body)| [&header.bytes()[..], body]))
    }

    pub(super) fn counters(&self) -> Sent {
        self.sent
    }
}
