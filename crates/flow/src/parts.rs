//! Cuts: live flows are reported in parts, each with packets of one window of time.
//!
//! ```text
//!  windows   |  0        |  1        |  2        |      aligned to 1970, `every_ns` long
//!  packets     p p   p p   p     p                      one flow
//!  parts      [ part 0  ]  [part 1 ]                    at the first packet of another window, or the next mark
//!                                 whole flow ▶ joined of its parts when it ends
//! ```
//!
//! A part ends with a packet of another window, earlier or later, or at a mark behind its window. So the parts of a flow
//! depend on its own packets and on the marks alone.
//!
//! Invariant: what is not reported is in the entry; the whole flow is `earlier`, joined with the entry's record.

use ringtap_extract::Facts;

use crate::{
    BURSTS_MOST, Burst, Class, EndReason, FirstPacket, FlowRecord, FlowStatistics, History,
    OpenFlow, Part, ResponseTimes, TcpPerformance,
};

/// What was reported of a live flow, and the part that is counted now.
#[derive(Debug)]
pub(crate) struct Reported {
    /// The window of the part, and its earliest and latest packet, if it is open.
    from_ns: u64,
    first_ns: u64,
    last_ns: u64,
    /// The parts so far; absent before the first one.
    earlier: Option<Box<Earlier>>,
    /// How many values were left out of the facts so far.
    beyond: u32,
    /// How many values of the facts were reported.
    facts: u16,
    /// Whether packets were counted since the last cut.
    open: bool,
}

/// The parts of a live flow so far, joined: what its entry does not keep.
#[derive(Clone, Debug)]
struct Earlier {
    parts: u32,
    /// Earliest packet when the first part was made.
    flow_first_ns: u64,
    first_ns: u64,
    last_ns: u64,
    packets: [u64; 2],
    octets: [u64; 2],
    tcp_flags: [u8; 2],
    ttl: [[u8; 2]; 2],
    ip_len: [[u16; 2]; 2],
    tos: [u8; 2],
    reverse_icmp_type_code: Option<u16>,
    history: History,
    irregular: bool,
    end_reason: EndReason,
    tcp: Option<Box<TcpPerformance>>,
    responses: Option<ResponseTimes>,
    statistics: Option<Box<FlowStatistics>>,
}

impl Earlier {
    /// What a record of all parts so far has; `next` follows.
    fn of(whole: FlowRecord, next: Part) -> Self {
        Self {
            parts: next.number,
            flow_first_ns: next.flow_first_ns,
            end_reason: whole.end_reason,
            first_ns: whole.first_ns,
            last_ns: whole.last_ns,
            packets: whole.packets,
            octets: whole.octets,
            tcp_flags: whole.tcp_flags,
            ttl: whole.ttl,
            ip_len: whole.ip_len,
            tos: whole.tos,
            reverse_icmp_type_code: whole.reverse_icmp_type_code,
            history: whole.history,
            irregular: whole.irregular,
            tcp: whole.tcp.map(Box::new),
            responses: whole.responses,
            statistics: whole.statistics,
        }
    }
}

/// Most bytes that a flow takes more if it is cut, with what the allocator adds.
pub const PART_BYTES: u64 = (size_of::<Reported>()
    + size_of::<Earlier>()
    + size_of::<TcpPerformance>()
    + 2 * size_of::<u64>()) as u64;

/// Most bytes that a flow with this many first packets, and first octets of a direction, takes more, if it is cut and has
/// statistics.
pub const fn part_statistics_bytes(packets: u8, octets: u16) -> u64 {
    let lists = packets as usize * size_of::<FirstPacket>() + 2 * BURSTS_MOST * size_of::<Burst>();
    let octets = FlowStatistics::octets_bytes(octets);
    // Vectors that grow may have twice the room.
    (size_of::<FlowStatistics>() + 2 * lists + octets + 4 * size_of::<u64>()) as u64
}

impl Reported {
    /// A flow without packets.
    pub(crate) const NOTHING: Self = Self {
        from_ns: 0,
        first_ns: 0,
        last_ns: 0,
        earlier: None,
        beyond: 0,
        facts: 0,
        open: false,
    };

    /// A stored flow, whose parts so far have all of its packets.
    pub(crate) fn restored(flow: &OpenFlow, part: Part) -> Self {
        let (facts, beyond) = flow.reported;
        let is_closed = flow.class().is_some_and(Class::is_closed);
        let end_reason = if is_closed { EndReason::EndDetected } else { EndReason::Active };
        let whole = FlowRecord { facts: Facts::default(), end_reason, ..flow.record.clone() };
        let earlier = Some(Box::new(Earlier::of(whole, part)));
        Self { earlier, facts, beyond, ..Self::NOTHING }
    }

    /// How many facts, and values left out, parts had.
    pub(crate) fn facts(&self) -> (u16, u32) {
        (self.facts, self.beyond)
    }

    /// Whether packets were counted since the last cut.
    #[inline(always)]
    pub(crate) fn is_open(&self) -> bool {
        self.open
    }

    /// Counts packets with these earliest and latest times, which are together in a window of `every_ns`; false, without
    /// any effect, if they are not in the window of the open part.
    #[inline(always)]
    pub(crate) fn extend(&mut self, first_ns: u64, last_ns: u64, every_ns: u64) -> bool {
        let inside = |ns: u64| ns.wrapping_sub(self.from_ns) < every_ns;
        let fits = self.open && inside(first_ns) && inside(last_ns);
        if fits {
            self.first_ns = self.first_ns.min(first_ns);
            self.last_ns = self.last_ns.max(last_ns);
        }
        fits
    }

    /// Opens a part with a packet of this time.
    pub(crate) fn open(&mut self, ts_ns: u64, every_ns: u64) {
        self.from_ns = ts_ns - ts_ns % every_ns;
        (self.first_ns, self.last_ns, self.open) = (ts_ns, ts_ns, true);
    }

    /// Whether the window of the open part is over at this time.
    #[inline(always)]
    pub(crate) fn is_over(&self, now_ns: u64, every_ns: u64) -> bool {
        self.open && now_ns >= self.from_ns.saturating_add(every_ns)
    }

    /// The times of the open part.
    pub(crate) fn times(&self) -> Option<(u64, u64)> {
        self.open.then_some((self.first_ns, self.last_ns))
    }

    /// The part that is counted now, of a flow with this first packet.
    pub(crate) fn part(&self, first_ns: u64) -> Part {
        match &self.earlier {
            Some(own) => Part { number: own.parts, flow_first_ns: own.flow_first_ns },
            None => Part { number: 0, flow_first_ns: first_ns },
        }
    }

    /// The facts that no part has reported.
    pub(crate) fn facts_since(&self, all: &Facts) -> Facts {
        all.since(self.facts.into(), self.beyond)
    }

    /// The value at this position was replaced by one at the end.
    pub(crate) fn fact_moved(&mut self, from: usize) {
        self.facts -= u16::from(from < self.facts.into());
    }

    /// A part was reported; now the flow has that many facts and values left out.
    pub(crate) fn add(&mut self, mut part: FlowRecord, (facts, beyond): (usize, u32)) {
        part.facts = Facts::default();
        let Part { number, flow_first_ns } = part.part.unwrap_or(self.part(part.first_ns));
        let whole = self.joined(part);
        let next = Part { number: number + 1, flow_first_ns };
        self.earlier = Some(Box::new(Earlier::of(whole, next)));
        (self.facts, self.beyond, self.open) = (facts as u16, beyond, false);
    }

    /// Whether the parts so far say another reason why the flow ended.
    pub(crate) fn is_ended_by_other(&self, reason: EndReason) -> bool {
        let said = match self.earlier.as_ref().map(|earlier| earlier.end_reason) {
            Some(EndReason::Active) => Some(EndReason::Idle),
            said => said,
        };
        said != Some(reason)
    }

    /// The record of the whole flow, from that of its last part with all facts.
    pub(crate) fn joined(&self, mut last: FlowRecord) -> FlowRecord {
        let Some(earlier) = self.earlier.as_deref() else { return last };
        let facts = std::mem::take(&mut last.facts);
        let mut whole = FlowRecord {
            first_ns: earlier.first_ns,
            last_ns: earlier.last_ns,
            packets: earlier.packets,
            octets: earlier.octets,
            tcp_flags: earlier.tcp_flags,
            ttl: earlier.ttl,
            ip_len: earlier.ip_len,
            tos: earlier.tos,
            reverse_icmp_type_code: earlier.reverse_icmp_type_code,
            history: earlier.history,
            irregular: earlier.irregular,
            tcp: earlier.tcp.as_deref().copied(),
            responses: earlier.responses,
            statistics: earlier.statistics.clone(),
            // The entry keeps these.
            icmp_type_code: last.icmp_type_code,
            initiator: last.initiator,
            path: last.path,
            reverse_path: last.reverse_path.take(),
            end_reason: last.end_reason,
            application: last.application,
            ..FlowRecord::new(last.key)
        };
        whole.join(last);
        whole.facts = facts;
        whole
    }
}

impl FlowRecord {
    /// The record of a flow without cuts, from all of its parts; `None` without any. Its application is that of the last
    /// part, which follows from the facts of all.
    ///
    /// A part without packets only says why the flow ended. Without it, a flow whose last part has
    /// [`EndReason::Active`] ended by silence.
    pub fn of_parts(mut parts: Vec<Self>) -> Option<Self> {
        parts.sort_by_key(|part| part.part.map_or(0, |part| part.number));
        let mut parts = parts.into_iter();
        let mut whole = parts.next()?;
        let reason = |part: &Self| match part.end_reason {
            EndReason::Active if part.packets != [0; 2] => EndReason::Idle,
            reason => reason,
        };
        whole.end_reason = reason(&whole);
        for later in parts {
            whole.end_reason = reason(&later);
            whole.application = later.application;
            whole.join(later);
        }
        whole.part = None;
        Some(whole)
    }
}
