//! Messages of the control socket of a filter: one request and one answer per connection.
//!
//! ```text
//! apply 15\nban 192.0.2.7\n\n          word, space, length of the text in bytes, line feed, text
//! ok 11\nrevision 8\n              or: error 52\n…
//! ```
//!
//! Invariant: memory is bounded for any input, and each wait for a message has a deadline.

use std::io::{self, Read, Write};
use std::time::Duration;

use ringtap_base::Clock;

/// The longest first line.
const HEAD_MOST: usize = 32;

/// The longest text; it holds some millions of rules.
pub(super) const TEXT_MOST: usize = 512 << 20;

/// Interval at which a wait checks its deadline.
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The deadline of a message is extended by one second for each this many bytes.
pub(super) const BYTES_PER_SECOND: u64 = 1 << 20;

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
        to.write_all(&self.to_bytes())?;
        to.flush()
    }

    /// The message as bytes.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = format!("{} {}\n", self.word, self.text.len()).into_bytes();
        bytes.extend_from_slice(self.text.as_bytes());
        bytes
    }

    /// Takes a message out of the received bytes; `None` if it is not complete. Bytes after it are
    /// dropped, because each side sends one. The error is the reason why the bytes are not a
    /// message.
    pub(super) fn take(received: &mut Vec<u8>) -> Result<Option<Self>, String> {
        let Some(end) = received.iter().take(HEAD_MOST + 1).position(|&byte| byte == b'\n') else {
            return match received.len() {
                0..=HEAD_MOST => Ok(None),
                _ => Err("the first line is too long".into()),
            };
        };
        let head = std::str::from_utf8(&received[..end]).map_err(|_| "not UTF-8")?;
        let (word, length) =
            head.split_once(' ').ok_or("the first line is not a word and a length")?;
        let length: usize =
            length.parse().map_err(|_| "the first line is not a word and a length")?;
        if length > TEXT_MOST {
            return Err(format!("a text of {length} bytes exceeds {} MiB", TEXT_MOST >> 20));
        }
        if received.len() - end - 1 < length {
            return Ok(None);
        }
        let word = word.to_owned();
        let mut text = std::mem::take(received);
        text.truncate(end + 1 + length);
        text.drain(..=end);
        let text = String::from_utf8(text).map_err(|_| "not UTF-8")?;
        Ok(Some(Self { word, text }))
    }

    /// Reads one message from a source whose reads time out after [`POLL_INTERVAL`]. It must be
    /// complete within `timeout`, and a second more for each [`BYTES_PER_SECOND`].
    pub(super) fn read(mut from: impl Read, timeout: Duration) -> io::Result<Self> {
        use io::ErrorKind::{Interrupted, TimedOut, UnexpectedEof, WouldBlock};
        let clock = Clock::start();
        let (mut received, mut chunk) = (Vec::new(), vec![0; 64 << 10]);
        loop {
            let more_ns = received.len() as u64 * 1_000 / BYTES_PER_SECOND * 1_000_000;
            if u128::from(clock.now_ns()) > timeout.as_nanos() + u128::from(more_ns) {
                let seconds = timeout.as_secs();
                let why = format!(
                    "no complete answer within {seconds} s; a change may have been made: check with status"
                );
                return Err(io::Error::new(TimedOut, why));
            }
            match from.read(&mut chunk) {
                Ok(0) => return Err(UnexpectedEof.into()),
                Ok(read) => received.extend_from_slice(&chunk[..read]),
                Err(error) if matches!(error.kind(), WouldBlock | TimedOut | Interrupted) => {
                    continue;
                }
                Err(error) => return Err(error),
            }
            let message = Self::take(&mut received);
            let wrong = |why| io::Error::new(io::ErrorKind::InvalidData, why);
            if let Some(message) = message.map_err(wrong)? {
                return Ok(message);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> io::Result<Message> {
        Message::read(bytes, Duration::from_secs(60))
    }

    #[test]
    fn a_written_message_is_read() {
        for (word, text) in [("dump", ""), ("apply", "ban 192.0.2.7\n"), ("ok", "é\n")] {
            let message = Message::new(word, text);
            let mut bytes = Vec::new();
            message.write(&mut bytes).unwrap();
            assert_eq!(read(&bytes).unwrap(), message);
        }
    }

    #[test]
    fn a_message_may_arrive_in_pieces() {
        let bytes = Message::new("apply", "ban 192.0.2.7\n").to_bytes();
        let mut received = Vec::new();
        for &byte in &bytes[..bytes.len() - 1] {
            received.push(byte);
            assert_eq!(Message::take(&mut received), Ok(None));
        }
        received.extend(b"\nmore");
        let message = Message::take(&mut received).unwrap().unwrap();
        assert_eq!((message.to_bytes(), received.len()), (bytes, 0));
    }

    #[test]
    fn a_trickling_sender_times_out() {
        /// Returns a byte per read, without end.
        struct Trickle;
        impl Read for Trickle {
            fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
                std::thread::sleep(Duration::from_millis(1));
                bytes[0] = b'\n';
                Ok(1)
            }
        }
        let from = b"ok 100000000\n".chain(Trickle);
        let error = Message::read(from, Duration::from_millis(50)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[test]
    fn a_malformed_message_is_an_error() {
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
