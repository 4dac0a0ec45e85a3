//! `Sender`: the common interface of both send methods.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::SendError;
use super::options::{SendOptions, Sent};
use super::packet::PacketSender;
use super::xdp::XdpSender;
use crate::live::error::OpenError;
use crate::live::interface::Interface;
use crate::live::offload::Marks;
use crate::live::options::Method;
use crate::live::state::State;

/// Bytes of the Ethernet header, and of a VLAN tag, which the kernel allows in addition to the MTU.
const HEADER: usize = 14;
const TAG: usize = 4;
const TAGGED: [u8; 2] = [0x81, 0x00];

/// Sends Ethernet frames on an interface.
pub struct Sender {
    kind: Kind,
    interface: Interface,
    /// Longest frame without a VLAN tag, and with one.
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
    /// As for [`open`](crate::live::open). Also if frames of the interface have no Ethernet
    /// header, or if the method is DPDK.
    pub fn open(name: &str, options: &SendOptions) -> Result<Self, OpenError> {
        let interface = Interface::open(name)?;
        let most = Self::most(&interface)?;
        let [_, tagged] = most;
        let (kind, most) = match options.method {
            Method::Packet => {
                let sender = PacketSender::open(&interface, options)?;
                (Kind::Packet(sender), most)
            }
            Method::Xdp => {
                let sender = XdpSender::open(&interface, options, tagged)?;
                let most = most.map(|most| most.min(sender.max_frame_len()));
                (Kind::Xdp(Box::new(sender)), most)
            }
            Method::Dpdk => return Err(OpenError::NotSent),
        };
        Ok(Self { kind, interface, most })
    }

    /// Sends by the AF_XDP socket of a receiver.
    pub(crate) fn over(name: &str, sender: Box<XdpSender>) -> Result<Self, OpenError> {
        let interface = Interface::open(name)?;
        let most = Self::most(&interface)?.map(|most| most.min(sender.max_frame_len()));
        Ok(Self { kind: Kind::Xdp(sender), interface, most })
    }

    /// The longest frame without a VLAN tag, and with one.
    fn most(interface: &Interface) -> Result<[usize; 2], OpenError> {
        let hardware = interface.link.hardware;
        if !matches!(hardware, libc::ARPHRD_ETHER | libc::ARPHRD_LOOPBACK) {
            let name = interface.name().to_owned();
            return Err(OpenError::UnsupportedLink { name, hardware, method: "sending" });
        }
        let plain = interface.link.mtu as usize + HEADER;
        let tag = if hardware == libc::ARPHRD_ETHER { TAG } else { 0 };
        Ok([plain, plain + tag])
    }

    /// Sends `frames` in order, in large batches if there are many. Returns how many were accepted
    /// (AF_XDP: handed over), counted from the first. The number is smaller than `frames.len()` if
    /// the kernel still has no room after a short wait, or if the next frame has an invalid length.
    ///
    /// # Errors
    /// If the first frame has an invalid length or cannot be sent for a lasting reason.
    pub fn send(&mut self, frames: &[&[u8]]) -> Result<usize, SendError> {
        let good = frames.iter().take_while(|frame| self.fits(frame)).count();
        if let (0, Some(first)) = (good, frames.first()) {
            let (least, most) = self.lengths(first).into_inner();
            return Err(SendError::Length { len: first.len(), least, most });
        }
        let frames = frames.get(..good).unwrap_or_default();
        let sent = match &mut self.kind {
            Kind::Packet(one) => one.send(frames.iter().map(|frame| (Marks::default(), *frame))),
            Kind::Xdp(one) => one.send(frames),
        };
        sent.map_err(|error| self.to_send_error(error))
    }

    /// Whether [`Sender::send_marked`] can be used.
    pub fn takes_marks(&self) -> bool {
        matches!(&self.kind, Kind::Packet(one) if one.takes_marks())
    }

    /// As [`Sender::send`], with the marks of each frame. The lengths of super-frames are not
    /// checked. If the socket has no room for the first frame, the result is 0.
    ///
    /// # Errors
    /// If the first frame cannot be sent for a lasting reason, or marks are not taken. For a
    /// super-frame that the kernel refuses: [`SendError::SuperFrame`].
    pub fn send_marked<'a>(
        &mut self,
        frames: impl ExactSizeIterator<Item = (Marks, &'a [u8])> + Clone,
    ) -> Result<usize, SendError> {
        let first = frames.clone().next().is_some_and(|(marks, _)| marks.is_super_frame());
        let sent = match &mut self.kind {
            Kind::Packet(one) if one.takes_marks() => one.send(frames),
            _ => Err(std::io::ErrorKind::Unsupported.into()),
        };
        sent.map_err(|error| match self.to_send_error(error) {
            SendError::System(error) if first => {
                SendError::SuperFrame { or_full: error.raw_os_error() == Some(libc::ENOBUFS) }
            }
            other => other,
        })
    }

    /// Whether the interface accepts a frame of this length.
    pub fn fits(&self, frame: &[u8]) -> bool {
        self.lengths(frame).contains(&frame.len())
    }

    /// Lengths that the interface accepts for such a frame, in bytes. A frame with a VLAN tag may
    /// have 4 bytes more.
    pub fn lengths(&self, frame: &[u8]) -> RangeInclusive<usize> {
        let [plain, tagged] = self.most;
        HEADER..=if frame.get(12..14) == Some(&TAGGED) { tagged } else { plain }
    }

    /// Waits until nothing is pending, at most for `timeout`. Returns whether nothing is pending.
    /// AF_PACKET has no pending frames.
    ///
    /// # Errors
    /// If the pending frames cannot be sent any more.
    pub fn flush(&mut self, timeout: Duration) -> Result<bool, SendError> {
        let done = match &mut self.kind {
            Kind::Packet(_) => Ok(true),
            Kind::Xdp(one) => one.flush(timeout),
        };
        done.map_err(|error| self.to_send_error(error))
    }

    /// Discards the pending frames. The sender can send afterwards. AF_PACKET has no pending
    /// frames. A network card that reads the buffers itself (zero-copy) may already have begun to
    /// send some of them.
    ///
    /// # Errors
    /// As for [`Sender::open`]. No frame is pending then, and the sender can send nothing more.
    pub fn discard(&mut self) -> Result<(), OpenError> {
        match &mut self.kind {
            Kind::Packet(_) => Ok(()),
            Kind::Xdp(one) => one.discard(&self.interface),
        }
    }

    /// Discards the pending frames and closes an AF_XDP socket, which sends nothing more.
    /// AF_PACKET: no effect.
    pub fn close(&mut self) {
        match &mut self.kind {
            Kind::Packet(_) => {}
            Kind::Xdp(one) => one.close(),
        }
    }

    /// Returns the counts of the frames so far.
    pub fn counters(&mut self) -> Sent {
        match &mut self.kind {
            Kind::Packet(one) => one.counters(),
            Kind::Xdp(one) => one.counters(),
        }
    }

    /// Returns the current state of the interface.
    pub fn state(&self) -> State {
        self.interface.state()
    }

    fn to_send_error(&self, error: std::io::Error) -> SendError {
        match self.interface.state() {
            state @ (State::Down | State::Gone) => SendError::Interface(state),
            _ => SendError::System(error),
        }
    }
}
