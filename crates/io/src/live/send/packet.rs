//! Sending by AF_PACKET: many frames a system call, straight to the driver unless told otherwise.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use super::Sent;
use crate::live::capability::Capability;
use crate::live::error::OpenError;
use crate::live::interface::Interface;
use crate::live::sys::socket;

/// So often in a row a frame is refused before the caller hears of it.
const PATIENCE: u32 = 64;

/// One sleep for room in the socket.
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
        let socket = open()
            .map_err(OpenError::at("opening an AF_PACKET socket to send", Capability::PACKET))?;
        Ok(Self { socket, sent: Sent::default() })
    }

    /// Sends what the kernel takes; an error is that of the first frame.
    pub(super) fn send(&mut self, frames: &[&[u8]]) -> io::Result<usize> {
        let (mut taken, mut refusals) = (0, 0);
        while let Some(rest) = frames.get(taken..).filter(|rest| !rest.is_empty()) {
            match socket::send_many(&self.socket, rest) {
                Ok(count) => {
                    taken += count;
                    self.sent.accepted += count as u64;
                    refusals = 0;
                }
                Err(error) => {
                    let room = matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EINTR));
                    let passes = room || error.raw_os_error() == Some(libc::ENOBUFS);
                    if !passes && taken == 0 {
                        return Err(error);
                    }
                    self.sent.refused += u64::from(passes);
                    refusals += 1;
                    if !passes || refusals == PATIENCE {
                        break;
                    }
                    if room {
                        let _ = socket::poll(&self.socket, libc::POLLOUT, ROOM);
                    } else {
                        // The device was full: whoever empties it may need this core.
                        std::thread::yield_now();
                    }
                }
            }
        }
        Ok(taken)
    }

    pub(super) fn counters(&self) -> Sent {
        self.sent
    }
}
