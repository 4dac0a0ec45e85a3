//! Whole lines on their way out, and the numbers in them.

use std::io::{self, BufWriter, Write};

/// Enough that a system call carries a hundred records.
const HELD_BACK: usize = 64 << 10;

/// A line is laid out in one buffer and handed on at once, so the destination's errors never leave half a line behind
/// a whole one.
pub(crate) struct Lines<W: Write> {
    out: BufWriter<W>,
    line: Vec<u8>,
}

impl<W: Write> Lines<W> {
    pub(crate) fn new(out: W) -> Self {
        Self { out: BufWriter::with_capacity(HELD_BACK, out), line: Vec::with_capacity(2 << 10) }
    }

    #[inline]
    pub(crate) fn write(&mut self, lay_out: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        self.line.clear();
        lay_out(&mut self.line);
        self.line.push(b'\n');
        self.out.write_all(&self.line)
    }

    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

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
