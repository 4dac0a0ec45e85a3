//! An event: one message found in a payload, such as a DNS answer or a TLS hello.

use ringtap_extract::{Kind, Values};

use crate::{FlowKey, IpVersion};

/// A message found in the payload of a packet, or of several; then of the packet that completed it. Or several
/// messages of an exchange in one, in the direction of the client: a request and its response at the time of the response,
/// others at the time of the first message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The key of the packet, in its own direction.
    pub key: FlowKey,
    /// Time of the packet, nanoseconds since 1970.
    pub time_ns: u64,
    /// The number of the interface that received the packet; 0 for files.
    pub ingress: u32,
    /// The facts of the message, in order. The first is its [`Kind::Protocol`].
    pub values: Values,
}

impl Event {
    /// The protocol of the message, such as `dns`.
    pub fn protocol(&self) -> &[u8] {
        self.values.first(Kind::Protocol).unwrap_or_default()
    }

    /// Whether it is a whole exchange, or as much of it as there was.
    pub fn is_exchange(&self) -> bool {
        let kinds = [Kind::HttpKind, Kind::TlsKind, Kind::DnsKind];
        let second = self.values.all().nth(1);
        second.is_some_and(|(kind, value)| kinds.contains(&kind) && value == b"exchange")
    }
}

impl Default for Event {
    fn default() -> Self {
        let key = FlowKey {
            version: IpVersion::V4,
            src: [0; 16],
            dst: [0; 16],
            src_port: 0,
            dst_port: 0,
            protocol: 0,
        };
        Self { key, time_ns: 0, ingress: 0, values: Values::default() }
    }
}
