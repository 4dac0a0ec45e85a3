//! Bodies whose end is not in the header: chunks, and all bytes until the connection ends.
//!
//! ```text
//! 5;name=value      size, in hexadecimal digits
//! hello             data of this length, which are skipped, and an empty line
//! 0                 the last size
//! Name: value       trailer fields
//!                   an empty line
//! ```
//!
//! A direction is read in order of its sequence numbers, a line at a time, and needs no buffer: of a line only what
//! decides its meaning is kept. Data are skipped by their length, so segments may be missing in them.
//!
//! Bounds: [`DIGITS_MAX`] digits of a size, [`LINE_MAX`] further bytes of its line, [`TRAILER_MAX`] bytes of trailer
//! fields. What exceeds a bound, or is no chunk, loses the end of the body.

/// Most digits of a size.
const DIGITS_MAX: u8 = 16;
/// Most bytes of a line behind the size.
const LINE_MAX: u16 = 4_096;
/// Most bytes of trailer fields.
const TRAILER_MAX: u16 = 16_384;

/// What is known of a body whose end is not in its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frames {
    state: State,
    /// Bytes of data so far.
    octets: u64,
    /// Whether it belongs to a response.
    is_response: bool,
}

/// What the next byte belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// A size; its value and the number of its digits so far.
    Size(u64, u8),
    /// The rest of the line of a size, and the number of its bytes so far.
    Extension(u64, u16),
    /// The end of the line behind data.
    DataEnd,
    /// The line feed behind the carriage return of such a line.
    LineFeed,
    /// Trailer fields: the number of their bytes so far, and what the current line has.
    Trailer(u16, Line),
    /// Data until the connection ends.
    UntilClose,
    /// Unknown: the next message may begin anywhere.
    Lost,
}

/// What a line has so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    Nothing,
    Return,
    Text,
}

/// How far the framing of a body reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framed {
    /// The body goes on: this many bytes behind the last one are data.
    Continues(u64),
    /// The body ends before this position.
    Ends(usize),
    /// What follows is no chunk.
    Broken,
}

impl Frames {
    fn new(state: State, octets: u64, is_response: bool) -> Self {
        Self { state, octets, is_response }
    }

    /// A body in chunks.
    pub(crate) fn chunked(is_response: bool) -> Self {
        Self::new(State::Size(0, 0), 0, is_response)
    }

    /// The body of a response until the connection ends, of which this number of bytes was read.
    pub(super) fn until_close(octets: usize) -> Self {
        Self::new(State::UntilClose, octets as u64, true)
    }

    /// A body whose end is lost.
    pub(crate) fn lost(is_response: bool) -> Self {
        Self::new(State::Lost, 0, is_response)
    }

    /// Whether the end of the body is known once its chunks are read.
    pub(crate) fn is_chunked(&self) -> bool {
        !self.is_lost() && !self.is_until_close()
    }

    /// Whether the body ends with the connection.
    pub(crate) fn is_until_close(&self) -> bool {
        self.state == State::UntilClose
    }

    /// Whether the end of the body is lost.
    pub(crate) fn is_lost(&self) -> bool {
        self.state == State::Lost
    }

    /// Whether the body belongs to a response.
    pub(crate) fn is_response(&self) -> bool {
        self.is_response
    }

    /// Bytes of data so far.
    pub(crate) fn octets(&self) -> u64 {
        self.octets
    }

    /// Reads the next bytes of a chunked body, which begin where the last call ended, and behind the data it returned.
    pub(crate) fn step(&mut self, bytes: &[u8]) -> Framed {
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            at += 1;
            let next = match (self.state, byte) {
                (State::Size(0, 1..) | State::Extension(0, _), b'\n') => {
                    Some(State::Trailer(0, Line::Nothing))
                }
                (State::Size(size, 1..) | State::Extension(size, _), b'\n') => {
                    self.octets = self.octets.saturating_add(size);
                    self.state = State::DataEnd;
                    let there = (bytes.len() - at) as u64;
                    match size.checked_sub(there) {
                        Some(more) => return Framed::Continues(more),
                        // Less than a length of bytes.
                        None => at += size as usize,
                    }
                    continue;
                }
                (State::Size(size, digits), _) => match (byte as char).to_digit(16) {
                    Some(digit) if digits < DIGITS_MAX => {
                        Some(State::Size(size << 4 | u64::from(digit), digits + 1))
                    }
                    None if digits > 0 => Some(State::Extension(size, 0)),
                    _ => None,
                },
                (State::Extension(size, len), _) => {
                    (len < LINE_MAX).then(|| State::Extension(size, len + 1))
                }
                (State::DataEnd, b'\r') => Some(State::LineFeed),
                (State::DataEnd | State::LineFeed, b'\n') => Some(State::Size(0, 0)),
                (State::Trailer(_, Line::Nothing | Line::Return), b'\n') => {
                    return Framed::Ends(at);
                }
                (State::Trailer(len, line), _) => {
                    let line = match (line, byte) {
                        (_, b'\n') => Line::Nothing,
                        (Line::Nothing, b'\r') => Line::Return,
                        _ => Line::Text,
                    };
                    (len < TRAILER_MAX).then(|| State::Trailer(len + 1, line))
                }
                _ => None,
            };
            let Some(next) = next else {
                self.state = State::Lost;
                return Framed::Broken;
            };
            self.state = next;
        }
        Framed::Continues(0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The end of a body in parts of these lengths, and its bytes of data.
    fn read(bytes: &[u8], mut parts: impl Iterator<Item = usize>) -> (Option<Framed>, u64) {
        let mut frames = Frames::chunked(true);
        let mut at = 0;
        while at < bytes.len() {
            let end = (at + parts.next().unwrap_or(usize::MAX).min(bytes.len())).min(bytes.len());
            match frames.step(&bytes[at..end]) {
                Framed::Continues(more) => at = end.saturating_add(more as usize),
                Framed::Ends(len) => return (Some(Framed::Ends(at + len)), frames.octets()),
                Framed::Broken => return (Some(Framed::Broken), frames.octets()),
            }
        }
        (None, frames.octets())
    }

    fn whole(bytes: &[u8]) -> (Option<Framed>, u64) {
        read(bytes, std::iter::empty())
    }

    #[test]
    fn chunks_end_with_their_trailer() {
        assert_eq!(whole(b"0\r\n\r\n"), (Some(Framed::Ends(5)), 0));
        assert_eq!(whole(b"0\n\nGET"), (Some(Framed::Ends(3)), 0));
        let long = b"5;a=\"b\"\r\nhello\r\n00A \n0123456789\n0;x\r\nX: y\r\n\rZ\r\n\r\nHTTP";
        assert_eq!(whole(long), (Some(Framed::Ends(long.len() - 4)), 15));
        assert_eq!(whole(b"5\r\nhel"), (None, 5));
        assert_eq!(whole(b"ffffffffffffffff\r\nhel"), (None, u64::MAX));
        for broken in ["\r\n", "x\r\n", "5\r\nhello!", "5\r\nhello\r!", "11111111111111111\r\n"] {
            assert_eq!(whole(broken.as_bytes()).0, Some(Framed::Broken), "{broken:?}");
        }
        let mut frames = Frames::chunked(false);
        assert_eq!(frames.step(b"1"), Framed::Continues(0));
        assert_eq!(frames.step(b"0\r\n12"), Framed::Continues(14));
        assert_eq!((frames.step(b"\r\n0\r\n\r\n"), frames.octets()), (Framed::Ends(7), 16));
    }

    #[test]
    fn lines_are_bounded() {
        for start in ["1 ", "0\r\nX: "] {
            let mut frames = Frames::chunked(true);
            assert_eq!(frames.step(start.as_bytes()), Framed::Continues(0));
            let ends = (0..100).find(|_| frames.step(&[b'x'; 1_000]) == Framed::Broken);
            assert!(ends.is_some_and(|after| after < 20) && frames.is_lost());
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn chunks_do_not_depend_on_segments(
            chunks in prop::collection::vec("[0-9a]{0,20}|0|;x|\r\n|\n|zz", 0..12),
            parts in prop::collection::vec(1..5_usize, 0..40),
        ) {
            let bytes = chunks.concat();
            prop_assert_eq!(read(bytes.as_bytes(), parts.into_iter()), whole(bytes.as_bytes()));
        }
    }
}
