//! Facts of a flow from its payloads, such as queried names.
//!
//! ```text
//! frame ─▶ Decoder ─▶ record ──────────────────────────▶ worker: flow table ─▶ flow record
//!            └─ payload ─▶ Extractors ─▶ kind, value ──▶        └─ Facts of the flow ┘
//! ```
//!
//! Payload is read once, while the frame is lent: [`Extractors::wants`] decides by ports whether a
//! packet is of interest, and [`Extractors::read`] hands its payload to the matching extractor. The
//! results travel with the record, and the flow table keeps them as the flow's [`Facts`].
//!
//! An extractor is a file and a line in the list below.
//!
//! Invariants: no input makes this crate panic; memory and time are bounded by the payload; no
//! clock. The facts depend on the payload's bytes and on earlier packets of its address pair alone,
//! so every arrangement finds the same.
#![forbid(unsafe_code)]

mod dns;
mod facts;

use std::fmt;
use std::str::FromStr;

use ringtap_wire::PacketRecord;

pub use facts::{Added, Facts};

/// Reads the payloads of one protocol.
trait Extractor {
    /// Whether a packet is of interest, by its protocol and ports. Called for every packet; it must
    /// not branch, because packets of all kinds mix at random and branches would be mispredicted.
    fn wants(packet: &PacketRecord) -> bool;

    /// Passes the facts in `payload` to `found`, in order.
    ///
    /// # Errors
    /// Why it could not be read. Facts found before that were passed on.
    fn read(payload: &[u8], found: &mut dyn FnMut(Kind, &[u8])) -> Result<(), Unread>;
}

/// Generates the kinds of facts and the sets of extractors from the list.
macro_rules! extractors {
    ($($name:literal $bit:literal $extractor:ty {
        $($(#[$doc:meta])* $kind:ident = $field:literal, at most $most:literal,)+
    })+) => {
        /// The kind of a fact.
        #[repr(u8)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Kind {
            $($($(#[$doc])* $kind,)+)+
        }

        impl Kind {
            /// All kinds, in order of their numbers.
            pub const ALL: [Self; [$($($field),+),+].len()] = [$($(Self::$kind),+),+];

            /// The name of the field in records.
            pub const fn name(self) -> &'static str {
                match self {
                    $($(Self::$kind => $field,)+)+
                }
            }

            /// The kind with this number.
            pub fn from_number(number: u8) -> Option<Self> {
                Self::ALL.get(usize::from(number)).copied()
            }

            /// Most distinct values that a flow keeps.
            pub const fn most(self) -> usize {
                match self {
                    $($(Self::$kind => $most,)+)+
                }
            }
        }

        impl Extractors {
            /// All of them.
            pub const ALL: Self = Self(0 $(| 1 << $bit)+);

            /// Names of all.
            pub const NAMES: &'static [&'static str] = &[$($name),+];

            /// Whether [`read`](Self::read) needs the packet's payload.
            #[inline(always)]
            pub fn wants(self, packet: &PacketRecord) -> bool {
                self.0 != 0 && (false $(| <$extractor>::wants(packet))+)
            }

            /// Passes the facts in a packet's payload to `found`, in order; returns the name of the
            /// extractor.
            ///
            /// # Errors
            /// The same name, and why it could not be read. Facts found before that were passed on.
            pub fn read(
                self,
                packet: &PacketRecord,
                payload: &[u8],
                found: &mut dyn FnMut(Kind, &[u8]),
            ) -> Result<&'static str, (&'static str, Unread)> {
                $(if self.0 & 1 << $bit != 0 && <$extractor>::wants(packet) {
                    let read = <$extractor>::read(payload, found);
                    return read.map(|()| $name).map_err(|why| ($name, why));
                })+
                Ok("")
            }
        }
    };
}

// Each with its bit and its fields.
extractors! {
    "dns" 0 dns::Dns {
        /// A name in the question of a DNS message, labels separated by dots.
        DnsQueryName = "dnsQueryName", at most 16,
    }
}

/// Why a payload could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unread {
    /// It contradicts its protocol.
    Malformed,
    /// It continues beyond the captured bytes.
    Truncated,
    /// It has more values than are kept of one packet.
    TooMuch,
}

impl Unread {
    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::Truncated => "truncated",
            Self::TooMuch => "too_much",
        }
    }
}

/// A set of extractors, as `--extract` names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extractors(u32);

impl Extractors {
    /// None of them.
    pub const NONE: Self = Self(0);

    /// Names of those in the set.
    pub fn names(self) -> Vec<&'static str> {
        let all = Self::NAMES.iter().enumerate();
        all.filter(|(bit, _)| self.0 >> bit & 1 != 0).map(|(_, name)| *name).collect()
    }
}

/// A name in the list that is not an extractor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownExtractor(String);

impl fmt::Display for UnknownExtractor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Extractors::NAMES.join(", ");
        write!(f, "unknown extractor {:?}: use {names}, all or none", self.0)
    }
}

impl std::error::Error for UnknownExtractor {}

impl FromStr for Extractors {
    type Err = UnknownExtractor;

    fn from_str(list: &str) -> Result<Self, UnknownExtractor> {
        let mut set = Self::NONE;
        for name in list.split(',').map(str::trim) {
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
        assert_eq!("dns,none".parse::<Extractors>().unwrap().names(), ["dns"]);
        assert_eq!("none".parse::<Extractors>().unwrap().to_string(), "none");
        let error = "dns,smtp".parse::<Extractors>().unwrap_err().to_string();
        assert_eq!(error, "unknown extractor \"smtp\": use dns, all or none");
    }
}
