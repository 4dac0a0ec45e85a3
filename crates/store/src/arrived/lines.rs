//! Lines of any input, in bounded memory.

use std::io::{self, BufRead};

/// Most bytes of a line. A record with all the facts that a flow may keep has fewer.
pub(super) const LINE_BYTES: usize = 16 << 20;

/// The lines of an input.
pub(super) struct Lines<R> {
    input: R,
    line: Vec<u8>,
    /// The number of the line that was returned last, from 1.
    pub(super) number: u64,
}

/// A line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    /// Without the end of the line.
    Whole(&'a [u8]),
    /// Longer than [`LINE_BYTES`].
    TooLong,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(input: R) -> Self {
        Self { input, line: Vec::new(), number: 0 }
    }

    /// The next line that is not blank; `None` at the end.
    pub(super) fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        loop {
            let Some(whole) = self.read()? else { return Ok(None) };
            self.number += 1;
            if !whole {
                return Ok(Some(Line::TooLong));
            }
            if !self.line.trim_ascii().is_empty() {
                break;
            }
        }
        Ok(Some(Line::Whole(self.line.trim_ascii_end())))
    }

    /// Reads a line; false if it is too long, and `None` at the end.
    fn read(&mut self) -> io::Result<Option<bool>> {
        self.line.clear();
        let (mut any, mut fits) = (false, true);
        loop {
            let bytes = match self.input.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                other => other?,
            };
            if bytes.is_empty() {
                return Ok(any.then_some(fits));
            }
            any = true;
            let end = bytes.iter().position(|&byte| byte == b'\n');
            let part = &bytes[..end.unwrap_or(bytes.len())];
            fits &= self.line.len() + part.len() <= LINE_BYTES;
            if fits {
                self.line.extend_from_slice(part);
            }
            let used = part.len() + usize::from(end.is_some());
            self.input.consume(used);
            if end.is_some() {
                return Ok(Some(fits));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufReader, Read};

    use super::*;

    #[test]
    fn a_line_of_any_length_takes_bounded_memory() {
        let long = io::repeat(b'a').take(100 << 20).chain(&b"\nb\n\n c"[..]);
        let mut lines = Lines::new(BufReader::new(long));
        assert_eq!(lines.next().unwrap(), Some(Line::TooLong));
        assert_eq!(lines.next().unwrap(), Some(Line::Whole(b"b")));
        assert_eq!(lines.next().unwrap(), Some(Line::Whole(b" c")));
        assert_eq!((lines.number, lines.next().unwrap()), (4, None));
        assert!(lines.line.capacity() <= 2 * LINE_BYTES, "{}", lines.line.capacity());
        let longest = io::repeat(b'a').take(LINE_BYTES as u64);
        let mut lines = Lines::new(BufReader::new(longest));
        assert!(
            matches!(lines.next().unwrap(), Some(Line::Whole(line)) if line.len() == LINE_BYTES)
        );
    }
}
