//! Sending with AF_PACKET: many frames per system call, by default straight to the driver.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use super::Sent;
use crate::live::capability::Capability;
use crate::live::error::OpenError;
use crate::live::interface::Interface;
use crate::live::sys::socket;

/// Refusals in a row after which the call returns.
const MAX_REFUSALS: u32 = 64;

/// Longest sleep for room in the socket.
const ROOM: Duration = Duration::from_millis(1);

pub(super) struct PacketSender {
    socket: OwnedFd,
    sent: Sent,
}

impl PacketSender {
    pub(super) fn open(interface: &Interface, bypass: bool) -> Result<Self, OpenError> {
        let open = || {
            // Protocol 0: this socket receives nothing.
            let socket = socket::open(libc::AF_PACKET, libc::SOCK_RAW, 0)?;
            socket::bind_packet(&socket, interface.link.index, 0)?;
            socket::set(&socket, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, &i32::from(bypass))?;
            Ok(socket)
        };
        let socket = open().map_err(OpenError::at(
            "opening an AF_PACKET socket for sending",
            Capability::PACKET,
        ))?;
        Ok(Self { socket, sent: Sent::default() })
    }

    /// Sends frames until the kernel refuses too often; returns how many the kernel accepted.
    /// Returns an error only if the first frame fails for a lasting reason.
    pub(super) fn send(&mut self, frames: &[&[u8]]) -> io::Result<usize> {
        let (mut accepted, mut refusals) = (0, 0);
        while let Some(rest) = frames.get(accepted..).filter(|rest| !rest.is_empty()) {
            match socket::send_many(&self.socket, rest) {
                Ok(count) => {
                    accepted += count;
                    self.sent.accepted += count as u64;
                    refusals = 0;
                }
                Err(error) => {
                    let room = matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EINTR));
                    let temporary = room || error.raw_os_error() == Some(libc::ENOBUFS);
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

    pub(super) fn counters(&self) -> Sent {
        self.sent
    }
}
