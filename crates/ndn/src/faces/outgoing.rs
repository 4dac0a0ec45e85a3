//! Frames to send on a channel, from one thread.
//!
//! ```text
//!  bytes   | frame | frame | frame | frame |   consecutive frames
//!  frames  | to a  | to a  | to b  | to b  |   sent in one call; equal size and receiver: one message
//! ```

use std::collections::HashSet;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use crate::packets::{Headers, fragments, write_lp};
use rustix::io::Errno;

use crate::faces::counters::{Counters, Lost};
use crate::faces::sys::{self, Address, BURST, DATAGRAM_MAX, OutgoingMessage};
use crate::faces::xdp::XdpOutput;

/// Maximum number of datagrams in a message that the kernel segments.
const SEGMENTS_MAX: usize = 64;

/// Maximum number of receivers that are listed because segmentation failed.
const UNSEGMENTED_MAX: usize = 1024;

/// Number of buffered bytes above which frames are sent.
const BYTES_MAX: usize = 256 << 10;

/// The buffered frames of a channel. Each thread that sends on it has its own.
#[derive(Debug)]
pub(crate) struct Outgoing {
    output: Output,
    bytes: Vec<u8>,
    frames: Vec<Frame>,
    /// Buffer for a fragment.
    fragment: Vec<u8>,
    /// Whether the kernel segments messages (UDP_SEGMENT).
    segmentation: bool,
    /// Receivers to which segmentation failed; for others it stays enabled.
    unsegmented: HashSet<Address>,
}

/// Where the frames are sent.
#[derive(Debug)]
enum Output {
    /// On a datagram socket, by any number of threads.
    Socket(Arc<OwnedFd>),
    /// By AF_XDP, by one thread.
    Xdp(Box<XdpOutput>),
}

impl Output {
    /// Sends up to [`BURST`] messages, without blocking; returns the number of accepted messages.
    /// An error is that of the first message.
    fn send(&mut self, messages: &[OutgoingMessage<'_>]) -> io::Result<usize> {
        match self {
            Self::Socket(socket) => sys::send(socket.as_fd(), messages),
            Self::Xdp(xdp) => xdp.send(messages),
        }
    }
}

/// The receiver of a face's frames.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer {
    pub(crate) to: Address,
    /// Maximum size of a frame, in bytes.
    pub(crate) mtu: usize,
    /// Sequence number of the next fragment.
    pub(crate) sequence: u64,
}

/// A buffered frame.
#[derive(Clone, Copy, Debug)]
struct Frame {
    face: u32,
    to: Address,
    start: usize,
    end: usize,
}

impl Outgoing {
    /// `segmentation`: whether the kernel segments messages.
    pub(crate) fn new(socket: Arc<OwnedFd>, segmentation: bool) -> Self {
        Self::to(Output::Socket(socket), segmentation)
    }

    /// Sends by AF_XDP.
    pub(crate) fn xdp(output: XdpOutput) -> Self {
        Self::to(Output::Xdp(Box::new(output)), false)
    }

    fn to(output: Output, segmentation: bool) -> Self {
        Self {
            output,
            bytes: Vec::with_capacity(BYTES_MAX + DATAGRAM_MAX),
            frames: Vec::with_capacity(BURST),
            fragment: Vec::new(),
            segmentation,
            unsegmented: HashSet::new(),
        }
    }

    /// Whether other threads can send on this channel, too.
    pub(crate) fn is_for_threads(&self) -> bool {
        matches!(self.output, Output::Socket(_))
    }

    /// The same channel, for another thread; `None` if only this thread can send on it.
    pub(crate) fn for_thread(&self) -> Option<Self> {
        match &self.output {
            Output::Socket(socket) => Some(Self::new(Arc::clone(socket), self.segmentation)),
            Output::Xdp(_) => None,
        }
    }

    /// Buffers a packet for a face, fragmented if necessary. Returns whether the caller must flush.
    pub(crate) fn send(
        &mut self,
        number: u32,
        peer: &mut Peer,
        counters: &mut Counters,
        headers: &Headers,
        packet: &[u8],
    ) -> bool {
        let start = self.bytes.len();
        write_lp(headers, packet, &mut self.bytes);
        let len = self.bytes.len() - start;
        if len <= peer.mtu {
            counters.frames_out += 1;
            counters.octets_out += len as u64;
            self.end_frame(number, peer.to, start);
        } else {
            self.bytes.truncate(start);
            let mut fragment = std::mem::take(&mut self.fragment);
            let count =
                fragments(headers, packet, peer.mtu, peer.sequence, &mut fragment, |piece| {
                    let start = self.bytes.len();
                    self.bytes.extend_from_slice(piece);
                    counters.frames_out += 1;
                    counters.octets_out += piece.len() as u64;
                    self.end_frame(number, peer.to, start);
                });
            self.fragment = fragment;
            peer.sequence = peer.sequence.wrapping_add(count);
            if count == 0 {
                counters.frames_out += 1;
                counters.count_lost(Lost::TooManyFragments, 1);
            }
        }
        self.bytes.len() > BYTES_MAX || self.frames.len() >= BURST
    }

    /// Ends the frame that begins at `start` in the buffer.
    #[inline]
    fn end_frame(&mut self, face: u32, to: Address, start: usize) {
        self.frames.push(Frame { face, to, start, end: self.bytes.len() });
    }

    /// Whether the kernel segments messages to this receiver.
    fn is_segmented(&self, to: &Address) -> bool {
        self.segmentation && !self.unsegmented.contains(to)
    }

    /// Whether a flush has nothing to do.
    pub(crate) fn is_empty(&mut self) -> bool {
        let pending = match &mut self.output {
            Output::Socket(_) => false,
            Output::Xdp(xdp) => xdp.has_pending(),
        };
        self.frames.is_empty() && !pending
    }

    /// Sends the buffered frames; calls `lost` for each frame that was not sent.
    pub(crate) fn flush(&mut self, mut lost: impl FnMut(u32, Lost)) {
        let mut at = 0;
        if self.frames.is_empty() {
            // Continues with pending frames. An error shows again at the next frame.
            let _ = self.output.send(&[]);
        }
        while at < self.frames.len() {
            let nothing = OutgoingMessage { to: &self.frames[at].to, bytes: &[], segment: None };
            let (mut messages, mut ends) = ([nothing; BURST], [at; BURST]);
            let (mut count, mut next) = (0, at);
            while next < self.frames.len() && count < BURST {
                let segmentation = self.is_segmented(&self.frames[next].to);
                (messages[count], next) = message(&self.bytes, &self.frames, segmentation, next);
                ends[count] = next;
                count += 1;
            }
            let first_is_segmented = messages[0].segment.is_some();
            match self.output.send(&messages[..count]) {
                Ok(sent) => at = if sent == 0 { ends[0] } else { ends[sent - 1] },
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // The kernel, or the interface to this neighbour, does not support segmentation:
                // from now on each frame to it is sent as its own message.
                Err(error) if first_is_segmented && segmentation_unsupported(&error) => {
                    if self.unsegmented.len() == UNSEGMENTED_MAX {
                        self.unsegmented.clear();
                    }
                    self.unsegmented.insert(self.frames[at].to);
                }
                Err(error) => {
                    let full =
                        matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::OutOfMemory)
                            || error.raw_os_error() == Some(libc::ENOBUFS);
                    // A full socket does not accept the remaining frames either.
                    let end = if full { self.frames.len() } else { ends[0] };
                    let reason = if full { Lost::Congested } else { Lost::Refused };
                    self.frames[at..end].iter().for_each(|frame| lost(frame.face, reason));
                    at = end;
                }
            }
        }
        if let Output::Xdp(xdp) = &mut self.output {
            // Which frames the device dropped is not known.
            let dropped = self.frames.iter().rev().take(xdp.take_dropped());
            dropped.for_each(|frame| lost(frame.face, Lost::Congested));
        }
        self.frames.clear();
        self.bytes.clear();
    }
}

/// The message that begins with the frame `at`, and the index of the first frame after it.
fn message<'a>(
    bytes: &'a [u8],
    frames: &'a [Frame],
    segmentation: bool,
    at: usize,
) -> (OutgoingMessage<'a>, usize) {
    let first = &frames[at];
    let size = first.end - first.start;
    let mut end = at + 1;
    if segmentation {
        while let Some(frame) = frames.get(end)
            && end - at < SEGMENTS_MAX
            && frame.end - first.start <= DATAGRAM_MAX - 100
            && frame.end - frame.start <= size
            && frame.to == first.to
        {
            end += 1;
            if frame.end - frame.start < size {
                break;
            }
        }
    }
    let bytes = &bytes[first.start..frames[end - 1].end];
    let segment = if end > at + 1 { u16::try_from(size).ok() } else { None };
    (OutgoingMessage { to: &first.to, bytes, segment }, end)
}

/// Whether an error means that the socket does not support segmentation.
fn segmentation_unsupported(error: &io::Error) -> bool {
    [Errno::INVAL, Errno::IO, Errno::MSGSIZE, Errno::OPNOTSUPP, Errno::NOPROTOOPT]
        .iter()
        .any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    #[test]
    fn a_receiver_without_segmentation_does_not_disable_it_for_others() {
        let socket = Arc::new(OwnedFd::from(UdpSocket::bind("127.0.0.1:0").unwrap()));
        let mut outgoing = Outgoing::new(socket, true);
        let good = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let send = |outgoing: &mut Outgoing, to: &str| {
            let to = Address::of(&to.parse().unwrap());
            let mut peer = Peer { to, mtu: 1_000, sequence: 0 };
            for _ in 0..3 {
                outgoing.send(256, &mut peer, &mut Counters::default(), &Headers::NONE, &[5, 0]);
            }
        };
        // The system refuses to send to port 0.
        send(&mut outgoing, "127.0.0.1:0");
        let mut lost = Vec::new();
        outgoing.flush(|_, reason| lost.push(reason));
        assert_eq!(lost, [Lost::Refused; 3]);
        send(&mut outgoing, &good.to_string());
        assert!(outgoing.is_segmented(&Address::of(&good)));
    }
}
