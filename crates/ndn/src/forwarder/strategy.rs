//! Forwarding strategies: the choice among the next hops of an Interest.
//!
//! A retransmission is suppressed if the last Interest was sent within the suppression interval. It
//! is 10 ms at first and doubles with each retransmission, up to 250 ms. Best-route has one
//! interval per PIT entry, multicast one per upstream face.

use crate::forwarder::face::FaceId;
use crate::forwarder::tables::{NextHop, PendingInterests};

const INTERVAL_MAX_NS: u32 = 250_000_000;

/// A forwarding strategy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strategy {
    /// The cheapest next hop. A retransmission goes to the cheapest unused one, else to the least
    /// recently used one.
    #[default]
    BestRoute,
    /// All next hops.
    Multicast,
}

/// The decision of a strategy. The chosen faces are in a separate list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    Send,
    /// A retransmission within the suppression interval.
    Suppressed,
    /// A new Interest without a next hop.
    NoRoute,
    /// No next hop; the entry stays pending.
    Wait,
}

impl Strategy {
    /// All strategies.
    pub const ALL: [Self; 2] = [Self::BestRoute, Self::Multicast];

    /// The name under `/localhost/nfd/strategy`.
    pub fn name(self) -> &'static str {
        match self {
            Self::BestRoute => "best-route",
            Self::Multicast => "multicast",
        }
    }

    /// Chooses among `hops`, the eligible next hops by increasing cost, for the PIT entry `at`.
    /// Writes the faces to `chosen`.
    #[inline]
    pub(crate) fn choose(
        self,
        pit: &mut impl PendingInterests,
        at: u32,
        hops: &[NextHop],
        now_ns: u64,
        chosen: &mut Vec<FaceId>,
    ) -> Choice {
        chosen.clear();
        match self {
            Self::BestRoute => best_route(pit, at, hops, now_ns, chosen),
            Self::Multicast => multicast(pit, at, hops, now_ns, chosen),
        }
    }
}

fn best_route(
    pit: &mut impl PendingInterests,
    at: u32,
    hops: &[NextHop],
    now_ns: u64,
    chosen: &mut Vec<FaceId>,
) -> Choice {
    let Some(latest_ns) = pit.out_records(at).map(|record| record.sent_ns).max() else {
        chosen.extend(hops.first().map(|hop| hop.face));
        return if hops.is_empty() { Choice::NoRoute } else { Choice::Send };
    };
    let entry = pit.state_mut(at);
    if now_ns.saturating_sub(latest_ns) < entry.interval_ns.into() {
        return Choice::Suppressed;
    }
    entry.interval_ns = (entry.interval_ns * 2).min(INTERVAL_MAX_NS);
    let tried = |hop: &NextHop| pit.out_records(at).find(|record| record.face == hop.face);
    let unused = |hop: &&NextHop| tried(hop).is_none_or(|record| record.expiry_ns <= now_ns);
    let earliest = || hops.iter().min_by_key(|hop| tried(hop).map_or(0, |record| record.sent_ns));
    chosen.extend(hops.iter().find(unused).or_else(earliest).map(|hop| hop.face));
    if chosen.is_empty() { Choice::Wait } else { Choice::Send }
}

fn multicast(
    pit: &mut impl PendingInterests,
    at: u32,
    hops: &[NextHop],
    now_ns: u64,
    chosen: &mut Vec<FaceId>,
) -> Choice {
    for hop in hops {
        if let Some(record) = pit.out_mut(at, hop.face) {
            if now_ns.saturating_sub(record.sent_ns) < record.interval_ns.into() {
                continue;
            }
            record.interval_ns = (record.interval_ns * 2).min(INTERVAL_MAX_NS);
        }
        chosen.push(hop.face);
    }
    match (chosen.is_empty(), hops.is_empty()) {
        (false, _) => Choice::Send,
        (true, false) => Choice::Suppressed,
        (true, true) => Choice::Wait,
    }
}
