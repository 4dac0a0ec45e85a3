//! How a filter and those who change it talk, over a socket: a question, an answer, the end.
//!
//! ```text
//! apply 15\nban 192.0.2.7\n\n          a word, a space, the length of the text in bytes, a line feed, the text
//! ok 11\nrevision 8\n              or: error 52\n…
//! ```
//!
//! Invariant: whatever comes, nothing grows beyond the bound, and no wait is longer than its patience.

use std::io::{self, Read, Write};
use std::time::Duration;

use crate::clock::Clock;

/// The longest first line.
const HEAD_MOST: usize = 32;

/// The longest text: some millions of rules.
pub(super) const TEXT_MOST: usize = 512 << 20;

/// How often a wait looks whether to give up.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(50);

/// How long the other side may keep silent within a message.
const SILENCE_NS: u64 = 5_000_000_000;

/// A word and a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) word: String,
    pub(super) text: String,
}

impl Message {
    pub(super) fn new(word: &str, text: impl Into<String>) -> Self {
        Self { word: word.to_owned(), text: text.into() }
    }

    pub(super) fn write(&self, mut to: impl Write) -> io::Result<()> {
        to.write_all(format!("{} {}\n", self.word, self.text.len()).as_bytes())?;
        to.write_all(self.text.as_bytes())?;
        to.flush()
    }

    /// Reads one from where reads give up after [`LOOK_EVERY`]; `patience` says how long silence may last, and `stopped`
    /// whether nobody wants it any more.
    pub(super) fn read(
        from: impl Read,
        patience: Option<Duration>,
        stopped: impl Fn() -> bool,
    ) -> io::Result<Self> {
        let patience_ns = patience.map_or(u64::MAX, |patience| patience.as_nanos() as u64);
        let mut reader = Patient { from, patience_ns, stopped };
        let head = reader.line()?;
        let wrong = || io::Error::new(io::ErrorKind::InvalidData, "no word and length");
        let (word, length) = head.split_once(' ').ok_or_else(wrong)?;
        let length: usize = length.parse().map_err(|_| wrong())?;
        if length > TEXT_MOST {
            let most = TEXT_MOST >> 20;
            let why = format!("a text of {length} bytes; {most} MiB are possible");
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
        let text = String::from_utf8(reader.exactly(length)?);
        let text = text.map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "no UTF-8"))?;
        Ok(Self { word: word.to_owned(), text })
    }
}

/// How long a filter waits for the rest of a question.
pub(super) fn patience() -> Option<Duration> {
    Some(Duration::from_nanos(SILENCE_NS))
}

struct Patient<R, F> {
    from: R,
    patience_ns: u64,
    stopped: F,
}

impl<R: Read, F: Fn() -> bool> Patient<R, F> {
    fn line(&mut self) -> io::Result<String> {
        let mut line = Vec::new();
        let mut byte = [0];
        while line.len() <= HEAD_MOST {
            if self.some(&mut byte)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if byte == *b"\n" {
                return String::from_utf8(line)
                    .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "no UTF-8"));
            }
            line.push(byte[0]);
        }
        Err(io::Error::new(io::ErrorKind::InvalidData, "a first line without end"))
    }

    /// Memory is taken as bytes come, not as they are promised.
    fn exactly(&mut self, length: usize) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let mut piece = vec![0; length.min(1 << 16)];
        while bytes.len() < length {
            let room = piece.len().min(length - bytes.len());
            match self.some(&mut piece[..room])? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => bytes.extend_from_slice(&piece[..count]),
            }
        }
        Ok(bytes)
    }

    /// At least a byte, or 0 at the end.
    fn some(&mut self, into: &mut [u8]) -> io::Result<usize> {
        use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
        let clock = Clock::start();
        loop {
            match self.from.read(into) {
                Err(error) if matches!(error.kind(), WouldBlock | TimedOut | Interrupted) => {
                    if (self.stopped)() || clock.now_ns() > self.patience_ns {
                        return Err(TimedOut.into());
                    }
                }
                result => return result,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> io::Result<Message> {
        Message::read(bytes, None, || false)
    }

    #[test]
    fn what_is_written_is_read() {
        for (word, text) in [("dump", ""), ("apply", "ban 192.0.2.7\n"), ("ok", "é\n")] {
            let message = Message::new(word, text);
            let mut bytes = Vec::new();
            message.write(&mut bytes).unwrap();
            assert_eq!(read(&bytes).unwrap(), message);
        }
    }

    #[test]
    fn nonsense_is_an_error() {
        for bytes in [
            &b""[..],
            b"apply",
            b"apply\n",
            b"apply x\n",
            b"apply -1\n",
            b"apply 5\nban",
            b"apply 99999999999\n",
            b"apply 99999999999999999999999\n",
            b"apply 2\n\xff\xff",
            b"a word that goes on and on and on and on 3\nabc",
        ] {
            assert!(read(bytes).is_err(), "{bytes:?}");
        }
    }
}
