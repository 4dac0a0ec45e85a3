//! A program on this machine, by a Unix socket: packets one after the other, their own lengths tell where they end.
//!
//! ```text
//!  in   | read up to here | room |     out  | sent | waits |
//! ```
//!
//! Invariant: a program that sends half a packet, or reads nothing, keeps a bounded amount of memory and nobody waiting.

use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;

use crate::packets::{Element, Error, PACKET_MAX};

use crate::faces::counters::Lost;

/// The largest frame: a packet, and room for what is said about it.
pub(crate) const FRAME_MAX: usize = PACKET_MAX + 1024;

/// Bytes that may wait for a program to read them.
const OUTPUT_MAX: usize = 1 << 20;

#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) socket: UnixStream,
    pub(crate) input: Input,
    output: Vec<u8>,
    sent: usize,
    /// We are told when it takes more.
    pub(crate) waits: bool,
    /// It is in the list of those with something to send.
    pub(crate) listed: bool,
}

/// What came and was not taken yet.
#[derive(Debug, Default)]
pub(crate) struct Input {
    bytes: Vec<u8>,
    filled: usize,
    taken: usize,
}

/// What may come next from a program.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next<'a> {
    Frame(&'a [u8]),
    /// Nothing whole is left.
    Wait,
    /// What came cannot be taken apart; nothing that follows could be.
    Broken(Lost),
}

impl Stream {
    pub(crate) fn new(socket: UnixStream) -> Self {
        let input = Input { bytes: vec![0; 4 * FRAME_MAX], filled: 0, taken: 0 };
        Self { socket, input, output: Vec::new(), sent: 0, waits: false, listed: false }
    }

    /// Lets `write` append a frame, unless too much waits already.
    pub(crate) fn append(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> Result<usize, Lost> {
        if self.output.len() - self.sent > OUTPUT_MAX {
            return Err(Lost::Congested);
        }
        let before = self.output.len();
        write(&mut self.output);
        Ok(self.output.len() - before)
    }

    /// Sends what it takes; whether something is left.
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
    /// Reads once; how many bytes came, 0 at the end.
    pub(crate) fn fill(&mut self, mut socket: &UnixStream) -> io::Result<usize> {
        self.bytes.copy_within(self.taken..self.filled, 0);
        self.filled -= self.taken;
        self.taken = 0;
        let came = socket.read(&mut self.bytes[self.filled..])?;
        self.filled += came;
        Ok(came)
    }

    /// The next frame of those that came.
    pub(crate) fn next(&mut self) -> Next<'_> {
        let waiting = &self.bytes[self.taken..self.filled];
        match Element::first(waiting) {
            Ok((_, rest)) => {
                let len = waiting.len() - rest.len();
                self.taken += len;
                if len > FRAME_MAX {
                    Next::Broken(Lost::TooLong)
                } else {
                    Next::Frame(&waiting[..len])
                }
            }
            Err(Error::Truncated) if waiting.len() <= FRAME_MAX => Next::Wait,
            Err(Error::Truncated) => Next::Broken(Lost::TooLong),
            Err(_) => Next::Broken(Lost::Malformed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (UnixStream, Stream) {
        let (far, near) = UnixStream::pair().unwrap();
        near.set_nonblocking(true).unwrap();
        (far, Stream::new(near))
    }

    #[test]
    fn frames_come_out_as_they_went_in_however_they_were_cut() {
        let (mut far, Stream { socket, mut input, .. }) = pair();
        let frames: Vec<Vec<u8>> =
            (0..200_u8).map(|n| [&[5, n][..], &vec![n; n.into()]].concat()).collect();
        let all = frames.concat();
        let mut came = Vec::new();
        for piece in all.chunks(97) {
            far.write_all(piece).unwrap();
            assert_eq!(input.fill(&socket).unwrap(), piece.len());
            while let Next::Frame(frame) = input.next() {
                came.push(frame.to_vec());
            }
        }
        assert_eq!(came, frames);
    }

    #[test]
    fn what_can_be_no_frame_is_the_end() {
        for (bytes, expected) in [
            (&[0, 0][..], Next::Broken(Lost::Malformed)),
            (&[5, 253, 0, 1, 9], Next::Broken(Lost::Malformed)),
            (&[5, 9, 1], Next::Wait),
            (&[5, 254, 255, 255, 255, 255], Next::Wait),
        ] {
            let (mut far, Stream { socket, mut input, .. }) = pair();
            far.write_all(bytes).unwrap();
            input.fill(&socket).unwrap();
            assert_eq!(input.next(), expected, "{bytes:?}");
        }
        // Who announces more than a packet and goes on sending is not waited for without end.
        let (mut far, Stream { socket, mut input, .. }) = pair();
        far.write_all(&[5, 254, 255, 255, 255, 255]).unwrap();
        far.write_all(&[7; FRAME_MAX]).unwrap();
        while input.fill(&socket).is_ok() {}
        assert_eq!(input.next(), Next::Broken(Lost::TooLong));
    }

    #[test]
    fn who_does_not_read_gets_no_more() {
        let (mut far, mut stream) = pair();
        let frame = [7; 8000];
        let mut appended = 0;
        while stream.append(|out| out.extend(frame)).is_ok() {
            appended += frame.len();
            stream.flush().unwrap();
            assert!(appended < 16 * OUTPUT_MAX);
        }
        assert!(stream.flush().unwrap(), "something waits");
        let mut read = 0;
        let mut bytes = vec![0; 1 << 16];
        while read < appended {
            read += far.read(&mut bytes).unwrap();
            stream.flush().unwrap();
        }
        assert!(!stream.flush().unwrap());
        assert!(stream.append(|out| out.extend(frame)).is_ok());
    }
}
