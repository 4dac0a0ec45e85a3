//! Ethernet frames of a channel by AF_XDP, instead of a packet socket.
//!
//! ```text
//!  | to 6 | from 6 | EtherType 2 | NDN frame | padding |
//! ```
//!
//! The main thread receives from all queues and sends on the first one. A packet socket that
//! receives nothing keeps the interface in the multicast group.

use std::fmt;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;

use ringtap_io::live::{Options, Port, PortSender, Receiver};

use crate::faces::error::OpenError;
use crate::faces::remote::Mac;
use crate::faces::sys::{self, Address, BURST, Inbox, Interface, OutgoingMessage};

/// Length of the Ethernet header, in bytes.
const HEADER: usize = 14;

/// Memory for received frames of all queues, in bytes.
const MEMORY: usize = 16 << 20;

/// An interface opened for AF_XDP.
pub(crate) struct XdpPort {
    /// Joins the group.
    pub(crate) membership: OwnedFd,
    /// The interface; its MTU is limited by the buffers.
    pub(crate) interface: Interface,
    pub(crate) input: XdpInput,
    pub(crate) output: XdpOutput,
}

/// The receiving half.
pub(crate) struct XdpInput {
    /// One for each queue.
    receivers: Vec<Receiver>,
    /// The queue that is read next.
    next: usize,
    /// Whether the latest call received nothing.
    was_empty: bool,
    own: Mac,
    /// The address of a neighbour, without its MAC.
    interface: u32,
    ethertype: u16,
}

/// The sending half.
#[derive(Debug)]
pub(crate) struct XdpOutput {
    sender: PortSender,
    own: Mac,
    ethertype: u16,
    /// Buffer for frames with their headers.
    bytes: Vec<u8>,
}

impl XdpPort {
    pub(crate) fn open(name: &str, ethertype: u16) -> Result<Self, OpenError> {
        let options = Options { memory: MEMORY, promiscuous: false, ..Options::default() };
        let Port { receivers, sender } = Port::open(name, ethertype, &options)
            .map_err(|source| OpenError::Xdp { interface: name.into(), source })?;
        // Protocol 0: it receives nothing.
        let (membership, mut interface) = sys::packet_socket(name, 0, Mac::NDN_GROUP)
            .map_err(|source| OpenError::Ethernet { interface: name.into(), source })?;
        interface.mtu = interface.mtu.min(sender.frame_max() - HEADER);
        let (own, index) = (interface.address, interface.index);
        let input =
            XdpInput { receivers, next: 0, was_empty: false, own, interface: index, ethertype };
        let output = XdpOutput { sender, own, ethertype, bytes: Vec::new() };
        Ok(Self { membership, interface, input, output })
    }
}

impl XdpInput {
    /// Receives up to `most` waiting frames, at most [`BURST`], without blocking; returns their
    /// number.
    pub(crate) fn receive(&mut self, inbox: &mut Inbox, most: usize) -> usize {
        let Self { receivers, next, was_empty, own, interface, ethertype } = self;
        let mut left = most.min(BURST);
        inbox.clear();
        for _ in 0..receivers.len() {
            let at = *next;
            *next = (at + 1) % receivers.len();
            left -= receivers[at].burst(left, |frame| {
                let Some((header, payload)) = frame.data.split_first_chunk::<HEADER>() else {
                    return;
                };
                let [to @ .., a, b, c, d, e, f, _, _] = *header;
                let from = Address::link(*interface, *ethertype, Mac([a, b, c, d, e, f]));
                inbox.add(from.with_kind(kind(Mac(to), *own)), payload);
            });
            if left == 0 {
                break;
            }
        }
        let is_empty = inbox.len() == 0;
        if std::mem::replace(was_empty, is_empty) && is_empty {
            // A socket that stays readable without frames has an error, such as that the interface
            // is gone; this clears it.
            receivers.iter_mut().for_each(|receiver| {
                receiver.wait(Duration::ZERO);
            });
        }
        inbox.len()
    }

    /// The sockets that are readable while frames wait.
    pub(crate) fn sockets(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.receivers.iter().filter_map(Receiver::socket)
    }

    /// Number of frames that were dropped for lack of room since the port was opened.
    pub(crate) fn drops(&mut self) -> u64 {
        self.receivers.iter_mut().map(|receiver| receiver.counters().dropped.total()).sum()
    }

    /// The mode: whether the program runs in the driver, and whether frames are copied.
    pub(crate) fn describe(&self) -> String {
        self.receivers.first().map(|first| first.describe().path.to_string()).unwrap_or_default()
    }

    /// Removes and returns warnings from opening the port.
    pub(crate) fn take_warnings(&mut self) -> Vec<String> {
        let notices = self.receivers.iter_mut().flat_map(Receiver::take_notices);
        notices.map(|notice| notice.to_string()).collect()
    }
}

impl XdpOutput {
    /// Sends up to [`BURST`] messages, without blocking; returns the number of accepted messages.
    /// An error is that of the first message.
    pub(crate) fn send(&mut self, messages: &[OutgoingMessage<'_>]) -> io::Result<usize> {
        self.bytes.clear();
        let mut ends = [0; BURST];
        for (message, end) in messages.iter().zip(&mut ends) {
            let to = message.to.ethernet().map_or(Mac::NDN_GROUP, |link| link.from);
            self.bytes.extend_from_slice(&to.0);
            self.bytes.extend_from_slice(&self.own.0);
            self.bytes.extend_from_slice(&self.ethertype.to_be_bytes());
            self.bytes.extend_from_slice(message.bytes);
            *end = self.bytes.len();
        }
        let (mut frames, mut start) = ([&[][..]; BURST], 0);
        for (frame, &end) in frames.iter_mut().zip(&ends).take(messages.len()) {
            *frame = &self.bytes[start..end];
            start = end;
        }
        match self.sender.send(&frames[..messages.len().min(BURST)])? {
            0 if !messages.is_empty() => Err(io::ErrorKind::WouldBlock.into()),
            sent => Ok(sent),
        }
    }

    /// Whether frames were accepted that the kernel has not begun to send. A further
    /// [`XdpOutput::send`] continues with them.
    pub(crate) fn has_pending(&mut self) -> bool {
        self.sender.has_pending()
    }

    /// Number of accepted frames that the device has dropped since the last call.
    pub(crate) fn take_dropped(&mut self) -> usize {
        self.sender.take_dropped() as usize
    }
}

impl fmt::Debug for XdpInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("XdpInput").field("own", &self.own).finish_non_exhaustive()
    }
}

/// Whom a frame is for, as a packet socket reports it.
fn kind(to: Mac, own: Mac) -> u8 {
    match to {
        Mac([0xff, 0xff, 0xff, 0xff, 0xff, 0xff]) => libc::PACKET_BROADCAST,
        Mac([first, ..]) if first & 1 == 1 => libc::PACKET_MULTICAST,
        to if to == own => libc::PACKET_HOST,
        _ => libc::PACKET_OTHERHOST,
    }
}
