//! Transport headers: ports, TCP control bits, ICMP type and code.
//!
//! ```text
//!          0         2         4          8          12    13     14
//!  TCP     | source  | dest    | sequence | ack      | off | bits |      RFC 9293
//!  others  | source  | dest    | …        UDP, UDP-Lite, SCTP, DCCP
//!  ICMP    | type|code         | …        ICMP, ICMPv6
//! ```
//!
//! Invariant: a field is written only if all its bytes were captured and lie inside the packet.

use crate::record::{Flags, PacketRecord};

pub(crate) const ICMP: u8 = 1;
pub(crate) const TCP: u8 = 6;
pub(crate) const UDP: u8 = 17;
/// A TCP header up to its control bits.
pub(crate) const PLAIN_LEN: usize = 14;
const DCCP: u8 = 33;
pub(crate) const ICMPV6: u8 = 58;
const SCTP: u8 = 132;
const UDP_LITE: u8 = 136;

/// The ports and TCP control bits at the start of a TCP or UDP header. Without a branch between the
/// two: they mix at random, so it would often be predicted wrongly.
#[inline(always)]
pub(crate) fn plain(protocol: u8, t: &[u8; PLAIN_LEN]) -> (u16, u16, u8) {
    let tcp_mask = 0u8.wrapping_sub(u8::from(protocol == TCP));
    let port = |at| u16::from_be_bytes([t[at], t[at + 1]]);
    (port(0), port(2), t[13] & tcp_mask)
}

/// Reads what the transport header of an unfragmented packet or first fragment says. True if the
/// ports, or the type and code of ICMP, are known then.
pub(crate) fn read(payload: &[u8], out: &mut PacketRecord) -> bool {
    match out.protocol {
        TCP | UDP | DCCP | SCTP | UDP_LITE => {
            let Some(&[s0, s1, d0, d1]) = payload.first_chunk::<4>() else { return false };
            out.src_port = u16::from_be_bytes([s0, s1]);
            out.dst_port = u16::from_be_bytes([d0, d1]);
            out.flags.insert(Flags::PORTS);
            if out.protocol == TCP
                && let Some(&bits) = payload.get(13)
            {
                out.tcp_flags = bits;
            }
            true
        }
        ICMP | ICMPV6 => {
            let Some(&kind) = payload.first_chunk::<2>() else { return false };
            out.dst_port = u16::from_be_bytes(kind);
            true
        }
        _ => false,
    }
}
