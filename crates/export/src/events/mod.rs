//! The formats of events: one line for each message found in payloads, or for a request and its response.
//!
//! | name | contents |
//! |---|---|
//! | `json` | one object a line; fields have the names of flow records |
//! | `eve` | Suricata's events `dns`, `dhcp`, `http`, `ntp`, `quic`, `ssh`, `tls` |
//! | `zeek` | Zeek's `dns.log`, `http.log` and `ssl.log`, in a folder |
//!
//! A format leaves out messages for which it has no event. Invariants: as for the formats of records.

mod eve;
mod http;
mod json;
mod zeek;

use ringtap_flow::Event;

use crate::formats::TextFormat;

/// Defines the enum of formats from one list: variant, name on the command line, name of the file in the folder that
/// the user gives, text functions.
macro_rules! event_formats {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $file:expr, $format:expr;)+) => {
        /// A format of events.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum EventFormat {
            $($(#[$doc])* $variant,)+
        }

        impl EventFormat {
            const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The name on the command line.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }

            /// The name of the file, if the user gives its folder.
            pub(crate) const fn file_name(self) -> Option<&'static str> {
                match self {
                    $(Self::$variant => $file,)+
                }
            }

            /// The functions of the format.
            pub(crate) const fn text(self) -> TextFormat<Event> {
                match self {
                    $(Self::$variant => $format,)+
                }
            }
        }
    };
}

event_formats! {
    /// JSON lines.
    Json = "json", None, json::FORMAT;
    /// Suricata's EVE.
    Eve = "eve", None, eve::FORMAT;
    /// Zeek's `dns.log`.
    ZeekDns = "zeek", Some("dns.log"), zeek::DNS;
    /// Zeek's `http.log`.
    ZeekHttp = "zeek", Some("http.log"), zeek::HTTP;
    /// Zeek's `ssl.log`.
    ZeekSsl = "zeek", Some("ssl.log"), zeek::SSL;
}

/// The format of events does not exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown event format {0:?}: use json, eve or zeek")]
pub struct UnknownEventFormat(String);

impl EventFormat {
    /// The formats with this name: one for each file.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn named(name: &str) -> Result<Vec<Self>, UnknownEventFormat> {
        let named: Vec<_> = Self::ALL.iter().copied().filter(|one| one.name() == name).collect();
        if named.is_empty() { Err(UnknownEventFormat(name.to_owned())) } else { Ok(named) }
    }
}

#[cfg(test)]
mod tests;
