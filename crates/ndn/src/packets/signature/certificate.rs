//! Certificates: Data whose content is a public key.
//!
//! ```text
//!  name     /example / KEY / ID / ISSUER / v=TIME       /example/KEY/ID is the name of the key
//!  Content  SubjectPublicKeyInfo in DER                 SignatureInfo has the ValidityPeriod
//! ```
//!
//! Follows the NDN Certificate Format, version 2.

use super::{KeyError, Signer, signature_info};
use crate::packets::write::{put, put_value};
use crate::packets::{Data, Element, Elements, Error, Name, NameBuf, component, kind};

/// The ContentType of a certificate.
const CONTENT_KEY: u64 = 2;

/// How long a certificate is fresh, in milliseconds: an hour.
const FRESHNESS_MS: u64 = 3_600_000;

/// A view of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Certificate<'a> {
    /// The name.
    pub name: Name<'a>,
    /// The public key as SubjectPublicKeyInfo in DER.
    pub public: &'a [u8],
    /// The first and the last second of the validity, in milliseconds since 1970.
    pub valid_ms: (u64, u64),
}

impl<'a> Certificate<'a> {
    /// Parses a certificate; `wire` must hold exactly this packet. The signature is not verified.
    pub fn read(wire: &'a [u8]) -> Result<Self, Error> {
        let data = Data::read(wire)?;
        if data.content_type != CONTENT_KEY {
            return Err(Error::UnknownPacket);
        }
        let body = Element::only(wire)?.value;
        let within = |bytes: &'a [u8], kind: u32| {
            Elements::of(bytes)
                .flatten()
                .find(|element| element.kind == kind)
                .map(|element| element.value)
                .ok_or(Error::NoSignature)
        };
        let period = within(within(body, kind::SIGNATURE_INFO)?, kind::VALIDITY_PERIOD)?;
        let time = |kind| time_ms(within(period, kind)?).ok_or(Error::BadLength);
        let valid_ms = (time(kind::NOT_BEFORE)?, time(kind::NOT_AFTER)?);
        Ok(Self { name: data.name, public: data.content, valid_ms })
    }

    /// The name of the key: the name up to the component after the last KEY.
    pub fn key_name(&self) -> Option<NameBuf> {
        let bytes = self.name.as_bytes();
        let parts: Vec<_> = self.name.components().zip(self.name.components().offsets()).collect();
        let at = parts.iter().rposition(|(part, _)| part.value == b"KEY")?;
        let end = parts.get(at + 2).map_or(bytes.len(), |&(_, offset)| offset);
        parts.get(at + 1)?;
        let mut name = NameBuf::of(self.name);
        name.truncate(end);
        Some(name)
    }
}

/// A certificate to write.
#[derive(Clone, Copy, Debug)]
pub struct NewCertificate<'a> {
    /// The name of the key: `/example/KEY/ID`.
    pub key_name: Name<'a>,
    /// The issuer: `self` if the key signs its own certificate.
    pub issuer: &'a str,
    /// The version: a time in milliseconds.
    pub version: u64,
    /// The public key as SubjectPublicKeyInfo in DER.
    pub public: &'a [u8],
    /// The first and the last second of the validity, in milliseconds since 1970.
    pub valid_ms: (u64, u64),
}

impl NewCertificate<'_> {
    /// Appends the certificate, signed by `signer`.
    pub fn write(&self, signer: &Signer, out: &mut Vec<u8>) -> Result<(), KeyError> {
        let mut name = NameBuf::of(self.key_name);
        name.push(self.issuer.as_bytes());
        name.push_number(component::VERSION, self.version);
        let mut meta = Vec::new();
        put_value(&mut meta, kind::CONTENT_TYPE, CONTENT_KEY);
        put_value(&mut meta, kind::FRESHNESS_PERIOD, FRESHNESS_MS);
        let mut times = Vec::new();
        put(&mut times, kind::NOT_BEFORE, time_text(self.valid_ms.0).as_bytes());
        put(&mut times, kind::NOT_AFTER, time_text(self.valid_ms.1).as_bytes());
        let mut period = Vec::new();
        put(&mut period, kind::VALIDITY_PERIOD, &times);

        let mut body = Vec::new();
        put(&mut body, kind::NAME, name.as_bytes());
        put(&mut body, kind::META_INFO, &meta);
        put(&mut body, kind::CONTENT, self.public);
        put(&mut body, kind::SIGNATURE_INFO, &signature_info(signer, &period));
        let value = signer.sign(&[&body])?;
        put(&mut body, kind::SIGNATURE_VALUE, &value);
        put(out, kind::DATA, &body);
        Ok(())
    }
}

/// Reads `YYYYMMDDThhmmss`, in UTC, as milliseconds since 1970.
fn time_ms(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok().filter(|text| text.len() == 15)?;
    let number = |from: usize, to: usize| {
        let digits = text.get(from..to)?;
        digits.bytes().all(|one| one.is_ascii_digit()).then(|| digits.parse::<u64>().ok())?
    };
    if text.get(8..9) != Some("T") {
        return None;
    }
    let (year, month, day) = (number(0, 4)?, number(4, 6)?, number(6, 8)?);
    let (hour, minute, second) = (number(9, 11)?, number(11, 13)?, number(13, 15)?);
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || year < 1 {
        return None;
    }
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    // The year begins in March here, so that a leap day is the last of its year.
    let (year, month) = if month < 3 { (year - 1, month + 9) } else { (year, month - 3) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1;
    let days = days.saturating_sub(719_468);
    Some((days * 86_400 + hour * 3_600 + minute * 60 + second) * 1_000)
}

/// Milliseconds since 1970 as `YYYYMMDDThhmmss`, in UTC.
fn time_text(ms: u64) -> String {
    let seconds = ms / 1_000;
    let (year, month, day) = ringtap_base::civil(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_and_written() {
        // `date -u -d … +%s` computed the seconds.
        for (text, seconds) in [
            ("19700101T000000", 0),
            ("20000229T235959", 951_868_799),
            ("20261126T001324", 1_795_652_004),
            ("21000301T000000", 4_107_542_400),
        ] {
            assert_eq!(time_ms(text.as_bytes()), Some(seconds * 1_000), "{text}");
            assert_eq!(time_text(seconds * 1_000), text);
        }
        for wrong in ["", "20261126 001324", "2026112éT00132", "20261326T001324", "+0261126T001324"]
        {
            assert_eq!(time_ms(wrong.as_bytes()), None, "{wrong}");
        }
        // Before 1970, as python-ndn and others write for "no beginning".
        assert_eq!(time_ms(b"00010101T000000"), Some(0));
    }
}
