//! The parsers, one file for each protocol, and the list of them.

pub(crate) mod dhcp;
pub(crate) mod dns;
pub(crate) mod http;
pub(crate) mod labels;
pub(crate) mod ntp;
pub(crate) mod proxy;
pub(crate) mod quic;
pub(crate) mod ssh;
pub(crate) mod syn;
pub(crate) mod tls;

use crate::{Extractor, Extractors, Found, Payload, Progress, State, Unread, opening};

/// Generates the set of extractors and their states from the list.
macro_rules! extractors {
    ($($name:ident $bit:literal $extractor:ty,)+) => {
        impl Extractors {
            /// All of them that read payloads: not `syn`, which reads each connection.
            pub const ALL: Self = Self((0 $(| 1 << $bit)+) & !(1 << SYN));

            /// Names of all, each at its position.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($name)),+];
        }

        // The positions are those in NAMES.
        const _: () = {
            let (mut next, positions) = (0, [$($bit),+]);
            while next < positions.len() {
                assert!(positions[next] == next as u32);
                next += 1;
            }
        };

        /// The possible protocols by the first bytes: of UDP, of TCP.
        pub(crate) static OPENINGS: [opening::Table; 2] = [
            opening::Table::EMPTY$(.with(<$extractor as Extractor>::UDP, $bit))+,
            opening::Table::EMPTY$(.with(<$extractor as Extractor>::TCP, $bit))+,
        ];

        /// The protocols of UDP ports.
        pub(crate) static PORTS: opening::Ports =
            opening::Ports::EMPTY$(.with(<$extractor as Extractor>::PORTS, $bit))+;

        /// The states of all protocols.
        pub(crate) struct States {
            $($name: <$extractor as Extractor>::State,)+
        }

        impl States {
            /// Returns the state of HTTP.
            pub(crate) fn exchange(&mut self) -> &mut http::Exchange {
                &mut self.http
            }

            /// The states, each with its part of the memory: few have any.
            pub(crate) fn new(memory: usize) -> Self {
                let each = memory / LARGE_STATES;
                Self { $($name: State::new(each),)+ }
            }

            /// Reads a payload with the extractor at this position of the list.
            pub(crate) fn read(
                &mut self,
                protocol: usize,
                payload: &Payload<'_>,
                found: Found<'_>,
            ) -> Result<Progress, Unread> {
                match protocol {
                    $($bit => <$extractor>::read(&mut self.$name, payload, found),)+
                    _ => Ok(Progress::Other),
                }
            }

            /// Bytes that they take now.
            #[cfg(test)]
            pub(crate) fn memory(&self) -> usize {
                0 $(+ self.$name.memory())+
            }

            /// Begins the next turn, see [`State::turn`].
            pub(crate) fn turn(&mut self) {
                $(self.$name.turn();)+
            }

            /// Counts dropped messages, see [`State::dropped`].
            pub(crate) fn dropped(&mut self, end: bool, count: &mut dyn FnMut(usize, Unread, u64)) {
                $(self.$name.dropped(end, &mut |why, number| count($bit, why, number));)+
            }
        }
    };
}

/// At least the number of protocols whose state takes memory.
const LARGE_STATES: usize = 4;
/// The position of HTTP in the list.
pub(crate) const HTTP: usize = 3;
/// The position of SYN in the list.
pub(crate) const SYN: usize = 9;

// In the order in which they are tried, each with its position.
extractors! {
    tls 0 tls::Tls,
    quic 1 quic::Quic,
    dns 2 dns::Dns,
    http 3 http::Http,
    ssh 4 ssh::Ssh,
    dhcp 5 dhcp::Dhcp,
    ntp 6 ntp::Ntp,
    labels 7 labels::Labels,
    proxy 8 proxy::Proxy,
    syn 9 syn::Syn,
}
