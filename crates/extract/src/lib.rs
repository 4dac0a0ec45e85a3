//! Facts of a flow from its payloads, such as server names and queried names.
//!
//! ```text
//! frame ─▶ Decoder ─▶ record ───────────────────────────▶ worker: flow table ─▶ flow record
//!            └─ payload ─▶ Payloads ─▶ kind, value … ──▶         └─ Facts of the flow ┘
//!                            ├─ opening: which protocols are possible, by ports and three bytes
//!                            ├─ positions: what was read, and bodies, are skipped
//!                            ├─ streams: messages longer than a segment
//!                            ├─ datagrams: fragments of IP
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
mod datagrams;
mod dns_record;
mod extractor;
mod facts;
#[cfg(any(test, feature = "fuzz"))]
mod fuzz;
mod hashing;
mod kinds;
mod label;
mod numbers;
mod opening;
mod payloads;
mod port_labels;
mod positions;
mod protocols;
mod streams;
#[cfg(test)]
mod tables;
mod text;

use std::fmt;
use std::str::FromStr;

pub use applications::{LABELS_MAX, Names, SUFFIXES_MAX};
pub use dns_record::{DnsRecord, unescaped};
pub use extractor::{LIFETIME_NS, Payload, Unread};
pub use facts::{Added, Facts, Values};
#[cfg(any(test, feature = "fuzz"))]
pub use fuzz::{fuzz, fuzz_http, fuzz_syn};
pub use kinds::{Keep, Kind, Type};
pub use label::{Application, ApplicationReason, InvalidNames, LABEL_MAX, Label};
pub use payloads::{Counts, Payloads};
#[cfg(any(test, feature = "fuzz"))]
pub use protocols::quic::fuzz::fuzz_quic;
pub use protocols::syn::SynFingerprint;

pub(crate) use extractor::{Extractor, Found, Progress, State};

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
        assert!(!Extractors::ALL.names().contains(&"syn"));
        let with_syn = "all,syn".parse::<Extractors>().unwrap().names();
        assert_eq!(with_syn, Extractors::NAMES);
        assert_eq!("dns,tls".parse::<Extractors>().unwrap().names(), ["tls", "dns"]);
        let error = "all,none".parse::<Extractors>().unwrap_err().to_string();
        assert!(error.contains("\"all,none\"") && error.ends_with("none alone"), "{error}");
        assert_eq!("none".parse::<Extractors>().unwrap().to_string(), "none");
        let error = "dns,gopher".parse::<Extractors>().unwrap_err().to_string();
        let names = Extractors::NAMES.join(", ");
        assert_eq!(error, format!("unknown extractor \"gopher\": use {names}, all, or none alone"));
    }
}
