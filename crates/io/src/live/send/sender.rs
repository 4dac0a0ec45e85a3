//! The face that both ways of sending have.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::SendError;
use super::packet::PacketSender;
use super::xdp::XdpSender;
use crate::live::error::OpenError;
use crate::live::interface::{Interface, State};
use crate::live::options::Method;

/// The Ethernet header, and a VLAN tag, for which the kernel allows beyond the MTU.
const HEADER: usize = 14;
const TAG: usize = 4;
const TAGGED: [u8; 2] = [0x81, 0x00];

/// How a [`Sender`] sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SendOptions {
    /// By default AF_PACKET. AF_XDP sends by one hardware queue
    /// and is faster for small frames; nobody else may have an AF_XDP socket on that queue.
    pub method: Method,
    /// AF_PACKET: whether frames go straight to the driver, which is faster; true by default. They
    /// are then seen by no capture on the sending interface. Else they go the way of all others,
    /// through the queueing discipline.
    pub bypass: bool,
    /// AF_XDP: the queue.
    pub queue: u32,
    /// AF_XDP: bytes for frames on their way, rounded down to a power of two. 4 MiB by default.
    pub memory: usize,
}

impl Default for SendOptions {
    fn default() -> Self {
        Self { method: Method::Packet, bypass: true, queue: 0, memory: 4 << 20 }
    }
}

/// What became of the frames given to a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Taken by the interface.
    pub accepted: u64,
    /// AF_XDP: handed over, and not taken yet.
    pub pending: u64,
    /// AF_XDP: dropped by the interface; these are gone.
    pub dropped: u64,
    /// AF_XDP: thrown away by [`Sender::discard`] or [`Sender::close`] before the interface took them.
    pub discarded: u64,
    /// How often the kernel had no room. The frame was tried again or not said to be sent.
    pub refused: u64,
}

/// Sends frames by an interface with Ethernet headers.
pub struct Sender {
    kind: Kind,
    interface: Interface,
    /// The longest frame without a tag, and with one.
    most: [usize; 2],
}

enum Kind {
    Packet(PacketSender),
    Xdp(Box<XdpSender>),
}

impl Sender {
    /// Opens the interface called `name` for sending.
    ///
    /// # Errors
    /// As [`open`](crate::live::open).
    pub fn open(name: &str, options: &SendOptions) -> Result<Self, OpenError> {
        let interface = Interface::open(name)?;
        let hardware = interface.link.hardware;
        if !matches!(hardware, libc::ARPHRD_ETHER | libc::ARPHRD_LOOPBACK) {
            let name = name.to_owned();
            return Err(OpenError::UnsupportedLink { name, hardware, method: "sending" });
        }
        let plain = interface.link.mtu as usize + HEADER;
        let tag = if hardware == libc::ARPHRD_ETHER { TAG } else { 0 };
        let most = [plain, plain + tag];
        let (kind, most) = match options.method {
            Method::Packet => (Kind::Packet(PacketSender::open(&interface, options.bypass)?), most),
            Method::Xdp => {
                let sender = XdpSender::open(&interface, options, plain + tag)?;
                let most = most.map(|most| most.min(sender.frame_most()));
                (Kind::Xdp(Box::new(sender)), most)
            }
            Method::Dpdk => return Err(OpenError::NotSent),
        };
        Ok(Self { kind, interface, most })
    }

    /// Sends `frames` in order, in large batches if there are many; returns how many were accepted
    /// (AF_XDP: handed over), from the first on. Fewer than there are: the kernel has no room after
    /// some short waiting, or the next frame's length is wrong.
    ///
    /// # Errors
    /// If the first frame cannot be sent, and would not be at another time.
    pub fn send(&mut self, frames: &[&[u8]]) -> Result<usize, SendError> {
        let good = frames.iter().take_while(|frame| self.fits(frame)).count();
        if let (0, Some(first)) = (good, frames.first()) {
            let (least, most) = self.lengths(first).into_inner();
            return Err(SendError::Length { len: first.len(), least, most });
        }
        let frames = frames.get(..good).unwrap_or_default();
        let sent = match &mut self.kind {
            Kind::Packet(one) => one.send(frames),
            Kind::Xdp(one) => one.send(frames),
        };
        sent.map_err(|error| self.explained(error))
    }

    /// Whether the interface takes a frame of this length.
    pub fn fits(&self, frame: &[u8]) -> bool {
        self.lengths(frame).contains(&frame.len())
    }

    /// The lengths that the interface takes of such a frame: one with a VLAN tag may have 4 bytes more.
    pub fn lengths(&self, frame: &[u8]) -> RangeInclusive<usize> {
        let [plain, tagged] = self.most;
        HEADER..=if frame.get(12..14) == Some(&TAGGED) { tagged } else { plain }
    }

    /// Waits until nothing is pending, at most for `timeout`; whether that is so. AF_PACKET has
    /// nothing pending.
    ///
    /// # Errors
    /// If what is pending cannot be sent any more.
    pub fn flush(&mut self, timeout: Duration) -> Result<bool, SendError> {
        let done = match &mut self.kind {
            Kind::Packet(_) => Ok(true),
            Kind::Xdp(one) => one.flush(timeout),
        };
        done.map_err(|error| self.explained(error))
    }

    /// Throws away what is pending: none of it leaves any more. The sender can send afterwards. AF_PACKET has nothing
    /// pending. A network card that reads our memory itself may have begun with some of these frames.
    ///
    /// # Errors
    /// As [`Sender::open`]. Nothing is pending then, and nothing more can be sent.
    pub fn discard(&mut self) -> Result<(), OpenError> {
        match &mut self.kind {
            Kind::Packet(_) => Ok(()),
            Kind::Xdp(one) => one.discard(&self.interface),
        }
    }

    /// Throws away what is pending, and sends nothing more.
    pub fn close(&mut self) {
        match &mut self.kind {
            Kind::Packet(_) => {}
            Kind::Xdp(one) => one.close(),
        }
    }

    /// What became of the frames so far.
    pub fn counters(&mut self) -> Sent {
        match &mut self.kind {
            Kind::Packet(one) => one.counters(),
            Kind::Xdp(one) => one.counters(),
        }
    }

    /// How the interface is now.
    pub fn state(&self) -> State {
        self.interface.state()
    }

    fn explained(&self, error: std::io::Error) -> SendError {
        match self.interface.state() {
            state @ (State::Down | State::Gone) => SendError::Interface(state),
            _ => SendError::System(error),
        }
    }
}
