//! Removal of the protection of an Initial packet (RFC 9001, sections 5.3 and 5.4).
//!
//! ```text
//!  header | number | payload …                    | tag |
//!  ───────┼────────┼──── 4 bytes from `number_at` ┼─────
//!         └─ mask ◀┴─ AES-ECB of the 16 bytes there
//! ```

use ring::aead::quic::{AES_128, HeaderProtectionKey};
use ring::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};

use super::keys::Keys;

/// The sample for header protection begins this many bytes after the beginning of the packet number.
const SAMPLE_AT: usize = 4;
const SAMPLE: usize = 16;

/// A packet that was read.
pub(super) struct Opened<'a> {
    pub(super) number: u64,
    pub(super) payload: &'a [u8],
}

/// Decrypts a packet into `scratch`; `None` if its tag does not match the keys. `largest` is the largest packet number
/// of its sender so far.
pub(super) fn open<'a>(
    packet: &[u8],
    number_at: usize,
    keys: &Keys,
    largest: Option<u64>,
    scratch: &'a mut Vec<u8>,
) -> Option<Opened<'a>> {
    scratch.clear();
    scratch.extend_from_slice(packet);
    let sample = packet.get(number_at + SAMPLE_AT..)?.get(..SAMPLE)?;
    let protection = HeaderProtectionKey::new(&AES_128, &keys.header).ok()?;
    let [mask, number_mask @ ..] = protection.new_mask(sample).ok()?;
    let first = scratch.first_mut()?;
    *first ^= mask & 0x0f;
    let number_len = usize::from(*first & 3) + 1;
    let mut sent = 0;
    for (byte, mask) in
        scratch.get_mut(number_at..number_at + number_len)?.iter_mut().zip(number_mask)
    {
        *byte ^= mask;
        sent = sent << 8 | u64::from(*byte);
    }
    let number = full_number(sent, 8 * number_len as u32, largest);
    let mut nonce = keys.iv;
    nonce[4..].iter_mut().zip(number.to_be_bytes()).for_each(|(byte, number)| *byte ^= number);
    let (header, sealed) = scratch.split_at_mut(number_at + number_len);
    let key = LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &keys.key).ok()?);
    let nonce = Nonce::assume_unique_for_key(nonce);
    let payload = key.open_in_place(nonce, Aad::from(&*header), sealed).ok()?;
    Some(Opened { number, payload })
}

/// The packet number of which these lower bits were sent (RFC 9000, appendix A.3).
fn full_number(sent: u64, bits: u32, largest: Option<u64>) -> u64 {
    let expected = largest.map_or(0, |largest| largest + 1);
    let (window, half) = (1_u64 << bits, 1_u64 << (bits - 1));
    let number = expected & !(window - 1) | sent;
    if number + half <= expected {
        number + window
    } else if number > expected + half && number >= window {
        number - window
    } else {
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packet_numbers_are_completed_from_the_largest() {
        // RFC 9000, appendix A.3.
        assert_eq!(full_number(0x9b32, 16, Some(0xa82f_30ea)), 0xa82f_9b32);
        assert_eq!(full_number(2, 8, None), 2);
        assert_eq!(full_number(200, 8, None), 200);
        assert_eq!(full_number(1, 8, Some(255)), 257);
        assert_eq!(full_number(0xff, 8, Some(0x101)), 0xff);
        assert_eq!(full_number(7, 32, Some(u64::from(u32::MAX) - 1)), 1 << 32 | 7);
    }
}
