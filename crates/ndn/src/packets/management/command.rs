//! Management requests as Interests, and segments of data sets as Data.

use sha2::{Digest, Sha256};

use super::control::ControlParameters;
use crate::packets::signature::{KeyError, Signer, signature_info};
use crate::packets::write::{put, put_head, put_value, value_len};
use crate::packets::{Component, Element, Elements, Interest, NameBuf, component, kind};

/// A view of a management request: a command, or a query of a data set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command<'a> {
    /// The module: `rib`, `faces`, …
    pub module: &'a [u8],
    /// The verb: `register`, `list`, …
    pub verb: &'a [u8],
    /// The components of the name after the verb.
    pub rest: Vec<Component<'a>>,
}

/// Why an Interest is not a management request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    /// The name has no module or no verb.
    #[error("name too short: use /localhost/nfd/MODULE/VERB")]
    TooShort,
    /// The parameters do not match the digest in the name.
    #[error("the digest in the name does not match the parameters")]
    WrongDigest,
}

impl<'a> Command<'a> {
    /// The prefix of all requests: `/localhost/nfd`.
    pub const PREFIX: &'static [u8] = b"\x08\x09localhost\x08\x03nfd";

    /// The prefix of commands of neighbours: `/localhop/nfd`.
    pub const NEIGHBOURS: &'static [u8] = b"\x08\x08localhop\x08\x03nfd";

    /// Whether a packet is an Interest under a prefix: [`Command::PREFIX`] or
    /// [`Command::NEIGHBOURS`]. Parses only the start of the name, so that a check of every packet is
    /// cheap.
    #[inline]
    pub fn is_under(packet: &[u8], prefix: &[u8]) -> bool {
        let name = |packet| {
            let interest = Element::only(packet).ok().filter(|one| one.kind == kind::INTEREST)?;
            let (first, _) = Element::first(interest.value).ok()?;
            (first.kind == kind::NAME).then_some(first.value)
        };
        name(packet).is_some_and(|name| name.starts_with(prefix))
    }

    /// Parses a request; `interest` must be under one of the prefixes. The signature is not
    /// verified; a parameters digest in the name is.
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

    /// The parameters in the name; `None` if they are missing or malformed.
    pub fn parameters(&self) -> Option<ControlParameters> {
        ControlParameters::read(self.rest.first()?.value).ok()
    }
}

/// The SHA-256 digest of the application parameters and all elements after them.
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

/// A command to write.
#[derive(Clone, Copy, Debug)]
pub struct NewCommand<'a> {
    /// `localhost` for the forwarder of this machine, `localhop` for a neighbour.
    pub scope: &'a str,
    /// The program that executes it: `nfd` for a forwarder.
    pub application: &'a str,
    /// The module: `rib`, `faces`, …
    pub module: &'a str,
    /// The verb: `register`, …
    pub verb: &'a str,
    /// The parameters.
    pub parameters: &'a ControlParameters,
    /// Distinguishes the command from equal ones.
    pub nonce: u32,
    /// The time of the signature, in milliseconds since 1970; must grow from command to command of
    /// one key.
    pub time_ms: u64,
}

impl NewCommand<'_> {
    /// Appends the command, signed by its digest (DigestSha256).
    pub fn write(&self, out: &mut Vec<u8>) {
        let mut info = Vec::new();
        put_value(&mut info, kind::SIGNATURE_TYPE, 0);
        info.extend_from_slice(&self.nonce_and_time());
        let name = self.name();
        let signed = Self::signed(&info);
        let digest = Sha256::new().chain_update(name.as_bytes()).chain_update(&signed).finalize();
        self.finish(&name, signed, &digest, out);
    }

    /// Appends the command, signed by a key.
    pub fn sign(&self, signer: &Signer, out: &mut Vec<u8>) -> Result<(), KeyError> {
        let name = self.name();
        let signed = Self::signed(&signature_info(signer, &self.nonce_and_time()));
        let value = signer.sign(&[name.as_bytes(), &signed])?;
        self.finish(&name, signed, &value, out);
        Ok(())
    }

    fn name(&self) -> NameBuf {
        let mut name = NameBuf::default();
        for part in [self.scope, self.application, self.module, self.verb] {
            name.push(part.as_bytes());
        }
        let mut value = Vec::new();
        self.parameters.write(&mut value);
        name.push(&value);
        name
    }

    fn nonce_and_time(&self) -> Vec<u8> {
        let mut fields = Vec::new();
        put(&mut fields, kind::SIGNATURE_NONCE, &self.nonce.to_be_bytes());
        put_value(&mut fields, kind::SIGNATURE_TIME, self.time_ms);
        fields
    }

    /// The signed elements after the name: empty parameters and the InterestSignatureInfo.
    fn signed(info: &[u8]) -> Vec<u8> {
        let mut signed = Vec::new();
        put(&mut signed, kind::APPLICATION_PARAMETERS, &[]);
        put(&mut signed, kind::INTEREST_SIGNATURE_INFO, info);
        signed
    }

    /// Appends the Interest with this signature.
    fn finish(&self, name: &NameBuf, mut signed: Vec<u8>, value: &[u8], out: &mut Vec<u8>) {
        put(&mut signed, kind::INTEREST_SIGNATURE_VALUE, value);
        let mut full_name = name.as_bytes().to_vec();
        put(&mut full_name, component::PARAMETERS_DIGEST, &Sha256::digest(&signed));
        let mut body = Vec::new();
        put(&mut body, kind::NAME, &full_name);
        put(&mut body, kind::MUST_BE_FRESH, &[]);
        put(&mut body, kind::NONCE, &self.nonce.to_be_bytes());
        body.extend_from_slice(&signed);
        put(out, kind::INTEREST, &body);
    }
}

/// Appends a command, signed by its digest (DigestSha256). `nonce` and `time_ms`, milliseconds
/// since 1970, distinguish it from equal commands. The scope is `localhost` for the forwarder of
/// this machine, `localhop` for a neighbour.
pub fn command(
    scope: &str,
    module: &str,
    verb: &str,
    parameters: &ControlParameters,
    nonce: u32,
    time_ms: u64,
    out: &mut Vec<u8>,
) {
    let application = "nfd";
    NewCommand { scope, application, module, verb, parameters, nonce, time_ms }.write(out);
}

/// Appends a segment of a data set as a Data, signed by its digest. Its name is `name` and its
/// number; `last` is the number of the last segment. It is fresh for one second.
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

/// The number of the last segment, from the FinalBlockId of a Data; `None` without one.
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
    fn a_written_command_is_read_back_and_a_changed_byte_is_detected() {
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
        assert!(Command::is_under(&wire, Command::PREFIX) && interest.must_be_fresh);
        let read = Command::read(&interest).unwrap();
        assert_eq!((read.module, read.verb), (&b"rib"[..], &b"register"[..]));
        assert_eq!(read.parameters(), Some(parameters));
        let at = wire.len() - 1;
        wire[at] ^= 1;
        let changed = Interest::read(&wire).unwrap();
        assert_eq!(Command::read(&changed), Err(CommandError::WrongDigest));
    }

    #[test]
    fn a_short_name_is_not_a_request() {
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
            assert!(Command::is_under(&wire, Command::PREFIX));
            assert_eq!(Command::read(&interest).map(|read| read.rest.len()), expected, "{text}");
        }
        let other: NameBuf = "/localhost/nfdx/rib/list".parse().unwrap();
        let mut wire = Vec::new();
        crate::packets::NewInterest::new(other.as_name(), 1).write(&mut wire);
        assert!(
            !Command::is_under(&wire, Command::PREFIX)
                && !Command::is_under(&wire[1..], Command::PREFIX)
                && !Command::is_under(&[], Command::PREFIX)
        );
        let ours: NameBuf = "/localhost/nfd/rib/list".parse().unwrap();
        let mut data = Vec::new();
        crate::packets::NewData { name: ours.as_name(), freshness_ms: None, content: &[] }
            .write(&mut data);
        assert!(!Command::is_under(&data, Command::PREFIX));
    }

    #[test]
    fn segments_carry_the_number_of_the_last_one() {
        let mut wire = Vec::new();
        segment(&"/a/v=1".parse().unwrap(), 2, 300, b"content", &mut wire);
        let data = Data::read(&wire).unwrap();
        assert_eq!(data.name.to_string(), "/a/v=1/seg=2");
        assert_eq!((data.content, data.freshness_ms), (&b"content"[..], 1000));
        assert_eq!(last_segment(&wire), Some(300));
    }
}
