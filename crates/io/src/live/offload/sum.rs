//! The Internet checksum (RFC 1071), as separate sum and fold steps.

/// Sum of the bytes as 16-bit words in memory order, not folded. Up to 4 GiB of bytes do not
/// overflow.
#[inline]
pub(super) fn sum(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<4>();
    let whole: u64 = words.iter().map(|&word| u64::from(u32::from_ne_bytes(word))).sum();
    let mut last = [0; 4];
    for (to, from) in last.iter_mut().zip(rest) {
        *to = *from;
    }
    whole + u64::from(u32::from_ne_bytes(last))
}

/// Folds the sum to 16 bits.
pub(super) fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}
