//! Who may see a page: on the loopback address all users of the machine, else those who know the token.

use std::fs::File;
use std::io::Read;
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use anyhow::Context;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ringtap_terminal::Usage;

use ringtap_serve::{Get, Reply};

/// The shortest token, bytes.
const SHORTEST: usize = 16;
/// The longest part of a file that is read.
const MOST: u64 = 4096;
/// The right of all users to read a file.
const OTHERS: u32 = 0o004;

/// The rule.
pub(crate) struct Access(Option<Vec<u8>>);

impl Access {
    /// The rule of a page at `address`, with the token in this file, if any.
    pub(crate) fn new(address: SocketAddr, token: Option<&Path>) -> anyhow::Result<Self> {
        let Some(path) = token else {
            if address.ip().is_loopback() {
                return Ok(Self(None));
            }
            return Err(Usage::of(format!(
                "--web {address} can be reached from other machines: use --web-token FILE with a secret of at least \
                 {SHORTEST} bytes, or a port alone"
            )));
        };
        let shown = path.display();
        let named = || format!("reading the token in {shown}");
        let file = File::open(path).map_err(Usage::of).with_context(named)?;
        let about = file.metadata().map_err(Usage::of).with_context(named)?;
        if about.is_file() && about.mode() & OTHERS != 0 {
            return Err(Usage::of(format!(
                "--web-token {shown}: other users can read the token; use: chmod o= {shown}"
            )));
        }
        let mut text = Vec::new();
        file.take(MOST).read_to_end(&mut text).map_err(Usage::of).with_context(named)?;
        let token = text.trim_ascii().to_vec();
        if token.len() < SHORTEST {
            return Err(Usage::of(format!(
                "--web-token {shown}: the token is shorter than {SHORTEST} bytes"
            )));
        }
        Ok(Self(Some(token)))
    }

    /// Refuses a request without the token, or one of another site. A page without a token is one of the loopback address.
    pub(super) fn check(&self, request: &Get<'_>) -> Result<(), Reply> {
        request.check_site(self.0.is_none())?;
        match &self.0 {
            Some(token) if given(request.authorization).is_some_and(|own| equal(&own, token)) => {
                Ok(())
            }
            Some(_) => Err(Reply::None("401 Unauthorized", "this page needs its token\n".into())),
            None => Ok(()),
        }
    }
}

/// The token in credentials: `Bearer TOKEN`, or `Basic` with any name and the token as password (RFC 7617).
fn given(authorization: &str) -> Option<Vec<u8>> {
    let (scheme, value) = authorization.split_once(' ')?;
    if scheme.eq_ignore_ascii_case("bearer") {
        return Some(value.trim().as_bytes().to_vec());
    }
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let pair = STANDARD.decode(value.trim()).ok()?;
    let colon = pair.iter().position(|byte| *byte == b':')?;
    Some(pair[colon + 1..].to_vec())
}

/// Compares in a time that does not depend on where they differ.
fn equal(one: &[u8], other: &[u8]) -> bool {
    let differences = one.iter().zip(other).fold(0, |all, (a, b)| all | (a ^ b));
    one.len() == other.len() && std::hint::black_box(differences) == 0
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn request<'a>(host: &'a str, authorization: &'a str) -> Get<'a> {
        Get { path: "/", query: "", host, authorization, is_foreign: false }
    }

    #[test]
    fn another_machine_needs_the_token() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let all: SocketAddr = "0.0.0.0:80".parse().unwrap();
        assert!(Access::new(all, None).is_err());
        assert!(Access::new(all, Some(&path)).is_err(), "no file");
        std::fs::write(&path, "a:secret of enough bytes\n").unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        assert!(Access::new(all, Some(&path)).is_err(), "others can read it");
        std::fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        std::fs::write(&path, "short\n").unwrap();
        assert!(Access::new(all, Some(&path)).is_err());
        std::fs::write(&path, "a:secret of enough bytes\n").unwrap();
        let access = Access::new(all, Some(&path)).unwrap();
        let basic = |pair: &str| format!("Basic {}", STANDARD.encode(pair));
        for right in [
            "Bearer a:secret of enough bytes".to_owned(),
            basic("anyone:a:secret of enough bytes"),
            basic(":a:secret of enough bytes").replace("Basic", "basic"),
        ] {
            assert_eq!(access.check(&request("a.example", &right)), Ok(()), "{right}");
        }
        for wrong in [
            String::new(),
            "Bearer".into(),
            "Bearer a:secret of enough byte".into(),
            "Bearer a:secret of enough bytes and more".into(),
            basic("a:secret of enough bytes"),
            "Basic ????".into(),
            "Digest a:secret of enough bytes".into(),
        ] {
            assert!(access.check(&request("a.example", &wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn without_a_token_other_names_than_the_address_are_refused() {
        let access = Access::new("127.0.0.1:80".parse().unwrap(), None).unwrap();
        assert_eq!(access.check(&request("localhost", "")), Ok(()));
        assert!(access.check(&request("a.example", "")).is_err());
        let foreign = Get { is_foreign: true, ..request("localhost", "") };
        assert!(access.check(&foreign).is_err());
    }
}
