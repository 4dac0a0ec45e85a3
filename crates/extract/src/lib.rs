//! Facts of a flow from its payloads, such as server names and queried names.
//!
//! ```text
//! frame ─▶ Decoder ─▶ record ───────────────────────────▶ worker: flow table ─▶ flow record
//!            └─ payload ─▶ Payloads ─▶ kind, value … ──▶         └─ Facts of the flow ┘
//!                            ├─ opening: which protocols are possible, by ports and three bytes
//!                            ├─ positions: what was read, and bodies, are skipped
//!                            ├─ streams: messages longer than a segment
//!                            └─ protocols/: one parser each
//! ```
//!
//! Payload is read once, while the frame is lent. Protocols are recognised by content on any port. The results travel
//! with the record: each message as a fact of the kind [`Kind::Protocol`], followed by the facts in it. The flow table
//! keeps them as the flow's [`Facts`].
//!
//! [`Names`] derives the application of a flow from its facts and ports.
//!
//! An extractor is a file in `protocols/` and a line in the list there; its kinds of facts are lines in `kinds.rs`.
//!
//! Invariants: no input makes this crate panic; memory and time are bounded; no clock but packet time. The facts depend
//! on the packets of an address pair, and on the places of [`Payloads::turn`], alone, so every arrangement finds the same,
//! as long as no room was missing. Tables whose entries have a limited time are all of the type [`ringtap_base::Aged`].
#![forbid(unsafe_code)]

mod applications;
mod facts;
#[cfg(any(test, feature = "fuzz"))]
mod fuzz;
mod hashing;
mod kinds;
mod numbers;
mod opening;
mod payloads;
mod positions;
mod protocols;
mod streams;
#[cfg(test)]
mod tables;
mod text;

use std::fmt;
use std::str::FromStr;

use ringtap_wire::PacketRecord;

pub use applications::{
    Application, ApplicationReason, InvalidNames, LABEL_MAX, LABELS_MAX, Label, Names, SUFFIXES_MAX,
};
pub use facts::{Added, Facts, Values};
#[cfg(any(test, feature = "fuzz"))]
pub use fuzz::fuzz;
pub use kinds::{Keep, Kind, Type};
pub use payloads::{Counts, Payloads};
#[cfg(any(test, feature = "fuzz"))]
pub use protocols::quic::fuzz::fuzz_quic;

use opening::Opening;
use protocols::http::Switch;

/// Longest time between the first packet of an incomplete message, a question or a connection, and another packet that
/// belongs to it, nanoseconds; by the times of both packets. [`Payloads::turn`] is called at most this often.
pub const LIFETIME_NS: u64 = 10_000_000_000;

/// Receives the facts of a message, in order.
pub(crate) type Found<'a> = &'a mut dyn FnMut(Kind, &[u8]);

/// The payload of a packet, or a stream of several.
#[derive(Clone, Copy)]
pub struct Payload<'a> {
    /// The packet; of a stream, the latest one.
    pub record: &'a PacketRecord,
    /// The bytes behind the TCP or UDP header; of a stream, all bytes of the message so far.
    pub bytes: &'a [u8],
    /// The sequence number in the TCP header; 0 for UDP.
    pub sequence: u32,
}

/// How far a parser came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// The payload is of another protocol; nothing was found.
    Other,
    /// All messages in the payload were read.
    Done,
    /// All messages in the payload were read, and this number of bytes behind it belong to the last one.
    Body(u64),
    /// All messages in the payload were read, and another protocol follows in both directions.
    Switched(Switch),
    /// The message that begins at this position continues in the next segment. Earlier messages were passed on,
    /// nothing of this one.
    More(usize),
}

/// Reads the payloads of one protocol.
pub(crate) trait Extractor {
    /// What a message over TCP begins with.
    const TCP: &'static [Opening] = &[];
    /// What a UDP datagram begins with.
    const UDP: &'static [Opening] = &[];
    /// UDP ports whose datagrams are read, whatever they begin with.
    const PORTS: &'static [u16] = &[];

    /// The state of the protocol in a reader, such as questions without an answer.
    type State: State;

    /// Passes the messages in a payload to `found`: for each, its [`Kind::Protocol`] and its facts.
    ///
    /// # Errors
    /// Why it could not be read. Messages found before that were passed on.
    fn read(
        state: &mut Self::State,
        payload: &Payload<'_>,
        found: Found<'_>,
    ) -> Result<Progress, Unread>;
}

/// The state of a protocol in a reader.
pub(crate) trait State {
    /// A state that takes at most about `memory` bytes.
    fn new(memory: usize) -> Self;

    /// Begins the next turn: see [`Payloads::turn`].
    fn turn(&mut self) {}

    /// Bytes that it takes now, of those given to [`State::new`].
    #[cfg(test)]
    fn memory(&self) -> usize {
        0
    }

    /// Messages that were dropped before they were complete, with the reason, since the last call. At the end of the
    /// run, `end` is true, and incomplete messages are included.
    fn dropped(&mut self, _end: bool, _count: &mut dyn FnMut(Unread, u64)) {}
}

/// No state.
impl State for () {
    fn new(_memory: usize) -> Self {}
}

/// Why a payload could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unread {
    /// The payload contradicts its protocol.
    Malformed,
    /// The payload continues beyond the captured bytes.
    Truncated,
    /// The payload has more values than are kept of one packet, or is longer than a stream may be.
    TooMuch,
    /// Its rest did not arrive within 10 s, by the times of its packets, or before the end.
    Incomplete,
    /// The memory for incomplete messages was used up.
    NoRoom,
    /// The payload was read, and evicted because the memory was used up: if it is sent again, it is read again.
    Evicted,
}

impl Unread {
    /// All reasons, in order of their numbers.
    pub const ALL: [Self; 6] = [
        Self::Malformed,
        Self::Truncated,
        Self::TooMuch,
        Self::Incomplete,
        Self::NoRoom,
        Self::Evicted,
    ];

    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::Truncated => "truncated",
            Self::TooMuch => "too_much",
            Self::Incomplete => "incomplete",
            Self::NoRoom => "no_room",
            Self::Evicted => "evicted",
        }
    }
}

/// A set of extractors, as `--extract` names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extractors(u16);

impl Extractors {
    /// None of them.
    pub const NONE: Self = Self(0);

    /// Names of those in the set.
    pub fn names(self) -> Vec<&'static str> {
        let all = Self::NAMES.iter().enumerate();
        all.filter(|(bit, _)| self.0 >> bit & 1 != 0).map(|(_, name)| *name).collect()
    }
}

/// A name in the list that is not an extractor, or `none` among others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownExtractor(String);

impl fmt::Display for UnknownExtractor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Extractors::NAMES.join(", ");
        write!(f, "unknown extractor {:?}: use {names}, all, or none alone", self.0)
    }
}

impl std::error::Error for UnknownExtractor {}

impl FromStr for Extractors {
    type Err = UnknownExtractor;

    fn from_str(list: &str) -> Result<Self, UnknownExtractor> {
        let mut set = Self::NONE;
        let names = list.split(',').map(str::trim);
        if list.contains(',') && names.clone().any(|name| name == "none") {
            return Err(UnknownExtractor(list.to_owned()));
        }
        for name in names {
            set.0 |= match (name, Self::NAMES.iter().position(|own| *own == name)) {
                (_, Some(bit)) => 1 << bit,
                ("all", _) => Self::ALL.0,
                ("none", _) => 0,
                _ => return Err(UnknownExtractor(name.to_owned())),
            };
        }
        Ok(set)
    }
}

impl fmt::Display for Extractors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&if self.0 == 0 { "none".to_owned() } else { self.names().join(",") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_named() {
        assert_eq!("all".parse(), Ok(Extractors::ALL));
        assert_eq!("dns,tls".parse::<Extractors>().unwrap().names(), ["tls", "dns"]);
        let error = "all,none".parse::<Extractors>().unwrap_err().to_string();
        assert!(error.contains("\"all,none\"") && error.ends_with("none alone"), "{error}");
        assert_eq!("none".parse::<Extractors>().unwrap().to_string(), "none");
        let error = "dns,gopher".parse::<Extractors>().unwrap_err().to_string();
        let names = Extractors::NAMES.join(", ");
        assert_eq!(error, format!("unknown extractor \"gopher\": use {names}, all, or none alone"));
    }
}
