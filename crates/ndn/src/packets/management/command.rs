//! Commands as Interests, and segments of data sets as Data.

use sha2::{Digest, Sha256};

use super::control::ControlParameters;
use crate::packets::write::{put, put_head, put_value, value_len};
use crate::packets::{Component, Element, Elements, Interest, NameBuf, component, kind};

/// A request for a forwarder, read in place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command<'a> {
    /// What it is about: `rib`, `faces`, …
    pub module: &'a [u8],
    /// What is to be done: `register`, `list`, …
    pub verb: &'a [u8],
    /// What follows in the name.
    pub rest: Vec<Component<'a>>,
}

/// Why an Interest is no request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    /// Its name is too short.
    #[error("the name says neither what about nor what to do")]
    TooShort,
    /// The parameters are not those that the name was made for.
    #[error("the digest in the name is not that of the parameters")]
    WrongDigest,
}

impl<'a> Command<'a> {
    /// The prefix of all requests: `/localhost/nfd`.
    pub const PREFIX: &'static [u8] = b"\x08\x09localhost\x08\x03nfd";

    /// Whether a packet is an Interest for the forwarder itself. Looks no further than the beginning of its name, so that
    /// whoever asks it of every packet does not read them twice.
    #[inline]
    pub fn is_for_us(packet: &[u8]) -> bool {
        let name = |packet| {
            let interest = Element::only(packet).ok().filter(|one| one.kind == kind::INTEREST)?;
            let (first, _) = Element::first(interest.value).ok()?;
            (first.kind == kind::NAME).then_some(first.value)
        };
        name(packet).is_some_and(|name| name.starts_with(Self::PREFIX))
    }

    /// Reads a request. The signature is not verified; the digest of the parameters is.
    pub fn read(interest: &Interest<'a>) -> Result<Self, CommandError> {
        let mut components = interest.name.components().skip(2);
        let (Some(module), Some(verb)) = (components.next(), components.next()) else {
            return Err(CommandError::TooShort);
        };
        let rest: Vec<_> = components.collect();
        if let Some(digest) = rest.iter().find(|one| one.kind == component::PARAMETERS_DIGEST)
            && digest.value != parameters_digest(interest.wire)
        {
            return Err(CommandError::WrongDigest);
        }
        Ok(Self { module: module.value, verb: verb.value, rest })
    }

    /// The parameters in the name, if they are well formed.
    pub fn parameters(&self) -> Option<ControlParameters> {
        ControlParameters::read(self.rest.first()?.value).ok()
    }
}

/// The digest of all from the parameters on.
fn parameters_digest(interest: &[u8]) -> [u8; 32] {
    let mut rest = Element::only(interest).map_or(&[][..], |outer| outer.value);
    while let Ok((element, after)) = Element::first(rest) {
        if element.kind == kind::APPLICATION_PARAMETERS {
            break;
        }
        rest = after;
    }
    Sha256::digest(rest).into()
}

/// Appends a command, signed by its digest (DigestSha256). Time and nonce tell it from others of the same words. The scope is
/// `localhost` for the forwarder of this machine, `localhop` for a neighbour.
pub fn command(
    scope: &str,
    module: &str,
    verb: &str,
    parameters: &ControlParameters,
    nonce: u32,
    time_ms: u64,
    out: &mut Vec<u8>,
) {
    let mut name = NameBuf::default();
    for part in [scope.as_bytes(), b"nfd", module.as_bytes(), verb.as_bytes()] {
        name.push(part);
    }
    let mut value = Vec::new();
    parameters.write(&mut value);
    name.push(&value);

    let mut info = Vec::new();
    put_value(&mut info, kind::SIGNATURE_TYPE, 0);
    put(&mut info, kind::SIGNATURE_NONCE, &nonce.to_be_bytes());
    put_value(&mut info, kind::SIGNATURE_TIME, time_ms);
    let mut signed = Vec::new();
    put(&mut signed, kind::APPLICATION_PARAMETERS, &[]);
    put(&mut signed, kind::INTEREST_SIGNATURE_INFO, &info);
    let signature = Sha256::new().chain_update(name.as_bytes()).chain_update(&signed).finalize();
    put(&mut signed, kind::INTEREST_SIGNATURE_VALUE, &signature);
    let mut whole = name.as_bytes().to_vec();
    put(&mut whole, component::PARAMETERS_DIGEST, &Sha256::digest(&signed));

    let mut body = Vec::new();
    put(&mut body, kind::NAME, &whole);
    put(&mut body, kind::MUST_BE_FRESH, &[]);
    put(&mut body, kind::NONCE, &nonce.to_be_bytes());
    body.extend_from_slice(&signed);
    put(out, kind::INTEREST, &body);
}

/// Appends a segment of something larger, signed by its digest: `name`, then its number; `last` is the number of the last.
pub fn segment(name: &NameBuf, number: u64, last: u64, content: &[u8], out: &mut Vec<u8>) {
    let mut name = name.clone();
    name.push_number(component::SEGMENT, number);
    let mut final_block = Vec::new();
    put_value(&mut final_block, component::SEGMENT, last);
    let mut meta = Vec::new();
    put_head(&mut meta, kind::FRESHNESS_PERIOD, value_len(1000));
    meta.extend_from_slice(&1000_u16.to_be_bytes());
    put(&mut meta, kind::FINAL_BLOCK_ID, &final_block);
    let mut body = Vec::new();
    put(&mut body, kind::NAME, name.as_bytes());
    put(&mut body, kind::META_INFO, &meta);
    put(&mut body, kind::CONTENT, content);
    put(&mut body, kind::SIGNATURE_INFO, &[kind::SIGNATURE_TYPE as u8, 1, 0]);
    let digest = Sha256::digest(&body);
    put(&mut body, kind::SIGNATURE_VALUE, &digest);
    put(out, kind::DATA, &body);
}

/// The number of the last segment, as a Data states it.
pub fn last_segment(data: &[u8]) -> Option<u64> {
    let outer = Element::only(data).ok()?;
    let meta = Elements::of(outer.value).flatten().find(|one| one.kind == kind::META_INFO)?;
    let last = Elements::of(meta.value).flatten().find(|one| one.kind == kind::FINAL_BLOCK_ID)?;
    let last = Element::only(last.value).ok()?;
    (last.kind == component::SEGMENT).then(|| last.number().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packets::Data;

    #[test]
    fn a_command_is_read_as_it_was_made_and_no_byte_of_it_may_change() {
        let name = Some("/a/b".parse().unwrap());
        let parameters = ControlParameters { name, cost: Some(7), ..Default::default() };
        let mut wire = Vec::new();
        command(
            "localhost",
            "rib",
            "register",
            &parameters,
            0x0102_0304,
            1_700_000_000_000,
            &mut wire,
        );
        let interest = Interest::read(&wire).unwrap();
        assert!(Command::is_for_us(&wire) && interest.must_be_fresh);
        let read = Command::read(&interest).unwrap();
        assert_eq!((read.module, read.verb), (&b"rib"[..], &b"register"[..]));
        assert_eq!(read.parameters(), Some(parameters));
        let at = wire.len() - 1;
        wire[at] ^= 1;
        let changed = Interest::read(&wire).unwrap();
        assert_eq!(Command::read(&changed), Err(CommandError::WrongDigest));
    }

    #[test]
    fn what_says_too_little_is_no_request() {
        for (text, expected) in [
            ("/localhost/nfd", Err(CommandError::TooShort)),
            ("/localhost/nfd/rib", Err(CommandError::TooShort)),
            ("/localhost/nfd/rib/list", Ok(0)),
            ("/localhost/nfd/rib/list/v=3/seg=0", Ok(2)),
        ] {
            let name: NameBuf = text.parse().unwrap();
            let mut wire = Vec::new();
            crate::packets::NewInterest::new(name.as_name(), 1).write(&mut wire);
            let interest = Interest::read(&wire).unwrap();
            assert!(Command::is_for_us(&wire));
            assert_eq!(Command::read(&interest).map(|read| read.rest.len()), expected, "{text}");
        }
        let other: NameBuf = "/localhost/nfdx/rib/list".parse().unwrap();
        let mut wire = Vec::new();
        crate::packets::NewInterest::new(other.as_name(), 1).write(&mut wire);
        assert!(
            !Command::is_for_us(&wire)
                && !Command::is_for_us(&wire[1..])
                && !Command::is_for_us(&[])
        );
        let ours: NameBuf = "/localhost/nfd/rib/list".parse().unwrap();
        let mut data = Vec::new();
        crate::packets::NewData { name: ours.as_name(), freshness_ms: None, content: &[] }
            .write(&mut data);
        assert!(!Command::is_for_us(&data));
    }

    #[test]
    fn segments_name_the_last_one() {
        let mut wire = Vec::new();
        segment(&"/a/v=1".parse().unwrap(), 2, 300, b"content", &mut wire);
        let data = Data::read(&wire).unwrap();
        assert_eq!(data.name.to_string(), "/a/v=1/seg=2");
        assert_eq!((data.content, data.freshness_ms), (&b"content"[..], 1000));
        assert_eq!(last_segment(&wire), Some(300));
    }
}
