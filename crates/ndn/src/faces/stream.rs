//! The transport of a stream face: a Unix socket or a TCP connection that carries consecutive
//! packets, delimited by their lengths, or messages of WebSocket.
//!
//! ```text
//!  in   | rest | received | room |     out  | sent | buffered |
//! ```
//!
//! All streams are read into one buffer. A stream keeps only its rest: the bytes of an incomplete
//! frame.
//!
//! Invariant: a program or neighbour that sends half a packet, or does not read, uses a bounded
//! amount of memory and does not block others.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;

use rustix::net::{RecvFlags, SendFlags, recv, send};

use crate::packets::{Element, Error, FRAME_MAX};

use crate::faces::connection::{Connection, Retries};
use crate::faces::counters::Lost;
use crate::faces::websocket::WebSocket;

/// Size of the input buffer in bytes: the most that is read from a stream before the next one.
const INPUT: usize = 64 << 10;

/// Number of buffered bytes above which packets are dropped: for a program, and for a neighbour, of
/// which there may be many.
const PROGRAM_OUTPUT_MAX: usize = 1 << 20;
const NEIGHBOUR_OUTPUT_MAX: usize = 256 << 10;

#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) connection: Connection,
    /// How the connection is opened again; `None` if the other end opened it.
    pub(crate) retries: Option<Retries>,
    /// The protocol that carries the frames, if it is not their plain sequence.
    pub(crate) websocket: Option<Box<WebSocket>>,
    /// The received bytes of an incomplete frame.
    pub(crate) rest: Vec<u8>,
    output: Output,
    /// Whether epoll watches the socket for room to write.
    pub(crate) wants_write: bool,
    /// Whether it is in the list of streams with buffered output.
    pub(crate) listed: bool,
}

/// The output buffer: frames that are not completely sent.
#[derive(Debug)]
struct Output {
    bytes: Vec<u8>,
    sent: usize,
    /// Ends of the frames, as positions in the stream.
    ends: VecDeque<u64>,
    /// Position of the buffer in the stream.
    start: u64,
    max: usize,
}

/// The input buffer of all streams, which are read one after the other.
#[derive(Debug)]
pub(crate) struct Input {
    bytes: Vec<u8>,
    filled: usize,
}

/// The complete frames in the input. An error is the last item: the start of the next frame is
/// unknown.
pub(crate) struct Frames<'a> {
    unread: &'a [u8],
    is_broken: bool,
}

impl Stream {
    /// The stream of a program on this machine.
    pub(crate) fn program(socket: OwnedFd) -> Self {
        Self::new(Connection::Open(socket), None, PROGRAM_OUTPUT_MAX)
    }

    /// The stream of a neighbour that has connected.
    pub(crate) fn accepted(socket: OwnedFd) -> Self {
        Self::new(Connection::Open(socket), None, NEIGHBOUR_OUTPUT_MAX)
    }

    /// The stream of a neighbour that has connected to a port for WebSocket.
    pub(crate) fn websocket(socket: OwnedFd) -> io::Result<Self> {
        let websocket = Some(Box::new(WebSocket::new()?));
        Ok(Self { websocket, ..Self::accepted(socket) })
    }

    /// The stream to a neighbour that is being connected to.
    pub(crate) fn connecting(connection: Connection, retries: Retries) -> Self {
        Self::new(connection, Some(retries), NEIGHBOUR_OUTPUT_MAX)
    }

    fn new(connection: Connection, retries: Option<Retries>, max: usize) -> Self {
        // A socket that is connecting is watched for room to write: it has some when connected.
        let wants_write = matches!(connection, Connection::Opening { .. });
        let output = Output { bytes: Vec::new(), sent: 0, ends: VecDeque::new(), start: 0, max };
        Self {
            connection,
            retries,
            websocket: None,
            rest: Vec::new(),
            output,
            wants_write,
            listed: false,
        }
    }

    /// Whether a handshake precedes the frames and is not complete.
    pub(crate) fn is_handshaking(&self) -> bool {
        self.websocket.as_ref().is_some_and(|websocket| websocket.is_handshaking())
    }

    /// Appends a frame to the output by `write`; returns its length in bytes. Fails if too many
    /// bytes are buffered, or if there is no connection.
    pub(crate) fn append(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> Result<usize, Lost> {
        if matches!(self.connection, Connection::Closed { .. }) {
            return Err(Lost::Disconnected);
        }
        // A burst may be larger than the buffer. An error is detected on reading.
        if self.output.is_full() && !self.wants_write {
            let _ = self.flush();
        }
        if self.output.is_full() {
            return Err(Lost::Congested);
        }
        let before = self.output.bytes.len();
        let Some(websocket) = &mut self.websocket else {
            write(&mut self.output.bytes);
            self.output.end_frame();
            return Ok(self.output.bytes.len() - before);
        };
        let mut frame = Vec::new();
        write(&mut frame);
        let len = frame.len();
        websocket.send(frame)?;
        websocket.take_output(&mut self.output.bytes);
        self.output.end_frame();
        Ok(len)
    }

    /// Sends as many buffered bytes as the socket accepts; returns whether it is to be watched for
    /// room.
    pub(crate) fn flush(&mut self) -> io::Result<bool> {
        if let Some(websocket) = &mut self.websocket
            && !self.output.is_full()
        {
            websocket.take_output(&mut self.output.bytes);
        }
        match &self.connection {
            Connection::Open(socket) => self.output.send(socket),
            Connection::Opening { .. } => Ok(true),
            Connection::Closed { .. } => Ok(false),
        }
    }

    /// Closes the connection until `retry_ns`, and clears the buffers. Returns the number of frames
    /// that were not sent.
    pub(crate) fn disconnect(&mut self, retry_ns: u64) -> u64 {
        self.connection = Connection::Closed { retry_ns };
        self.wants_write = false;
        self.rest = Vec::new();
        let unsent = self.output.unsent();
        self.output.clear();
        unsent
    }

    /// Frees the output buffer if it is empty.
    pub(crate) fn shrink(&mut self) {
        if self.output.bytes.is_empty() {
            (self.output.bytes, self.output.ends) = (Vec::new(), VecDeque::new());
        }
    }

    /// Number of buffered frames that were not sent.
    pub(crate) fn unsent(&mut self) -> u64 {
        self.output.unsent()
    }
}

impl Output {
    fn is_full(&self) -> bool {
        self.bytes.len() - self.sent > self.max
    }

    fn end_frame(&mut self) {
        self.ends.push_back(self.start + self.bytes.len() as u64);
    }

    fn send(&mut self, socket: &OwnedFd) -> io::Result<bool> {
        while self.sent < self.bytes.len() {
            match send(socket, &self.bytes[self.sent..], SendFlags::NOSIGNAL) {
                Ok(sent) => self.sent += sent,
                Err(error) => match io::Error::from(error) {
                    error if error.kind() == ErrorKind::Interrupted => {}
                    error if error.kind() == ErrorKind::WouldBlock => {
                        self.bytes.drain(..self.sent);
                        self.start += self.sent as u64;
                        self.sent = 0;
                        self.unsent();
                        return Ok(true);
                    }
                    error => return Err(error),
                },
            }
        }
        self.clear();
        Ok(false)
    }

    fn unsent(&mut self) -> u64 {
        let sent = self.start + self.sent as u64;
        while self.ends.pop_front_if(|end| *end <= sent).is_some() {}
        self.ends.len() as u64
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        (self.sent, self.start) = (0, 0);
    }
}

impl Input {
    pub(crate) fn new() -> Self {
        Self { bytes: vec![0; INPUT], filled: 0 }
    }

    /// Reads once from the socket of a stream with this rest, of at most [`FRAME_MAX`] bytes;
    /// returns the number of received bytes, 0 at the end of the stream.
    pub(crate) fn fill(&mut self, rest: &[u8], socket: &OwnedFd) -> io::Result<usize> {
        self.filled = rest.len();
        self.bytes[..self.filled].copy_from_slice(rest);
        let (received, _) = recv(socket, &mut self.bytes[self.filled..], RecvFlags::empty())?;
        self.filled += received;
        Ok(received)
    }

    /// The rest and the received bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.filled]
    }

    /// The complete frames.
    pub(crate) fn frames(&self) -> Frames<'_> {
        Frames { unread: self.bytes(), is_broken: false }
    }
}

impl<'a> Frames<'a> {
    /// The bytes after the last returned frame.
    pub(crate) fn unread(&self) -> &'a [u8] {
        self.unread
    }

    /// Whether an error was returned.
    pub(crate) fn is_broken(&self) -> bool {
        self.is_broken
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = Result<&'a [u8], Lost>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_broken {
            return None;
        }
        let lost = match Element::first(self.unread) {
            Ok((_, rest)) => {
                let (frame, rest) = self.unread.split_at(self.unread.len() - rest.len());
                self.unread = rest;
                if frame.len() <= FRAME_MAX {
                    return Some(Ok(frame));
                }
                Lost::TooLong
            }
            Err(Error::Truncated) if self.unread.len() <= FRAME_MAX => return None,
            Err(Error::Truncated) => Lost::TooLong,
            Err(_) => Lost::Malformed,
        };
        self.is_broken = true;
        Some(Err(lost))
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    use super::*;

    fn pair() -> (UnixStream, Stream) {
        let (peer, near) = UnixStream::pair().unwrap();
        near.set_nonblocking(true).unwrap();
        (peer, Stream::program(near.into()))
    }

    fn fill(input: &mut Input, stream: &Stream) -> io::Result<usize> {
        input.fill(&stream.rest, stream.connection.socket().unwrap())
    }

    #[test]
    fn frames_are_read_for_any_sizes_of_reads() {
        let (mut peer, mut stream) = pair();
        let frames: Vec<Vec<u8>> =
            (0..200_u8).map(|n| [&[5, n][..], &vec![n; n.into()]].concat()).collect();
        let all = frames.concat();
        let (mut input, mut received) = (Input::new(), Vec::new());
        for piece in all.chunks(97) {
            peer.write_all(piece).unwrap();
            assert_eq!(fill(&mut input, &stream).unwrap(), piece.len());
            let mut frames = input.frames();
            received.extend(frames.by_ref().map(|frame| frame.unwrap().to_vec()));
            stream.rest = frames.unread().to_vec();
        }
        assert_eq!(received, frames);
    }

    #[test]
    fn a_malformed_frame_ends_the_stream() {
        for (bytes, expected) in [
            (&[0, 0][..], Some(Err(Lost::Malformed))),
            (&[5, 253, 0, 1, 9], Some(Err(Lost::Malformed))),
            (&[5, 9, 1], None),
            (&[5, 254, 255, 255, 255, 255], None),
        ] {
            let ((mut peer, stream), mut input) = (pair(), Input::new());
            peer.write_all(bytes).unwrap();
            fill(&mut input, &stream).unwrap();
            let mut frames = input.frames();
            assert_eq!((frames.next(), frames.next()), (expected, None), "{bytes:?}");
        }
        // A frame that is larger than the limit ends the stream before it is complete.
        let ((mut peer, stream), mut input) = (pair(), Input::new());
        peer.write_all(&[5, 254, 255, 255, 255, 255]).unwrap();
        peer.write_all(&[7; FRAME_MAX]).unwrap();
        fill(&mut input, &stream).unwrap();
        assert_eq!(input.frames().next(), Some(Err(Lost::TooLong)));
    }

    #[test]
    fn a_program_that_does_not_read_loses_packets() {
        let (mut peer, mut stream) = pair();
        let frame = [7; 8000];
        let mut appended = 0;
        while stream.append(|out| out.extend(frame)).is_ok() {
            appended += frame.len();
            stream.flush().unwrap();
            assert!(appended < 16 * PROGRAM_OUTPUT_MAX);
        }
        assert!(stream.flush().unwrap(), "output is buffered");
        let mut read = 0;
        let mut bytes = vec![0; 1 << 16];
        while read < appended {
            read += peer.read(&mut bytes).unwrap();
            stream.flush().unwrap();
        }
        assert!(!stream.flush().unwrap());
        assert!(stream.append(|out| out.extend(frame)).is_ok());
    }

    #[test]
    fn frames_that_are_not_completely_sent_are_counted() {
        let (mut peer, mut stream) = pair();
        let frame = [7; 5_001];
        let mut appended = 0;
        while stream.append(|out| out.extend(frame)).is_ok() {
            appended += 1;
            stream.flush().unwrap();
        }
        let unsent = stream.disconnect(0);
        assert_eq!((stream.unsent(), stream.append(|_| ())), (0, Err(Lost::Disconnected)));
        let mut arrived = Vec::new();
        peer.read_to_end(&mut arrived).unwrap();
        assert_eq!(appended - unsent, (arrived.len() / frame.len()) as u64);
        assert!(unsent > 100, "{unsent}");
    }

    #[test]
    fn a_burst_larger_than_the_buffer_is_sent_while_the_socket_has_room() {
        let (mut peer, near) = UnixStream::pair().unwrap();
        near.set_nonblocking(true).unwrap();
        let mut stream = Stream::accepted(near.into());
        stream.output.max = 10_000;
        for _ in 0..20 {
            assert_eq!(stream.append(|out| out.extend([7; 2_000])), Ok(2_000));
        }
        assert!(!stream.flush().unwrap());
        drop(stream);
        let mut arrived = Vec::new();
        peer.read_to_end(&mut arrived).unwrap();
        assert_eq!(arrived.len(), 40_000);
    }
}
