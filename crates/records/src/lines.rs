//! Numbers in lines of text.

pub(crate) const fn milliseconds(ns: u64) -> u64 {
    ns / 1_000_000
}

/// Appends a number in decimal digits.
#[inline]
pub(crate) fn push_number(line: &mut Vec<u8>, number: impl itoa::Integer) {
    line.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Appends the last `N` decimal digits, zeros and all.
#[inline]
pub(crate) fn push_digits<const N: usize>(line: &mut Vec<u8>, mut number: u32) {
    let mut digits = [0; N];
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
    line.extend_from_slice(&digits);
}

/// Appends two hexadecimal digits.
#[inline]
pub(crate) fn push_hex(line: &mut Vec<u8>, byte: u8) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    line.extend_from_slice(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
}
