//! The registered numbers of values, for formats that have numbers in place of names.

use crate::protocols::{dns, tls};
use crate::{Kind, Type};

impl Kind {
    /// The number of a value: its digits, or the registered number of its name. `None` if there is none, and for kinds
    /// of names without numbers.
    ///
    /// ```
    /// use ringtap_extract::Kind;
    ///
    /// assert_eq!(Kind::TlsVersion.number(b"TLS 1.3"), Some(0x0304));
    /// assert_eq!(Kind::DnsQueryType.number(b"TYPE64000"), Some(64_000));
    /// assert_eq!(Kind::HttpStatus.number(b"404"), Some(404));
    /// assert_eq!(Kind::SshClient.number(b"SSH-2.0"), None);
    /// ```
    pub fn number(self, value: &[u8]) -> Option<u64> {
        let value = std::str::from_utf8(value).ok()?;
        let registered = |number: Option<u16>| number.map(u64::from);
        match self {
            Self::TlsVersion | Self::TlsClientVersion => {
                registered(tls::version_number(value)).or_else(|| hexadecimal(value))
            }
            Self::TlsCipher => registered(tls::cipher_number(value)).or_else(|| hexadecimal(value)),
            Self::DnsQueryType => {
                registered(dns::type_number(value)).or_else(|| after("TYPE", value))
            }
            Self::DnsQueryClass => {
                registered(dns::class_number(value)).or_else(|| after("CLASS", value))
            }
            // The bits of the header.
            Self::DnsFlags => registered(dns::flags_number(value)),
            Self::DnsResponseCode => {
                registered(dns::code_number(value)).or_else(|| after("RCODE", value))
            }
            _ if self.value_type() == Type::Number => value.parse().ok(),
            _ => None,
        }
    }
}

/// The number in the name of a value that is not registered.
fn hexadecimal(name: &str) -> Option<u64> {
    u64::from_str_radix(name.strip_prefix("0x")?, 16).ok()
}

fn after(prefix: &str, name: &str) -> Option<u64> {
    name.strip_prefix(prefix)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_the_numbers_they_were_made_of() {
        let all = [
            (Kind::TlsVersion, "SSL 3.0", 0x0300),
            (Kind::TlsVersion, "DTLS 1.2", 0xfefd),
            (Kind::TlsVersion, "TLS 1.3 draft-28", 0x7f1c),
            (Kind::TlsVersion, "0xfb1a", 0xfb1a),
            (Kind::TlsCipher, "TLS_AES_128_GCM_SHA256", 0x1301),
            (Kind::TlsCipher, "0xfefe", 0xfefe),
            (Kind::DnsQueryType, "AAAA", 28),
            (Kind::DnsQueryType, "TYPE65535", 65_535),
            (Kind::DnsQueryClass, "CH", 3),
            (Kind::DnsQueryClass, "CLASS7", 7),
            (Kind::DnsFlags, "RD RA", 0x0180),
            (Kind::DnsFlags, "UPDATE AA CD", 0x2c10),
            (Kind::DnsResponseCode, "NOERROR", 0),
            (Kind::DnsResponseCode, "NXDOMAIN", 3),
            (Kind::DnsResponseCode, "RCODE3841", 3_841),
            (Kind::NtpStratum, "2", 2),
        ];
        for (kind, name, number) in all {
            assert_eq!(kind.number(name.as_bytes()), Some(number), "{name}");
        }
        for (kind, other) in [(Kind::TlsCipher, "x"), (Kind::DnsQueryType, "\u{fffd}")] {
            assert_eq!(kind.number(other.as_bytes()), None);
        }
        assert_eq!(Kind::DnsQueryName.number(b"1"), None);
    }
}
