//! The kinds of facts: one list, from which records, events and the report take names and types.

/// How many values of a kind a flow keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// The first value.
    One,
    /// The last value.
    Last,
    /// The first 16 distinct values.
    List,
    /// None: the value is in events alone.
    Event,
}

/// The type of a value in records and events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// Any bytes, UTF-8 as a rule.
    Text,
    /// Decimal digits of a number below 2⁶⁴.
    Number,
}

/// Generates the enum from the list.
macro_rules! kinds {
    ($($(#[doc = $doc:literal])+ $kind:ident = $name:literal, $keep:ident, $type:ident;)+) => {
        /// The kind of a fact.
        #[repr(u8)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Kind {
            $($(#[doc = $doc])+ $kind,)+
        }

        impl Kind {
            /// All kinds, in order of their numbers, which is the order of fields in records.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$kind),+];

            /// The name of the field in records and events.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => $name,)+
                }
            }

            /// How many values a flow keeps.
            #[inline]
            pub const fn keep(self) -> Keep {
                match self {
                    $(Self::$kind => Keep::$keep,)+
                }
            }

            /// The type of its values.
            pub const fn value_type(self) -> Type {
                match self {
                    $(Self::$kind => Type::$type,)+
                }
            }
        }
    };
}

kinds! {
    /// The protocol of a message, such as `tls`; the first fact of each message.
    Protocol = "applicationProtocol", List, Text;
    /// The server name that a TLS client asks for (RFC 6066, section 3).
    TlsServerName = "tlsServerName", One, Text;
    /// The version that the server selected, such as `TLS 1.3`.
    TlsVersion = "tlsVersion", Last, Text;
    /// Application protocols that the client offers, and the one that the server selected (RFC 7301).
    TlsAlpn = "tlsAlpn", List, Text;
    /// The cipher suite that the server selected, by its registered name, or as `0x` and four hexadecimal digits.
    TlsCipher = "tlsCipher", One, Text;
    /// The JA3 fingerprint of the client, an MD5 in hexadecimal.
    Ja3 = "ja3", One, Text;
    /// The JA3S fingerprint of the server, an MD5 in hexadecimal.
    Ja3s = "ja3s", One, Text;
    /// The JA4 fingerprint of the client.
    Ja4 = "ja4", One, Text;
    /// The QUIC version, such as `1`, `2`, `draft-29` or `Q050`.
    QuicVersion = "quicVersion", One, Text;
    /// A name in the question of a DNS message, labels separated by dots.
    DnsQueryName = "dnsQueryName", List, Text;
    /// The type in the question, such as `AAAA`, or `TYPE` and a number.
    DnsQueryType = "dnsQueryType", List, Text;
    /// The response code of an answer, such as `NXDOMAIN`, or `RCODE` and a number.
    DnsResponseCode = "dnsResponseCode", One, Text;
    /// The data of the resource records in the answer section: addresses, names or texts.
    DnsAnswers = "dnsAnswers", List, Text;
    /// The time from a question to its answer, microseconds.
    DnsResponseTime = "dnsResponseMicroseconds", One, Number;
    /// The method of an HTTP request.
    HttpMethod = "httpMethod", List, Text;
    /// The host of an HTTP request.
    HttpHost = "httpHost", List, Text;
    /// The target of an HTTP request, as sent.
    HttpTarget = "httpTarget", List, Text;
    /// The user agent of an HTTP request.
    HttpUserAgent = "httpUserAgent", List, Text;
    /// The status code of an HTTP response.
    HttpStatus = "httpStatus", List, Number;
    /// The version string of an SSH client.
    SshClient = "sshClient", One, Text;
    /// The version string of an SSH server.
    SshServer = "sshServer", One, Text;
    /// The host name that a DHCP client sends (option 12; DHCPv6: the fully qualified domain name, option 39).
    DhcpHostname = "dhcpHostname", One, Text;
    /// The mode of an NTP message, 1 to 7.
    NtpMode = "ntpMode", One, Number;
    /// The stratum of an NTP message, 0 to 16.
    NtpStratum = "ntpStratum", One, Number;
    /// The highest version that a TLS client offers.
    TlsClientVersion = "tlsClientVersion", One, Text;
    /// The number of the configuration with which a client encrypts a second hello (RFC 9849); the server name is then that
    /// of the outer hello.
    TlsEchConfigId = "tlsEchConfigId", One, Number;
    /// How an earlier session is resumed: `session` (its identifier), `ticket` or `psk` (TLS 1.3).
    TlsResumption = "tlsResumption", One, Text;
    /// Alerts of a TLS client that are not encrypted, such as `unknown_ca`, or `alert_` and a number.
    TlsClientAlerts = "tlsClientAlerts", List, Text;
    /// Alerts of a TLS server that are not encrypted.
    TlsServerAlerts = "tlsServerAlerts", List, Text;
    /// The common name of the subject of a server's certificate.
    TlsCertificateSubject = "tlsCertificateSubject", One, Text;
    /// The common name of the issuer.
    TlsCertificateIssuer = "tlsCertificateIssuer", One, Text;
    /// The names and addresses of the subject (RFC 5280, section 4.2.1.6).
    TlsCertificateNames = "tlsCertificateNames", List, Text;
    /// The time from which the certificate is valid, such as `2026-01-31T00:00:00Z`.
    TlsCertificateNotBefore = "tlsCertificateNotBefore", One, Text;
    /// The time up to which the certificate is valid.
    TlsCertificateNotAfter = "tlsCertificateNotAfter", One, Text;
    /// The algorithm of the public key, such as `rsaEncryption`, or the numbers of its object identifier.
    TlsCertificateKey = "tlsCertificateKey", One, Text;
    /// The size of the public key, bits.
    TlsCertificateKeyBits = "tlsCertificateKeyBits", One, Number;
    /// The algorithm of the signature, such as `sha256WithRSAEncryption`, or the numbers of its object identifier.
    TlsCertificateSignature = "tlsCertificateSignature", One, Text;
    /// The serial number in hexadecimal, without leading zero octets.
    TlsCertificateSerial = "tlsCertificateSerial", One, Text;
    /// The SHA-256 of the certificate in hexadecimal.
    TlsCertificateSha256 = "tlsCertificateSha256", One, Text;
    /// The number of certificates that the server sends.
    TlsCertificateChain = "tlsCertificateChain", One, Number;
    /// What is wrong with the certificate: `expired`, `not-yet-valid`, `self-signed`, `name-mismatch`.
    TlsCertificateFlaws = "tlsCertificateFlaws", List, Text;
    /// The address of the client in a PROXY header.
    ProxySourceAddress = "proxySourceAddress", One, Text;
    /// The address that the client connected to in a PROXY header.
    ProxyDestinationAddress = "proxyDestinationAddress", One, Text;
    /// The port of the client in a PROXY header.
    ProxySourcePort = "proxySourcePort", One, Number;
    /// The port that the client connected to in a PROXY header.
    ProxyDestinationPort = "proxyDestinationPort", One, Number;
    /// The identifier of a DNS message.
    DnsId = "dnsId", One, Number;
    /// The operation of a DNS message, unless it is a query, and its flags: those set of `AA TC RD RA Z AD CD`.
    DnsFlags = "dnsFlags", List, Text;
    /// The resource records in the answer section, or those that an update changes: [`DnsRecord`](crate::DnsRecord).
    DnsRecords = "dnsRecords", List, Text;
    /// The content type of an HTTP message, as sent.
    HttpContentType = "httpContentType", List, Text;
    /// The page that led to an HTTP request.
    HttpReferer = "httpReferer", List, Text;
    /// The address to which an HTTP response leads.
    HttpLocation = "httpLocation", List, Text;
    /// The length of the body of an HTTP response, in octets.
    HttpResponseLength = "httpResponseLength", List, Number;
    /// What the first SYN without ACK looks like: [`SynFingerprint`](crate::SynFingerprint).
    TcpSyn = "tcpSynFingerprint", One, Text;
    /// What the first SYN with ACK looks like.
    TcpSynAck = "reverseTcpSynFingerprint", One, Text;
    /// The sequence number of the first SYN without ACK.
    TcpSequence = "tcpInitialSequenceNumber", One, Number;
    /// The sequence number of the first SYN with ACK.
    TcpSynAckSequence = "reverseTcpInitialSequenceNumber", One, Number;
    /// `query` or `answer`: the direction of a DNS message.
    DnsKind = "dnsKind", Event, Text;
    /// The class of a question other than IN, such as `CH`, or `CLASS` and a number; it follows the type.
    DnsQueryClass = "dnsQueryClass", Event, Text;
    /// `request` or `response`: the direction of an HTTP message; `exchange`: both in one event.
    HttpKind = "httpKind", Event, Text;
    /// `client` or `server`: which hello a TLS message is, `retry`: a server's that asks for another; else `alert`,
    /// `certificate` or `resumption`; `exchange`: a handshake in one event.
    TlsKind = "tlsKind", Event, Text;
    /// The length of the body of an HTTP request, in octets, unless it is 0.
    HttpRequestLength = "httpRequestLength", Event, Number;
    /// The time from an HTTP request to its response, microseconds.
    HttpResponseTime = "httpResponseMicroseconds", Event, Number;
}

/// Most distinct values of a list that a flow keeps.
const LIST_MAX: u8 = 16;

/// For each kind, most distinct values that a flow keeps.
const MOST: [u8; Kind::ALL.len()] = {
    let (mut most, mut at) = ([0; Kind::ALL.len()], 0);
    while at < most.len() {
        most[at] = match Kind::ALL[at].keep() {
            Keep::One | Keep::Last => 1,
            Keep::List => LIST_MAX,
            Keep::Event => 0,
        };
        at += 1;
    }
    most
};

/// Number of kinds that flows keep; those of events alone are the last in the list.
const KEPT: usize = {
    let mut kept = 0;
    while kept < Kind::ALL.len() && Kind::ALL[kept].most() > 0 {
        kept += 1;
    }
    kept
};

impl Kind {
    /// The number of an attachment that is no fact: the time of the first packet of the packet's first message, if that is
    /// an earlier one; see [`Kind::time`].
    pub const BEGAN: u8 = u8::MAX - 1;

    /// The number of an attachment that is no fact: the first octets of the packet's payload.
    pub const OCTETS: u8 = u8::MAX - 2;

    /// The time of an attachment of the kind [`Kind::BEGAN`], nanoseconds since 1970, little-endian.
    pub fn time(bytes: &[u8]) -> Option<u64> {
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    }

    /// The kinds that flows keep, in order of their numbers.
    pub const KEPT: [Self; KEPT] = *Self::ALL.first_chunk().unwrap();

    /// The kind of a value whose sender is known to be the client, or the server.
    #[must_use]
    pub const fn of_side(self, client: bool) -> Self {
        match (self, client) {
            (Self::SshClient | Self::SshServer, true) => Self::SshClient,
            (Self::SshClient | Self::SshServer, false) => Self::SshServer,
            (Self::TlsClientAlerts | Self::TlsServerAlerts, true) => Self::TlsClientAlerts,
            (Self::TlsClientAlerts | Self::TlsServerAlerts, false) => Self::TlsServerAlerts,
            _ => self,
        }
    }

    /// Whether [`Kind::of_side`] depends on the side.
    #[inline]
    pub const fn has_side(self) -> bool {
        matches!(
            self,
            Self::SshClient | Self::SshServer | Self::TlsClientAlerts | Self::TlsServerAlerts
        )
    }

    /// The kind with this number.
    #[inline]
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// Most distinct values that a flow keeps.
    #[inline]
    pub const fn most(self) -> usize {
        MOST[self as usize] as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_found_by_its_number() {
        for kind in Kind::ALL {
            assert_eq!(Kind::from_number(kind as u8), Some(kind));
            assert_eq!(kind.has_side(), kind.of_side(true) != kind.of_side(false));
        }
        assert_eq!(Kind::from_number(Kind::ALL.len() as u8), None);
        assert!(Kind::ALL[KEPT..].iter().all(|kind| kind.most() == 0));
    }

    #[test]
    fn names_are_distinct() {
        let mut names = Kind::ALL.map(Kind::name);
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
    }
}
