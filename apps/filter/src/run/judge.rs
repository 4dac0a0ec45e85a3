//! Judges a frame: decodes it, and applies the rules to the addresses of its outermost IP header.
//!
//! ```text
//! frame ─▶ decoder ─▶ IP, addresses known ──▶ the rules
//!             ├─────▶ IP or unreadable ─────▶ dropped: the source is unknown       
//!             └─────▶ another protocol ─────▶ as configured ([`NotIp`]; ARP must pass for IP to work)
//! ```

use std::sync::Arc;

use crate::{RuleSet, Verdict};
use ringtap_wire::{
    Decoded, Decoder, Flags, HashKey, LinkType, NonIp, PacketRecord, Paths, Tunnels,
};
use serde::Serialize;

ringtap_base::choices! {
    /// Handling of frames of other protocols, such as ARP.
    #[derive(Default, Serialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum NotIp: "choice for frames that are not IP" {
        /// The frames pass.
        #[default]
        Pass = "pass",
        /// The frames are dropped.
        Drop = "drop",
    }
}

/// The result for a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Judged {
    /// The rules decided.
    Ruled(Verdict),
    /// Not IP; whether it passes.
    NotIp(bool),
    /// IP without readable addresses, or an unknown protocol: dropped.
    NoAddress,
    /// A control packet, consumed.
    Control,
}

impl Judged {
    pub(crate) fn passed(self) -> bool {
        match self {
            Self::Ruled(verdict) => verdict.passed,
            Self::NotIp(passed) => passed,
            Self::NoAddress | Self::Control => false,
        }
    }
}

/// Each thread has its own.
pub(crate) struct Judge {
    decoder: Decoder,
    not_ip: NotIp,
}

impl Judge {
    pub(crate) fn new(not_ip: NotIp) -> Self {
        // These hashes are not used for look-ups.
        let decoder = Decoder::new(HashKey::from_seed(0), Arc::new(Paths::new()));
        Self { decoder: decoder.with_tunnels(Tunnels::Outer), not_ip }
    }

    #[inline]
    pub(crate) fn judge(
        &mut self,
        rules: &RuleSet,
        link: LinkType,
        frame: &[u8],
        original_len: u32,
    ) -> Judged {
        let mut record = PacketRecord::EMPTY;
        match self.decoder.decode(link, 0, frame, original_len, &mut record) {
            Decoded::NonIp(reason) if is_unreadable(reason) => Judged::NoAddress,
            Decoded::NonIp(_) => Judged::NotIp(self.not_ip == NotIp::Pass),
            _ if record.flags.contains(Flags::BAD_HEADER) => Judged::NoAddress,
            _ => match (record.source(), record.destination()) {
                (Some(source), Some(destination)) => {
                    Judged::Ruled(rules.verdict(source, destination))
                }
                _ => Judged::NoAddress,
            },
        }
    }
}

/// Whether the frame may contain an IP packet that the decoder cannot find.
fn is_unreadable(reason: NonIp) -> bool {
    matches!(
        reason,
        NonIp::TooDeep | NonIp::UnsupportedLink(_) | NonIp::Truncated(_) | NonIp::Malformed(_)
    )
}
