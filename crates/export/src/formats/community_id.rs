//! The Community ID of a flow: one short text with which records of different monitors can be joined.
//! Source: Community ID Flow Hashing, version 1, seed 0 (github.com/corelight/community-id-spec).
//!
//! ```text
//! "1:" base64( SHA-1( | seed | smaller  | larger   | protocol | 0 | port of | port of | ) )
//!                     | 0 0  | address  | address  |    1     | 1 | smaller | larger  |
//!                        2     4 or 16    4 or 16                    2         2       bytes
//! ```
//!
//! The end with the smaller (address, port) comes first, so both directions have the same id. For ICMP the ports are
//! the type of the message and the type of its counterpart (echo and echo reply); for a message without a counterpart
//! they are type and code, and the direction is kept. Other protocols than TCP, UDP, SCTP and the two ICMPs have no
//! ports in the id.
//!
//! A record has the type and code of one message, so its id is that of this message.

use std::fmt::{self, Write as _};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ringtap_flow::{Event, FlowKey, FlowRecord, IpVersion};
use sha1::block_api::compress;

use crate::formats::protocol::{ICMP, ICMPV6, SCTP, TCP, UDP};

/// A Community ID, always 30 ASCII characters that need no quoting in JSON or CSV.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CommunityId([u8; Self::LEN]);

impl CommunityId {
    /// Characters: `1:` and the base64 of 20 bytes.
    pub const LEN: usize = 30;

    /// The id of the flow, equal for both directions except for ICMP types without a counterpart.
    pub fn of(record: &FlowRecord) -> Self {
        let (key, ports) = ordered(record);
        let mut bytes = [0; 64];
        let width = match key.version {
            IpVersion::V4 => 4,
            IpVersion::V6 => 16,
        };
        let mut len = 2; // the seed
        let mut push = |part: &[u8]| {
            bytes[len..len + part.len()].copy_from_slice(part);
            len += part.len();
        };
        push(&key.src[..width]);
        push(&key.dst[..width]);
        push(&[key.protocol, 0]);
        if ports {
            push(&key.src_port.to_be_bytes());
            push(&key.dst_port.to_be_bytes());
        }

        let mut text = [0; Self::LEN];
        text[..2].copy_from_slice(b"1:");
        STANDARD
            .encode_slice(sha1(bytes, len), &mut text[2..])
            .expect("20 bytes make 28 characters");
        Self(text)
    }

    /// The id of a packet by its key, and for ICMP its type and code, `type << 8 | code`.
    pub fn of_key(key: FlowKey, icmp_type_code: u16) -> Self {
        Self::of(&FlowRecord { icmp_type_code, ..FlowRecord::new(key) })
    }

    /// The id of these characters, if it is one: `1:` and the base64 of 20 bytes.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix("1:")?;
        let hash = STANDARD.decode(digits).ok()?;
        let text = text.as_bytes().try_into().ok()?;
        (hash.len() == 20).then_some(Self(text))
    }

    /// The id of the event's flow.
    pub(crate) fn of_event(event: &Event) -> Self {
        Self::of(&FlowRecord::new(event.key))
    }

    /// The characters.
    pub const fn as_bytes(&self) -> &[u8; Self::LEN] {
        &self.0
    }
}

/// The hash of the first `len` bytes, 40 at most: with the end of the message they are a single block, so the state that
/// [`sha1::Sha1`] keeps between blocks is not needed. Source: FIPS 180-4.
fn sha1(mut block: [u8; 64], len: usize) -> [u8; 20] {
    let mut state = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];
    block[len] = 0x80;
    block[56..].copy_from_slice(&(8 * len as u64).to_be_bytes());
    compress(&mut state, &[block]);
    let mut hash = [0; 20];
    for (bytes, word) in hash.chunks_mut(4).zip(state) {
        bytes.copy_from_slice(&u32::to_be_bytes(word));
    }
    hash
}

impl fmt::Display for CommunityId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|&byte| f.write_char(char::from(byte)))
    }
}

/// The key in the order of the id: with the ports of the specification, the smaller end first; and whether the id
/// contains the ports.
fn ordered(record: &FlowRecord) -> (FlowKey, bool) {
    let mut key = record.key;
    let [icmp_type, icmp_code] = record.icmp_type_code.to_be_bytes();
    let counterpart = match key.protocol {
        TCP | UDP | SCTP => None,
        ICMP => Some(icmp_counterpart(icmp_type)),
        ICMPV6 => Some(icmpv6_counterpart(icmp_type)),
        _ => {
            let smaller_first = if key.dst < key.src { key.reversed() } else { key };
            return (smaller_first, false);
        }
    };
    if let Some(counterpart) = counterpart {
        key.src_port = icmp_type.into();
        key.dst_port = counterpart.unwrap_or(icmp_code).into();
    }
    let one_way = counterpart == Some(None);
    if !one_way && (key.dst, key.dst_port) < (key.src, key.src_port) {
        key = key.reversed();
    }
    (key, true)
}

/// The counterpart of an ICMP type: its answer or its request.
const fn icmp_counterpart(icmp_type: u8) -> Option<u8> {
    Some(match icmp_type {
        8 => 0, // echo
        0 => 8,
        10 => 9, // router solicitation
        9 => 10,
        13 => 14, // timestamp
        14 => 13,
        15 => 16, // information
        16 => 15,
        17 => 18, // address mask
        18 => 17,
        _ => return None,
    })
}

/// The counterpart of an ICMPv6 type: its answer or its request.
const fn icmpv6_counterpart(icmp_type: u8) -> Option<u8> {
    Some(match icmp_type {
        128 => 129, // echo
        129 => 128,
        130 => 131, // multicast listener query
        131 => 130,
        133 => 134, // router solicitation
        134 => 133,
        135 => 136, // neighbour solicitation
        136 => 135,
        139 => 140, // node information
        140 => 139,
        144 => 145, // home agent address discovery
        145 => 144,
        _ => return None,
    })
}
