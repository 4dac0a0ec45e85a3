//! The transport of a program on this machine: a Unix stream socket that carries consecutive
//! packets, delimited by their lengths.
//!
//! ```text
//!  in   | read so far | room |     out  | sent | buffered |
//! ```
//!
//! Invariant: a program that sends half a packet, or does not read, uses a bounded amount of memory
//! and does not block others.

use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;

use crate::packets::{Element, Error, PACKET_MAX};

use crate::faces::counters::Lost;

/// Maximum size of a frame in bytes: a packet and its link headers.
pub(crate) const FRAME_MAX: usize = PACKET_MAX + 1024;

/// Number of bytes buffered for a program above which packets are dropped.
const OUTPUT_MAX: usize = 1 << 20;

#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) socket: UnixStream,
    pub(crate) input: Input,
    output: Vec<u8>,
    sent: usize,
    /// Whether epoll watches the socket for room to write.
    pub(crate) wants_write: bool,
    /// Whether it is in the list of streams with buffered output.
    pub(crate) listed: bool,
}

/// The input buffer: received bytes that are not handled yet.
#[derive(Debug, Default)]
pub(crate) struct Input {
    bytes: Vec<u8>,
    filled: usize,
    consumed: usize,
}

/// The next frame in the input, if any.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next<'a> {
    Frame(&'a [u8]),
    /// No complete frame is left.
    Wait,
    /// The input is malformed, so the start of the next frame is unknown.
    Broken(Lost),
}

impl Stream {
    pub(crate) fn new(socket: UnixStream) -> Self {
        let input = Input { bytes: vec![0; 4 * FRAME_MAX], filled: 0, consumed: 0 };
        Self { socket, input, output: Vec::new(), sent: 0, wants_write: false, listed: false }
    }

    /// Appends a frame to the output by `write`; returns its length in bytes. Fails if more than
    /// [`OUTPUT_MAX`] bytes are buffered.
    pub(crate) fn append(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> Result<usize, Lost> {
        if self.output.len() - self.sent > OUTPUT_MAX {
            return Err(Lost::Congested);
        }
        let before = self.output.len();
        write(&mut self.output);
        Ok(self.output.len() - before)
    }

    /// Sends as many buffered bytes as the socket accepts; returns whether some are left.
    pub(crate) fn flush(&mut self) -> io::Result<bool> {
        while self.sent < self.output.len() {
            match self.socket.write(&self.output[self.sent..]) {
                Ok(sent) => self.sent += sent,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.output.drain(..self.sent);
                    self.sent = 0;
                    return Ok(true);
                }
                Err(error) => return Err(error),
            }
        }
        self.output.clear();
        self.sent = 0;
        Ok(false)
    }
}

impl Input {
    /// Reads once from the socket; returns the number of bytes, 0 at the end of the stream.
    pub(crate) fn fill(&mut self, mut socket: &UnixStream) -> io::Result<usize> {
        self.bytes.copy_within(self.consumed..self.filled, 0);
        self.filled -= self.consumed;
        self.consumed = 0;
        let received = socket.read(&mut self.bytes[self.filled..])?;
        self.filled += received;
        Ok(received)
    }

    /// Takes the next complete frame from the buffer.
    pub(crate) fn next(&mut self) -> Next<'_> {
        let unread = &self.bytes[self.consumed..self.filled];
        match Element::first(unread) {
            Ok((_, rest)) => {
                let len = unread.len() - rest.len();
                self.consumed += len;
                if len > FRAME_MAX {
                    Next::Broken(Lost::TooLong)
                } else {
                    Next::Frame(&unread[..len])
                }
            }
            Err(Error::Truncated) if unread.len() <= FRAME_MAX => Next::Wait,
            Err(Error::Truncated) => Next::Broken(Lost::TooLong),
            Err(_) => Next::Broken(Lost::Malformed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (UnixStream, Stream) {
        let (peer, near) = UnixStream::pair().unwrap();
        near.set_nonblocking(true).unwrap();
        (peer, Stream::new(near))
    }

    #[test]
    fn frames_are_read_for_any_sizes_of_reads() {
        let (mut peer, Stream { socket, mut input, .. }) = pair();
        let frames: Vec<Vec<u8>> =
            (0..200_u8).map(|n| [&[5, n][..], &vec![n; n.into()]].concat()).collect();
        let all = frames.concat();
        let mut received = Vec::new();
        for piece in all.chunks(97) {
            peer.write_all(piece).unwrap();
            assert_eq!(input.fill(&socket).unwrap(), piece.len());
            while let Next::Frame(frame) = input.next() {
                received.push(frame.to_vec());
            }
        }
        assert_eq!(received, frames);
    }

    #[test]
    fn a_malformed_frame_ends_the_stream() {
        for (bytes, expected) in [
            (&[0, 0][..], Next::Broken(Lost::Malformed)),
            (&[5, 253, 0, 1, 9], Next::Broken(Lost::Malformed)),
            (&[5, 9, 1], Next::Wait),
            (&[5, 254, 255, 255, 255, 255], Next::Wait),
        ] {
            let (mut peer, Stream { socket, mut input, .. }) = pair();
            peer.write_all(bytes).unwrap();
            input.fill(&socket).unwrap();
            assert_eq!(input.next(), expected, "{bytes:?}");
        }
        // A frame that is larger than the limit ends the stream before it is complete.
        let (mut peer, Stream { socket, mut input, .. }) = pair();
        peer.write_all(&[5, 254, 255, 255, 255, 255]).unwrap();
        peer.write_all(&[7; FRAME_MAX]).unwrap();
        while input.fill(&socket).is_ok() {}
        assert_eq!(input.next(), Next::Broken(Lost::TooLong));
    }

    #[test]
    fn a_program_that_does_not_read_loses_packets() {
        let (mut peer, mut stream) = pair();
        let frame = [7; 8000];
        let mut appended = 0;
        while stream.append(|out| out.extend(frame)).is_ok() {
            appended += frame.len();
            stream.flush().unwrap();
            assert!(appended < 16 * OUTPUT_MAX);
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
}
