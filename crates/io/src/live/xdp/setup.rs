//! Opening: the program, and a socket for each receive queue.
//!
//! Invariant: a socket is in the program's map only when it can receive; until then the host has the
//! frames of its queue.

use std::ffi::c_int;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use super::XdpReceiver;
use super::program::Attachment;
use crate::live::capability::Capability;
use crate::live::error::OpenError;
use crate::live::interface::Interface;
use crate::live::notice::Notice;
use crate::live::offload::Offload;
use crate::live::options::Options;
use crate::live::packet::Promiscuous;
use crate::live::queue;
use crate::live::sys::socket;
use crate::live::sys::xsk_receive::XskReceive;

/// Buffers of half a page hold frames of the usual MTU, larger ones need a page.
const SHIFTS: [u32; 2] = [11, 12];
/// What the kernel keeps free before a frame in its buffer.
const HEADROOM: u32 = 256;
/// Ethernet header, and two VLAN tags.
const HEADERS: u32 = 14 + 2 * 4;
/// The fewest buffers of a queue; and the most, as the kernel counts bytes of rings in 32 bits.
const BUFFERS_LEAST: usize = 64;
const BUFFERS_MOST: usize = 1 << 24;

/// Frames that the driver takes in one go when we make it work.
const BUSY_POLL_BUDGET: c_int = 64;

/// Opens all queues.
pub(crate) fn open(
    interface: &Interface,
    options: &Options,
    notices: &mut Vec<Notice>,
) -> Result<Vec<XdpReceiver>, OpenError> {
    if !matches!(interface.link.hardware, libc::ARPHRD_ETHER | libc::ARPHRD_LOOPBACK) {
        return Err(OpenError::UnsupportedLink {
            name: interface.name().to_owned(),
            hardware: interface.link.hardware,
            method: "AF_XDP",
        });
    }
    let queues = interface.receive_queues();
    if let Some(asked) = options.queues.map(u32::from).filter(|&asked| asked != queues) {
        let name = interface.name().to_owned();
        return Err(OpenError::Queues { name, asked, there: queues });
    }
    if options.offload && interface.takes_tags() {
        notices.push(Notice::TagsLost { interface: interface.name().to_owned() });
    }
    let shift = shift(interface, notices);
    let buffers = buffers(options.memory, queues as usize, shift)?;
    // First, for it needs the least: without that capability nothing else is worth trying.
    let sockets = (0..queues).map(|_| socket::open(libc::AF_XDP, libc::SOCK_RAW, 0));
    let sockets: Vec<OwnedFd> = sockets
        .collect::<io::Result<_>>()
        .map_err(OpenError::at("opening an AF_XDP socket", Capability::XDP))?;
    let promiscuous = match options.promiscuous {
        true if interface.link.hardware == libc::ARPHRD_ETHER => {
            Some(Arc::new(Promiscuous::new(interface)?))
        }
        _ => None,
    };
    let attachment = Arc::new(Attachment::new(interface, queues, options.attach, notices)?);
    let mut receivers = Vec::with_capacity(sockets.len());
    for (socket, queue) in sockets.into_iter().zip(0..) {
        let rings = XskReceive::new(&socket, buffers, shift)
            .map_err(OpenError::memory("making buffers for AF_XDP", (buffers as usize) << shift))?;
        let zero_copy = options.zero_copy && attachment.native;
        let zero_copy = queue::bind(&socket, interface, queue, zero_copy)?;
        let busy_poll = options.busy_poll.is_some_and(|time| {
            let allowed = poll_busily(&socket, time);
            if let (Err(error), 0) = (&allowed, queue) {
                notices.push(Notice::NoBusyPoll { reason: error.to_string() });
            }
            allowed.is_ok()
        });
        receivers.push(XdpReceiver {
            rings,
            socket,
            snap: options.snap.map_or(usize::MAX, |snap| snap as usize),
            zero_copy,
            busy_poll,
            offload: if options.offload { Offload::Unknown } else { Offload::Done },
            received: 0,
            attachment: Arc::clone(&attachment),
            _promiscuous: promiscuous.clone(),
        });
    }
    for (receiver, queue) in receivers.iter().zip(0..) {
        attachment
            .give(queue, &receiver.socket)
            .map_err(OpenError::at("giving a queue to its socket", Capability::XDP))?;
    }
    Ok(receivers)
}

/// The size of a buffer for the frames of this interface.
fn shift(interface: &Interface, notices: &mut Vec<Notice>) -> u32 {
    let longest = interface.link.mtu.saturating_add(HEADERS);
    let [half, page] = SHIFTS;
    if longest <= (1 << half) - HEADROOM {
        return half;
    }
    let taken = (1 << page) - HEADROOM;
    if longest > taken {
        let interface = interface.name().to_owned();
        notices.push(Notice::LongFrames { interface, longest, taken });
    }
    page
}

/// How many buffers a queue has.
fn buffers(memory: usize, queues: usize, shift: u32) -> Result<u32, OpenError> {
    let each = (memory / queues) >> shift;
    if each < BUFFERS_LEAST {
        let needed = (BUFFERS_LEAST << shift) * queues;
        return Err(OpenError::TooLittleMemory { asked: memory, needed });
    }
    // The power of two that does not exceed it.
    Ok(1 << each.min(BUFFERS_MOST).ilog2())
}

fn poll_busily(socket: &OwnedFd, time: Duration) -> io::Result<()> {
    let micros = c_int::try_from(time.as_micros()).unwrap_or(c_int::MAX);
    socket::set(socket, libc::SOL_SOCKET, libc::SO_PREFER_BUSY_POLL, &1)?;
    socket::set(socket, libc::SOL_SOCKET, libc::SO_BUSY_POLL, &micros)?;
    socket::set(socket, libc::SOL_SOCKET, libc::SO_BUSY_POLL_BUDGET, &BUSY_POLL_BUDGET)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_a_power_of_two_within_the_memory() {
        assert_eq!(buffers(64 << 20, 1, 11).unwrap(), 32768);
        assert_eq!(buffers(64 << 20, 2, 12).unwrap(), 8192);
        assert_eq!(buffers(3_000_000, 1, 11).unwrap(), 1024);
        assert_eq!(buffers(usize::MAX, 1, 11).unwrap(), 1 << 24);
    }

    #[test]
    fn too_little_is_an_error_that_says_how_much_is_needed() {
        let error = buffers(100_000, 2, 11).unwrap_err();
        assert!(error.to_string().contains("262144"), "{error}");
    }
}
