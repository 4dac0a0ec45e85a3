//! Opens an interface for AF_XDP: the program, and a socket for each receive queue. That of the
//! first queue of a port also sends.
//!
//! Invariant: a socket is in the program's map only when it can receive. Until then the host gets
//! the frames of its queue.

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
use crate::live::port_sender::PortSender;
use crate::live::queue;
use crate::live::send::{XdpQueue, XdpSender, open_socket};
use crate::live::sys::socket;
use crate::live::sys::xsk_receive::XskReceive;

/// Buffer sizes as powers of two: half a page holds frames of the usual MTU, larger frames need a
/// page.
const SHIFTS: [u32; 2] = [11, 12];
/// Bytes that the kernel keeps free before a frame in its buffer.
const HEADROOM: u32 = 256;
/// Bytes of the Ethernet header, and of it and two VLAN tags.
const ETHERNET: u32 = 14;
const HEADERS: u32 = ETHERNET + 2 * 4;
/// Fewest buffers of a queue, and most: the kernel counts bytes of rings in 32 bits.
const BUFFERS_LEAST: usize = 64;
const BUFFERS_MOST: usize = 1 << 24;

/// Bytes of buffers for frames that a queue sends, if it does.
const SEND_MEMORY: usize = 4 << 20;

/// Most frames that the driver processes per busy poll.
const BUSY_POLL_BUDGET: c_int = 64;

/// Number of buffers for frames that a port sends, and the socket's limit for them in bytes.
const PORT_BUFFERS: u32 = 1024;
const PORT_SEND_BYTES: c_int = 8 << 20;

/// Opens all queues.
pub(crate) fn open(
    interface: &Interface,
    options: &Options,
    notices: &mut Vec<Notice>,
) -> Result<Vec<XdpReceiver>, OpenError> {
    Ok(open_queues(interface, options, None, notices)?.0)
}

/// Opens all queues for the frames of one EtherType, and the first also to send.
pub(crate) fn open_port(
    interface: &Interface,
    ethertype: u16,
    options: &Options,
    notices: &mut Vec<Notice>,
) -> Result<(Vec<XdpReceiver>, PortSender), OpenError> {
    let (receivers, sender) = open_queues(interface, options, Some(ethertype), notices)?;
    let name = interface.name().to_owned();
    Ok((receivers, sender.ok_or(OpenError::NoQueue { name, queue: 0 })?))
}

/// Opens all queues, with `port` those of a port for this EtherType.
fn open_queues(
    interface: &Interface,
    options: &Options,
    port: Option<u16>,
    notices: &mut Vec<Notice>,
) -> Result<(Vec<XdpReceiver>, Option<PortSender>), OpenError> {
    if !matches!(interface.link.hardware, libc::ARPHRD_ETHER | libc::ARPHRD_LOOPBACK) {
        return Err(OpenError::UnsupportedLink {
            name: interface.name().to_owned(),
            hardware: interface.link.hardware,
            method: "AF_XDP",
        });
    }
    let queues = interface.receive_queues();
    if let Some(requested) = options.queues.map(u32::from).filter(|&requested| requested != queues)
    {
        let name = interface.name().to_owned();
        return Err(OpenError::Queues { name, requested, available: queues });
    }
    if options.offload && interface.takes_tags() {
        notices.push(Notice::TagsLost { interface: interface.name().to_owned() });
    }
    let shift = shift(interface, notices);
    let buffers = buffers(options.memory, queues as usize, shift)?;
    // Opened first: sockets need the fewest capabilities, and without those all later steps fail
    // too.
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
    let attachment = Arc::new(Attachment::new(interface, queues, options.attach, port, notices)?);
    let (mut receivers, mut sender) = (Vec::with_capacity(sockets.len()), None);
    for (socket, queue) in sockets.into_iter().zip(0..) {
        let socket = Arc::new(socket);
        let to_send = match port {
            Some(_) if queue == 0 => PORT_BUFFERS,
            None if options.sends => (SEND_MEMORY >> shift) as u32,
            _ => 0,
        };
        // A sender of its own can be closed while the receiver goes on.
        let own = if options.sends { Some(open_socket()?) } else { None };
        let memory = ((buffers + to_send) as usize) << shift;
        let (rings, send_rings) =
            XskReceive::new(&socket, buffers, to_send, own.as_ref().unwrap_or(&socket), shift)
                .map_err(OpenError::memory("allocating AF_XDP buffers", memory))?;
        let zero_copy = options.zero_copy && attachment.native;
        let zero_copy = queue::bind(&socket, interface, queue, zero_copy)?;
        let busy_poll = options.busy_poll.is_some_and(|time| {
            let allowed = poll_busily(&socket, time);
            if let (Err(error), 0) = (&allowed, queue) {
                notices.push(Notice::NoBusyPoll { reason: error.to_string() });
            }
            allowed.is_ok()
        });
        let mut own_sender = None;
        match (send_rings, own) {
            (Some(rings), Some(own)) => {
                let shared = XdpSender::shared(interface, queue, &socket, own, rings, shift)?;
                own_sender = Some(Box::new(shared));
            }
            (Some(rings), None) => {
                // Without the right to a larger limit, the system's applies.
                let _ =
                    socket::set(&socket, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, &PORT_SEND_BYTES);
                let queue = XdpQueue::new(rings, Arc::clone(&socket), zero_copy);
                sender = Some(PortSender::new(queue, longest_of_port(interface, shift)));
            }
            (None, _) => {}
        }
        receivers.push(XdpReceiver {
            rings,
            socket,
            snap: options.snap.map_or(usize::MAX, |snap| snap as usize),
            longest: room(shift),
            zero_copy,
            busy_poll,
            offload: if options.offload { Offload::Unknown } else { Offload::Done },
            received: 0,
            attachment: Arc::clone(&attachment),
            sender: own_sender,
            _promiscuous: promiscuous.clone(),
        });
    }
    for (receiver, queue) in receivers.iter().zip(0..) {
        attachment.set_socket(queue, &receiver.socket).map_err(OpenError::at(
            "adding an AF_XDP socket to the program's map",
            Capability::XDP,
        ))?;
    }
    Ok((receivers, sender))
}

/// The longest frame, in bytes, that the interface sends and that fits into a receive buffer.
fn longest_of_port(interface: &Interface, shift: u32) -> usize {
    (interface.link.mtu.saturating_add(ETHERNET) as usize).min(room(shift))
}

/// Bytes of a frame that fit a buffer of this size.
fn room(shift: u32) -> usize {
    ((1 << shift) - HEADROOM) as usize
}

/// Size of a buffer for frames of this interface, as a power of two.
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

/// Number of buffers of a queue.
fn buffers(memory: usize, queues: usize, shift: u32) -> Result<u32, OpenError> {
    let each = (memory / queues) >> shift;
    if each < BUFFERS_LEAST {
        let needed = (BUFFERS_LEAST << shift) * queues;
        return Err(OpenError::TooLittleMemory { requested: memory, needed });
    }
    // The largest power of two that fits.
    Ok(1 << each.min(BUFFERS_MOST).ilog2())
}

/// Enables busy polling of the driver, each poll for up to `time`.
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
    fn too_little_memory_is_an_error_with_the_minimum() {
        let error = buffers(100_000, 2, 11).unwrap_err();
        assert!(error.to_string().contains("262144"), "{error}");
    }
}
