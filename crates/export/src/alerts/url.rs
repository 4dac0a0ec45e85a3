//! URLs of HTTP servers.

use std::hash::Hasher;

use crate::transports::host_and_port;

/// A URL with the scheme http or https.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Url {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) is_encrypted: bool,
    /// Path and query; begins with `/`.
    pub(crate) target: String,
}

impl Url {
    pub(super) fn parse(is_encrypted: bool, rest: &str) -> Option<Self> {
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, target) = rest.split_at(end);
        let (host, port) = host_and_port(authority, Some(if is_encrypted { 443 } else { 80 }))?;
        // A fragment stays with the client (RFC 9110, section 7.1).
        let target = target.split('#').next().unwrap_or_default();
        let is_valid = |byte: u8| byte.is_ascii_graphic();
        let target = if target.starts_with('/') { target.into() } else { format!("/{target}") };
        target.bytes().all(is_valid).then_some(Self { host, port, is_encrypted, target })
    }

    /// The host, with the port if it is not the usual one; for names and the field `Host`.
    pub(crate) fn authority(&self) -> String {
        let host =
            if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        let usual = if self.is_encrypted { 443 } else { 80 };
        if self.port == usual { host } else { format!("{host}:{}", self.port) }
    }

    /// Without its path, which may be a secret; a few digits of a hash distinguish paths.
    pub(super) fn name(&self) -> String {
        let scheme = if self.is_encrypted { "https" } else { "http" };
        let path = if self.target == "/" {
            String::new()
        } else {
            #[expect(deprecated, reason = "a hash that is equal in every build")]
            let mut hasher = std::hash::SipHasher::new();
            hasher.write(self.target.as_bytes());
            format!("…{:04x}", hasher.finish() & 0xffff)
        };
        format!("{scheme}://{}/{path}", self.authority())
    }
}
