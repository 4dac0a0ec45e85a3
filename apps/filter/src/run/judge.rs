//! What becomes of a frame: decoded, then judged by the addresses of its outermost IP header.
//!
//! ```text
//! frame ─▶ decoder ─▶ IP, addresses known ──▶ the rules
//!             ├─────▶ IP or unreadable ─────▶ dropped: nobody knows whom it is from
//!             └─────▶ another protocol ─────▶ as was asked for ([`NotIp`]; ARP has to pass, or nobody talks)
//! ```

use std::sync::Arc;

use crate::{RuleSet, Verdict};
use ringtap_wire::{
    Decoded, Decoder, Flags, HashKey, LinkType, NonIp, PacketRecord, Paths, Tunnels,
};
use serde::Serialize;

ringtap_base::choices! {
    /// What happens to frames of protocols that rules know nothing of, such as ARP.
    #[derive(Default, Serialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum NotIp: "choice for frames that are not IP" {
        /// They pass.
        #[default]
        Pass = "pass",
        /// They do not.
        Drop = "drop",
    }
}

/// What becomes of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Judged {
    /// The rules decided.
    Ruled(Verdict),
    /// Not IP; whether it passes.
    NotIp(bool),
    /// IP without readable addresses, or nobody can say what it is: it does not pass.
    NoAddress,
    /// It was for the filter itself, and goes no further.
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
        // Nothing is looked up by these hashes.
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

/// Whether there may be an IP packet in the frame that we cannot find.
fn is_unreadable(reason: NonIp) -> bool {
    matches!(
        reason,
        NonIp::TooDeep | NonIp::UnsupportedLink(_) | NonIp::Truncated(_) | NonIp::Malformed(_)
    )
}
