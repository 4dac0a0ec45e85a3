//! What distinguishes the scans of TCP from those of UDP.

use std::sync::Arc;

use ringtap_state::{Op, Schema};

use super::rows::ScanProtocol;
use super::suspects::Suspects;
use crate::analyses::Context;

/// Version, source, target and port of an attempt; its times, and its state.
static ATTEMPTS: Schema = Schema::new("attempts", 35, &[Op::Min, Op::Max, Op::Or]);
static UDP_ATTEMPTS: Schema = Schema::new("udp attempts", 35, &[Op::Min, Op::Max, Op::Or]);

/// A protocol whose scans are found.
pub trait Scanned: Send + 'static {
    /// The protocol.
    const PROTOCOL: ScanProtocol;
    /// The table of its attempts in a state.
    const TABLES: &'static [&'static Schema];
    /// Memory for a live flow, bytes.
    const FLOW_BYTES: u64;
    /// A table has room for one attempt of this number of flows.
    const FLOWS_AN_ATTEMPT: usize;

    /// What decides which of its attempts are scans.
    fn rules(context: &Context) -> Rules;
}

/// SYNs that no SYN-ACK answers.
pub struct Tcp;

/// Datagrams that no datagram answers. Few flows are UDP and short, so the table has less room.
pub struct Udp;

impl Scanned for Tcp {
    const PROTOCOL: ScanProtocol = ScanProtocol::Tcp;
    const TABLES: &'static [&'static Schema] = &[&ATTEMPTS];
    const FLOW_BYTES: u64 = 112;
    const FLOWS_AN_ATTEMPT: usize = 1;

    fn rules(context: &Context) -> Rules {
        let suspects = Arc::clone(&context.suspects);
        Rules { protocol: Self::PROTOCOL, threshold: context.scan_threshold, suspects }
    }
}

impl Scanned for Udp {
    const PROTOCOL: ScanProtocol = ScanProtocol::Udp;
    const TABLES: &'static [&'static Schema] = &[&UDP_ATTEMPTS];
    const FLOW_BYTES: u64 = Tcp::FLOW_BYTES / Self::FLOWS_AN_ATTEMPT as u64;
    const FLOWS_AN_ATTEMPT: usize = 8;

    fn rules(context: &Context) -> Rules {
        let suspects = Arc::clone(&context.udp_suspects);
        Rules { protocol: Self::PROTOCOL, threshold: context.udp_scan_threshold, suspects }
    }
}

/// What decides which attempts are scans.
#[derive(Clone)]
pub struct Rules {
    pub(super) protocol: ScanProtocol,
    /// More failed attempts than this are a scan.
    pub(super) threshold: u32,
    pub(super) suspects: Arc<Suspects>,
}

impl Rules {
    /// Whether each answered attempt offsets a failed one. A host that speaks UDP with many peers finds some of them gone.
    pub(super) const fn offsets(&self) -> bool {
        matches!(self.protocol, ScanProtocol::Udp)
    }

    /// Whether this number of failed attempts is a scan.
    pub(super) fn is_scan(&self, failed: i32) -> bool {
        i64::from(failed) > i64::from(self.threshold)
    }
}
