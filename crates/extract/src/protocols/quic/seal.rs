//! Builds protected Initial packets, for tests and fuzzing.

use ring::aead::quic::{AES_128, HeaderProtectionKey};
use ring::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};

use super::header::{Family, Version};
use super::keys::{Keys, Sender};

/// An Initial packet to be built.
pub(crate) struct Plain<'a> {
    pub(crate) version: u32,
    pub(crate) from_client: bool,
    /// The identifier from which the keys follow.
    pub(crate) first: &'a [u8],
    pub(crate) destination: &'a [u8],
    pub(crate) token: &'a [u8],
    pub(crate) number: u16,
    pub(crate) payload: &'a [u8],
}

impl Plain<'_> {
    /// The protected packet; `None` if the version has no keys.
    pub(crate) fn seal(&self) -> Option<Vec<u8>> {
        let version = Version::of(self.version)?;
        let sender = if self.from_client { Sender::Client } else { Sender::Server };
        let keys = Keys::new(version, self.first, sender)?;
        let first = if version.family == Family::Two { 0xd1 } else { 0xc1 };
        let mut header = vec![first];
        header.extend_from_slice(&self.version.to_be_bytes());
        header.push(self.destination.len() as u8);
        header.extend_from_slice(self.destination);
        header.extend_from_slice(b"\x04scid");
        header.extend_from_slice(&(0x4000 | self.token.len() as u16).to_be_bytes());
        header.extend_from_slice(self.token);
        header.extend_from_slice(&(0x4000 | (self.payload.len() + 18) as u16).to_be_bytes());
        header.extend_from_slice(&self.number.to_be_bytes());
        protect(&keys, &header, u64::from(self.number), self.payload)
    }
}

/// Protects a packet. The header ends with the packet number.
pub(super) fn protect(keys: &Keys, header: &[u8], number: u64, payload: &[u8]) -> Option<Vec<u8>> {
    let number_len = usize::from(header.first()? & 3) + 1;
    let number_at = header.len().checked_sub(number_len)?;
    let mut nonce = keys.iv;
    nonce[4..].iter_mut().zip(number.to_be_bytes()).for_each(|(byte, number)| *byte ^= number);
    let key = LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &keys.key).ok()?);
    let mut sealed = payload.to_vec();
    let nonce = Nonce::assume_unique_for_key(nonce);
    key.seal_in_place_append_tag(nonce, Aad::from(header), &mut sealed).ok()?;
    let mut packet = [header, &sealed].concat();
    let sample = packet.get(number_at + 4..)?.get(..16)?;
    let mask = HeaderProtectionKey::new(&AES_128, &keys.header).ok()?.new_mask(sample).ok()?;
    packet[0] ^= mask[0] & 0x0f;
    let number = packet[number_at..number_at + number_len].iter_mut();
    number.zip(&mask[1..]).for_each(|(byte, mask)| *byte ^= mask);
    Some(packet)
}
