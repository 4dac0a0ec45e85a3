//! What a message is in its exchange, and how its values are joined.
//!
//! ```text
//! HTTP  protocol | exchange | values of the request | values of the response
//! TLS   protocol | exchange | values of the client's hello | server | values of its hello | certificate | …
//! DNS   protocol | exchange | values of the question, or answer | values of the answer
//! ```

use ringtap_flow::{Kind, Values};

/// Most requests of a connection without a response.
pub(super) const REQUESTS_MAX: usize = 64;
/// Most of them of a handshake.
const HELLOS_MAX: usize = 1;

/// The name of a joined event.
pub(super) const EXCHANGE: &[u8] = b"exchange";

/// The protocols whose messages are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Protocol {
    Http,
    /// Also in DTLS and QUIC.
    Tls,
    Dns,
}

/// The place of a message in its exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Request,
    Response,
    /// What follows the response, and ends the exchange.
    Rest,
    /// The length of a request's body.
    RequestLength,
    /// An exchange of one message.
    Alone,
}

/// A message of an exchange.
pub(super) struct Part {
    pub(super) protocol: Protocol,
    pub(super) role: Role,
    pub(super) from_client: bool,
}

impl Part {
    /// `None`: the message is in no exchange.
    pub(super) fn of(values: &Values) -> Option<Self> {
        let part = |protocol, role, from_client| Some(Self { protocol, role, from_client });
        match values.first(Kind::Protocol) {
            // The length of a body that ended.
            None if values.first(Kind::HttpResponseLength).is_some() => {
                part(Protocol::Http, Role::Rest, false)
            }
            None if values.first(Kind::HttpRequestLength).is_some() => {
                part(Protocol::Http, Role::RequestLength, true)
            }
            Some(b"http") if values.first(Kind::HttpKind) == Some(b"request") => {
                part(Protocol::Http, Role::Request, true)
            }
            Some(b"http") if !is_interim(values) => part(Protocol::Http, Role::Response, false),
            Some(b"tls" | b"dtls" | b"quic") => match values.first(Kind::TlsKind)? {
                b"client" => part(Protocol::Tls, Role::Request, true),
                b"server" => part(Protocol::Tls, Role::Response, false),
                // Another hello of each side follows.
                b"retry" => None,
                _ => {
                    let from_client = values.first(Kind::TlsClientAlerts).is_some();
                    part(Protocol::Tls, Role::Rest, from_client)
                }
            },
            Some(b"dns") => match values.first(Kind::DnsKind)? {
                b"query" => part(Protocol::Dns, Role::Request, true),
                _ => part(Protocol::Dns, Role::Response, false),
            },
            // An answer is from another address than that of the group that was asked.
            Some(b"mdns" | b"llmnr") => part(Protocol::Dns, Role::Alone, true),
            _ => None,
        }
    }
}

impl Protocol {
    /// The kind that says what a message is.
    fn kind(self) -> Kind {
        match self {
            Self::Http => Kind::HttpKind,
            Self::Tls => Kind::TlsKind,
            Self::Dns => Kind::DnsKind,
        }
    }

    /// The most requests without a response.
    pub(super) fn requests_max(self) -> usize {
        if self == Self::Tls { HELLOS_MAX } else { REQUESTS_MAX }
    }

    /// The values of an exchange that begins with a message.
    pub(super) fn joined(self, message: &Values) -> Values {
        let mut values = Values::default();
        values.push(Kind::Protocol, message.first(Kind::Protocol).unwrap_or_default());
        values.push(self.kind(), EXCHANGE);
        let is_request = message.first(self.kind()) == Some(b"request");
        for (kind, value) in message.all() {
            let omitted = match kind {
                Kind::Protocol | Kind::HttpKind => true,
                // The content type of an exchange is that of its response.
                Kind::HttpContentType => is_request,
                Kind::TlsKind => value == b"client",
                Kind::DnsKind => value == b"query",
                _ => false,
            };
            if !omitted {
                values.push(kind, value);
            }
        }
        values
    }

    /// Whether a response is that of a request.
    pub(super) fn answers(self, response: &Values, request: &Values) -> bool {
        self != Self::Dns || response.first(Kind::DnsId) == request.first(Kind::DnsId)
    }

    /// Adds the values of a response to those of its request. An answer of DNS has all that is in its question.
    pub(super) fn add_response(self, exchange: &mut Values, response: &Values) {
        if self == Self::Dns {
            *exchange = self.joined(response);
        } else {
            let own =
                response.all().filter(|(kind, _)| !matches!(kind, Kind::Protocol | Kind::HttpKind));
            own.for_each(|(kind, value)| exchange.push(kind, value));
        }
    }

    /// Whether nothing may follow the response of an exchange.
    pub(super) fn is_complete(self, values: &Values) -> bool {
        match self {
            Self::Http => values.first(Kind::HttpResponseLength).is_some() || has_no_body(values),
            // What follows is read of TLS over TCP, if it is not encrypted.
            Self::Tls => {
                let version = values.first(Kind::TlsVersion).unwrap_or_default();
                let follows = matches!(version, b"SSL 3.0" | b"TLS 1.0" | b"TLS 1.1" | b"TLS 1.2");
                let is_tls = values.first(Kind::Protocol) == Some(b"tls");
                !is_tls || !follows || values.first(Kind::TlsResumption).is_some()
            }
            Self::Dns => true,
        }
    }
}

/// Adds the values of what follows a response.
pub(super) fn push_rest(exchange: &mut Values, rest: &Values) {
    let own = rest.all().filter(|(kind, _)| *kind != Kind::Protocol);
    own.for_each(|(kind, value)| exchange.push(kind, value));
}

/// Whether a hello is the second one of a handshake (RFC 8446, section 4.1.2), or was sent again.
pub(super) fn is_same_hello(first: &Values, second: &Values) -> bool {
    first.first(Kind::TlsServerName) == second.first(Kind::TlsServerName)
        && first.first(Kind::Protocol) == second.first(Kind::Protocol)
}

/// Whether another response follows this one (RFC 9110, section 15.2).
fn is_interim(values: &Values) -> bool {
    let status = values.first(Kind::HttpStatus).unwrap_or_default();
    status.starts_with(b"1") && status != b"101"
}

/// Whether another protocol follows the response of an exchange.
fn has_no_body(values: &Values) -> bool {
    let status = values.first(Kind::HttpStatus).unwrap_or_default();
    let connects = values.first(Kind::HttpMethod) == Some(b"CONNECT");
    status == b"101" || connects && status.starts_with(b"2")
}
