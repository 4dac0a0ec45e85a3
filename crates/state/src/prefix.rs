//! The first bytes of keys, as numbers that are compared quickly.

/// The first bytes of a key as a number in the order of the keys of a table. A gap of zeros takes one of them, as behind an
/// IPv4 address in 16 bytes, so that more of what differs is in the number.
#[inline]
pub(crate) fn prefix(key: &[u8]) -> u128 {
    const GAP: usize = 12;
    const BEHIND: usize = 5 + GAP;
    let Some(head) = key.first_chunk::<{ BEHIND + 10 }>() else {
        return short(key);
    };
    let first = u128::from(word(&head[..8]) >> 24) << 88;
    if head[5..BEHIND] == [0; GAP] {
        first
            | u128::from(word(&head[BEHIND..])) << 16
            | u128::from(word(&head[BEHIND + 2..]) & 0xffff)
    } else {
        first | 1 << 80 | u128::from(word(&head[5..])) << 16 | u128::from(word(&head[7..]) & 0xffff)
    }
}

/// The number of the first eight bytes.
#[inline]
fn word(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes))
}

/// The first bytes of a short key.
fn short(key: &[u8]) -> u128 {
    let mut out = [0; size_of::<u128>()];
    out.iter_mut().zip(key).for_each(|(to, from)| *to = *from);
    u128::from_be_bytes(out)
}
