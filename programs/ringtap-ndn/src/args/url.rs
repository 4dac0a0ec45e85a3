//! Addresses of forwarders, servers and listening sockets.

use std::path::PathBuf;
use std::str::FromStr;

use ringtap_ndn::packets::UDP_PORT;

/// The address of a forwarder, a server or a listening socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Url {
    /// Host and port.
    Udp(String, u16),
    Unix(PathBuf),
}

impl FromStr for Url {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!("invalid forwarder address {text:?}: use udp://HOST:{UDP_PORT} or unix:PATH")
        };
        if let Some(path) = text.strip_prefix("unix:") {
            // Also accepts the URL form unix:///run/nfd.sock.
            let path = path.strip_prefix("//").unwrap_or(path);
            return if path.is_empty() { Err(wrong()) } else { Ok(Self::Unix(path.into())) };
        }
        let address = text.strip_prefix("udp://").ok_or_else(wrong)?;
        let (host, port) = match address.rsplit_once(':') {
            // A colon within brackets belongs to IPv6.
            Some((host, port)) if !port.ends_with(']') => {
                (host, port.parse().ok().filter(|&port| port > 0).ok_or_else(wrong)?)
            }
            _ => (address, UDP_PORT),
        };
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        if host.is_empty() { Err(wrong()) } else { Ok(Self::Udp(host.into(), port)) }
    }
}

impl std::fmt::Display for Url {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Udp(host, port) if host.contains(':') => write!(f, "udp://[{host}]:{port}"),
            Self::Udp(host, port) => write!(f, "udp://{host}:{port}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_parsed_and_formatted() {
        for (text, shown) in [
            ("udp://127.0.0.1", "udp://127.0.0.1:6363"),
            ("udp://host.example:7", "udp://host.example:7"),
            ("udp://[::1]:7", "udp://[::1]:7"),
            ("udp://[::1]", "udp://[::1]:6363"),
            ("unix:/run/f.sock", "unix:/run/f.sock"),
            ("unix:///run/f.sock", "unix:/run/f.sock"),
        ] {
            assert_eq!(text.parse::<Url>().unwrap().to_string(), shown);
        }
        for wrong in ["", "udp://", "udp://:7", "udp://h:0", "udp://h:x", "unix:", "tcp://h:1", "h"]
        {
            assert!(wrong.parse::<Url>().unwrap_err().contains("unix:PATH"), "{wrong}");
        }
    }
}
