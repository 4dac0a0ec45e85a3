//! Commands of NFD's management protocol: a signed Interest (Packet Format 0.3), and the answer in a Data.
//!
//! ```text
//!  /localhost/nfd/rib/register/<ControlParameters 68: Name, …>/params-sha256=…
//!      05 | Name | MustBeFresh | Nonce | Lifetime | Parameters | InterestSignatureInfo {type, nonce, time} | value |
//!           └ but for the digest, signed ┘          └────────────────── signed ──────────────────┘
//!  answer: 65 | StatusCode 66 | StatusText 67 | ControlParameters 68 |
//! ```
//!
//! It is signed by nothing but its own digest: who may command is a matter of the face that it comes by.

use sha2::{Digest, Sha256};

use crate::write::{element_len, put, put_head, put_value, value_len};
use crate::{Element, Elements, Error, Name, NameBuf, component, kind};

/// A command to be written.
#[derive(Clone, Copy, Debug)]
pub struct NewCommand<'a> {
    /// Whose: `/localhost/nfd/rib`.
    pub module: Name<'a>,
    /// What: `register`.
    pub verb: &'a str,
    /// The prefix that it is about.
    pub prefix: Name<'a>,
    /// 4 bytes that tell this Interest from others.
    pub nonce: u32,
    /// When it was signed: milliseconds since 1970, another one for each command.
    pub time_ms: u64,
    /// For how long the answer is waited for, in milliseconds.
    pub lifetime_ms: u64,
}

impl NewCommand<'_> {
    /// Appends its bytes.
    pub fn write(&self, out: &mut Vec<u8>) {
        let mut name = NameBuf::of(self.module);
        name.push(self.verb.as_bytes());
        let mut about = Vec::new();
        put(&mut about, kind::NAME, self.prefix.as_bytes());
        let mut parameters = Vec::new();
        put(&mut parameters, kind::CONTROL_PARAMETERS, &about);
        name.push(&parameters);

        let mut info = Vec::new();
        put_value(&mut info, kind::SIGNATURE_TYPE, 0);
        put(&mut info, kind::SIGNATURE_NONCE, &self.nonce.to_be_bytes());
        put_value(&mut info, kind::SIGNATURE_TIME, self.time_ms);
        let mut signed = Vec::new();
        put(&mut signed, kind::APPLICATION_PARAMETERS, &[]);
        put(&mut signed, kind::INTEREST_SIGNATURE_INFO, &info);
        let value = Sha256::new().chain_update(name.as_bytes()).chain_update(&signed).finalize();
        put(&mut signed, kind::INTEREST_SIGNATURE_VALUE, &value);

        let digest = Sha256::digest(&signed);
        let name_len =
            name.as_bytes().len() + element_len(component::PARAMETERS_DIGEST, digest.len());
        let body = element_len(kind::NAME, name_len)
            + element_len(kind::MUST_BE_FRESH, 0)
            + element_len(kind::NONCE, 4)
            + element_len(kind::INTEREST_LIFETIME, value_len(self.lifetime_ms))
            + signed.len();
        put_head(out, kind::INTEREST, body);
        put_head(out, kind::NAME, name_len);
        out.extend_from_slice(name.as_bytes());
        put(out, component::PARAMETERS_DIGEST, &digest);
        put(out, kind::MUST_BE_FRESH, &[]);
        put(out, kind::NONCE, &self.nonce.to_be_bytes());
        put_value(out, kind::INTEREST_LIFETIME, self.lifetime_ms);
        out.extend_from_slice(&signed);
    }
}

/// What became of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControlResponse<'a> {
    /// 200 is success; the numbers are HTTP's.
    pub code: u64,
    /// The same for people.
    pub text: &'a [u8],
}

impl<'a> ControlResponse<'a> {
    /// Reads what is all of a Data's content.
    pub fn read(content: &'a [u8]) -> Result<Self, Error> {
        let outer = Element::only(content)?;
        if outer.kind != kind::CONTROL_RESPONSE {
            return Err(Error::UnknownPacket);
        }
        let mut read = Self { code: 0, text: b"" };
        for element in Elements::of(outer.value) {
            let element = element?;
            match element.kind {
                kind::STATUS_CODE => read.code = element.number()?,
                kind::STATUS_TEXT => read.text = element.value,
                _ => {}
            }
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Interest;

    #[test]
    fn a_command_is_an_interest_whose_digests_agree() {
        let (module, prefix) = ("/localhost/nfd/rib".parse::<NameBuf>(), "/a/b".parse::<NameBuf>());
        let (module, prefix) = (module.unwrap(), prefix.unwrap());
        let command = NewCommand {
            module: module.as_name(),
            verb: "register",
            prefix: prefix.as_name(),
            nonce: 0x0102_0304,
            time_ms: 1_700_000_000_000,
            lifetime_ms: 4000,
        };
        let mut wire = Vec::new();
        command.write(&mut wire);
        let read = Interest::read(&wire).unwrap();
        assert_eq!((read.nonce, read.must_be_fresh), (Some(0x0102_0304), true));
        assert_eq!(read.parameters, Some(&[][..]));
        let text = read.name.to_string();
        let about = "/localhost/nfd/rib/register/h%08%07%06%08%01a%08%01b/params-sha256=";
        assert!(text.starts_with(about), "{text}");

        // The digest is over all from the parameters on, the value over all but the digest and itself.
        let at = wire.windows(2).position(|two| two == [0x24, 0]).unwrap();
        let digest = read.name.components().last().unwrap().value;
        assert_eq!(digest, &Sha256::digest(&wire[at..])[..]);
        let (rest, value) = wire.split_at(wire.len() - 32);
        let name = read.name.as_bytes();
        let signed = [&name[..name.len() - 34], &rest[at..rest.len() - 2]].concat();
        assert_eq!(value, &Sha256::digest(signed)[..]);
    }

    #[test]
    fn answers_are_read_and_bad_bytes_are_errors() {
        let answer = b"\x65\x0a\x66\x02\x01\x93\x67\x02no\x68\x00";
        let read = ControlResponse::read(answer);
        assert_eq!(read, Ok(ControlResponse { code: 403, text: b"no" }));
        for len in 0..answer.len() {
            assert!(ControlResponse::read(&answer[..len]).is_err(), "{len}");
        }
        assert_eq!(ControlResponse::read(b"\x68\x00"), Err(Error::UnknownPacket));
        assert_eq!(ControlResponse::read(b"\x65\x05\x66\x03\x01\x02\x03"), Err(Error::BadLength));
    }
}
