//! Numbers in lines of text.

pub(crate) const fn milliseconds(ns: u64) -> u64 {
    ns / 1_000_000
}

const fn digits(number: usize) -> [u8; 3] {
    [b'0' + (number / 100) as u8, b'0' + (number / 10 % 10) as u8, b'0' + (number % 10) as u8]
}

/// Numbers below a thousand, which most numbers of a record are: their digits from the left, and how many there are.
static SMALL: [[u8; 4]; 1_000] = {
    let (mut all, mut number) = ([[0; 4]; 1_000], 0);
    while number < all.len() {
        let [a, b, c] = digits(number);
        all[number] = match number {
            0..10 => [c, 0, 0, 1],
            10..100 => [b, c, 0, 2],
            _ => [a, b, c, 3],
        };
        number += 1;
    }
    all
};

/// Appends a number in decimal digits.
#[inline]
pub(crate) fn push_number(line: &mut Vec<u8>, number: impl Into<u64>) {
    let number = number.into();
    let Some(digits) = usize::try_from(number).ok().and_then(|number| SMALL.get(number)) else {
        line.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
        return;
    };
    // Copies of a known length are a single store, so the excess is copied and cut off.
    line.extend_from_slice(digits);
    line.truncate(line.len() - 4 + usize::from(digits[3]));
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
