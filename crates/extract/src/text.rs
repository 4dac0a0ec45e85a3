//! Short texts, written without allocation.

use std::io::Write;

/// Most bytes of a text.
const TEXT_MAX: usize = 48;

/// A text of at most 48 bytes.
pub(crate) struct Text {
    bytes: [u8; TEXT_MAX],
    start: usize,
    end: usize,
}

impl Text {
    /// The first 48 bytes of a text.
    pub(crate) fn of(value: impl std::fmt::Display) -> Self {
        let mut bytes = [0; TEXT_MAX];
        let mut rest = &mut bytes[..];
        // Addresses fit.
        let _ = write!(rest, "{value}");
        let end = TEXT_MAX - rest.len();
        Self { bytes, start: 0, end }
    }

    /// The digits of a number.
    pub(crate) fn number(number: u64) -> Self {
        let mut bytes = [0; TEXT_MAX];
        let mut start = DIGITS_MAX;
        if let Some(digits) = bytes.first_chunk_mut() {
            start -= decimal(number, digits).len();
        }
        Self { bytes, start, end: DIGITS_MAX }
    }

    /// An IPv4 address.
    pub(crate) fn ipv4(address: [u8; 4]) -> Self {
        let mut text = Self { bytes: [0; TEXT_MAX], start: 0, end: 0 };
        for (at, byte) in address.into_iter().enumerate() {
            if at > 0 {
                text.push(b".");
            }
            text.push(decimal(byte.into(), &mut [0; DIGITS_MAX]));
        }
        text
    }

    /// There must be room.
    fn push(&mut self, bytes: &[u8]) {
        for (place, &byte) in self.bytes[self.end..].iter_mut().zip(bytes) {
            *place = byte;
        }
        self.end += bytes.len();
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }
}

/// Most digits of a number.
pub(crate) const DIGITS_MAX: usize = 20;

/// The decimal digits of a number.
pub(crate) fn decimal(mut number: u64, digits: &mut [u8; DIGITS_MAX]) -> &[u8] {
    let mut at = DIGITS_MAX;
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return &digits[at..];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn texts_are_those_of_the_standard_library() {
        for number in [0, 9, 10, 65_535, 1_000_000, u64::MAX] {
            assert_eq!(Text::number(number).bytes(), number.to_string().as_bytes());
            assert_eq!(Text::of(number).bytes(), number.to_string().as_bytes());
        }
        for address in [[0, 0, 0, 0], [10, 0, 200, 1], [255, 255, 255, 255]] {
            let text = Ipv4Addr::from(address).to_string();
            assert_eq!(Text::ipv4(address).bytes(), text.as_bytes());
        }
    }
}
