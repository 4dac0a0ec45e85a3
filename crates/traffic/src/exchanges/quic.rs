//! Protected QUIC Initial packets (RFC 9000, section 17.2.2; RFC 9001, section 5).
//!
//! ```text
//! | 1100 0000 | version 4 | 8 destination | 8 source | token length 0 | length 2 | number 1 | frames … | tag 16 |
//!    └───┬──┘                                                          protected ──┘         encrypted
//!     lower 4 bits protected
//! ```
//!
//! A datagram is one packet, padded to 1200 bytes.

use hmac::{Hmac, KeyInit, Mac};
use ring::aead::quic::{AES_128, HeaderProtectionKey};
use ring::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use sha2::Sha256;

/// RFC 9001, section 5.2.
const SALT: [u8; 20] = [
    0x38, 0x76, 0x2c, 0xf7, 0xf5, 0x59, 0x34, 0xb3, 0x4d, 0x17, 0x9a, 0xe6, 0xa4, 0xc8, 0x0c, 0xad,
    0xcc, 0xbb, 0x7f, 0x0a,
];
/// Bytes of a datagram with an Initial packet.
pub(super) const DATAGRAM: usize = 1200;
/// Bytes before the packet number.
const NUMBER_AT: usize = 1 + 4 + 9 + 9 + 1 + 2;
const TAG: usize = 16;
/// Most CRYPTO data of a datagram, with room for an ACK frame and the header of the CRYPTO frame.
pub(super) const CRYPTO_MAX: usize = DATAGRAM - NUMBER_AT - 1 - TAG - 5 - 6;

/// An Initial packet.
pub(super) struct Initial<'a> {
    /// The first connection identifier to which the client sent, from which keys follow.
    pub(super) first: [u8; 8],
    pub(super) destination: [u8; 8],
    pub(super) source: [u8; 8],
    pub(super) from_client: bool,
    pub(super) number: u8,
    /// Whether it acknowledges packet 0.
    pub(super) acknowledges: bool,
    /// Position and bytes of the CRYPTO data.
    pub(super) at: usize,
    pub(super) crypto: &'a [u8],
}

impl Initial<'_> {
    /// Appends the packet to `out`; `None` if the data is too long.
    pub(super) fn write(&self, out: &mut Vec<u8>) -> Option<()> {
        let start = out.len();
        out.extend_from_slice(&[0xc0, 0, 0, 0, 1, 8]);
        out.extend_from_slice(&self.destination);
        out.push(8);
        out.extend_from_slice(&self.source);
        out.push(0);
        // Numbers of two bytes (RFC 9000, section 16).
        let two = |number: usize| (0x4000 | number as u16).to_be_bytes();
        out.extend_from_slice(&two(DATAGRAM - NUMBER_AT));
        out.push(self.number);
        let frames_at = out.len();
        if self.acknowledges {
            out.extend_from_slice(&[2, 0, 0, 0, 0]);
        }
        out.push(6);
        out.extend_from_slice(&two(self.at));
        out.extend_from_slice(&two(self.crypto.len()));
        out.extend_from_slice(self.crypto);
        if out.len() - start > DATAGRAM - TAG {
            return None;
        }
        // Zeros are PADDING frames.
        out.resize(start + DATAGRAM - TAG, 0);

        let keys = Keys::new(&self.first, self.from_client)?;
        let mut nonce = keys.iv;
        nonce[11] ^= self.number;
        let (header, frames) = out[start..].split_at_mut(frames_at - start);
        let key = LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &keys.key).ok()?);
        let nonce = Nonce::assume_unique_for_key(nonce);
        let tag = key.seal_in_place_separate_tag(nonce, Aad::from(header), frames).ok()?;
        out.extend_from_slice(tag.as_ref());
        // The sample begins four bytes after the beginning of the number (RFC 9001, section 5.4.2).
        let packet = &mut out[start..];
        let sample = packet.get(NUMBER_AT + 4..NUMBER_AT + 20)?;
        let mask = HeaderProtectionKey::new(&AES_128, &keys.header).ok()?.new_mask(sample).ok()?;
        packet[0] ^= mask[0] & 0x0f;
        packet[NUMBER_AT] ^= mask[1];
        Some(())
    }
}

struct Keys {
    key: [u8; 16],
    iv: [u8; 12],
    header: [u8; 16],
}

impl Keys {
    fn new(first: &[u8], from_client: bool) -> Option<Self> {
        let extracted = Hmac::<Sha256>::new_from_slice(&SALT).ok()?;
        let extracted = extracted.chain_update(first).finalize().into_bytes();
        let label: &[u8] = if from_client { b"client in" } else { b"server in" };
        let secret: [u8; 32] = expand(&extracted, label)?;
        Some(Self {
            key: expand(&secret, b"quic key")?,
            iv: expand(&secret, b"quic iv")?,
            header: expand(&secret, b"quic hp")?,
        })
    }
}

/// HKDF-Expand-Label (RFC 8446, section 7.1) for at most 32 bytes, without a context.
fn expand<const LEN: usize>(secret: &[u8], label: &[u8]) -> Option<[u8; LEN]> {
    let mac = Hmac::<Sha256>::new_from_slice(secret).ok()?;
    let mac = mac.chain_update([0, LEN as u8, 6 + label.len() as u8]).chain_update(b"tls13 ");
    let all = mac.chain_update(label).chain_update([0, 1]).finalize().into_bytes();
    all.get(..LEN)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_those_of_the_standard() {
        // RFC 9001, appendix A.1.
        let keys = Keys::new(b"\x83\x94\xc8\xf0\x3e\x51\x57\x08", true).unwrap();
        assert_eq!(keys.key, 0x1f36_9613_dd76_d546_7730_efcb_e3b1_a22d_u128.to_be_bytes());
        assert_eq!(keys.header, 0x9f50_449e_04a0_e810_283a_1e99_33ad_edd2_u128.to_be_bytes());
        let server = Keys::new(b"\x83\x94\xc8\xf0\x3e\x51\x57\x08", false).unwrap();
        assert_eq!(server.key, 0xcf3a_5331_653c_364c_88f0_f379_b606_7e37_u128.to_be_bytes());
    }
}
