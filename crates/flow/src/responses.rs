//! Response times: from the last packet of a request to the first packet of its response.
//!
//! ```text
//!  client    | header | body … |                    | request | request |      a pipeline
//!  server                         | response … |                          | response | response |
//!                            └ time ┘                         └── first ──┘
//!                                                                       └──── second ─────┘
//! ```
//!
//! | exchange | from | to |
//! |---|---|---|
//! | HTTP/1 | the latest packet with new data of the client, from the one that completes the header on | the first packet of the response's header |
//! | TLS | the packet that completes a ClientHello | the first packet of the next ServerHello |
//! | DNS | as `ringtap-extract` measures it, by identifier and question | |
//! | other TCP | the client's first data | the server's first data, if the client sent first |
//!
//! Messages come from payloads, with their packets. What is sent again is no new data. Requests without a response wait
//! in order, at most [`QUEUE`] behind the first; responses to further ones are counted and have no time. If segments
//! are missing, a further request replaces those that wait: the response may have been among them.
//!
//! ```text
//! lines    | octets sent, time of the oldest request, what waits | …       32 bytes each
//! sums     | sum, number, queue | …                            16 bytes each, for flows with a response
//! queues   | times of further requests | …                     for flows with several requests at once
//! ```
//!
//! Invariant: the state has a fixed size; it depends on the flow's packets in their order alone. A time below zero, because
//! a clock was set back, or above [`MOST_US`] gives no response time.

use crate::fields::Fields;
use crate::pool::Pool;
use crate::tcp::News;
use crate::{Application, FlowKey};

/// Requests that wait behind the oldest one.
const QUEUE: usize = 8;
/// A longer time is none: clocks and captures may have steps.
const MOST_US: u64 = 3_600_000_000;
/// The time of a request that had no room.
const NO_TIME: u64 = u64::MAX;

/// Bits of a flow: a side has sent data.
const SPOKE: u8 = 1;
/// The client's first data wait for the server's.
const FIRST: u8 = 1 << 1;
/// A request waits for its response.
const WAITS: u8 = 1 << 2;
/// Direction 1 sent what waits.
const SIDE_1: u8 = 1 << 3;
/// A hello waits.
const HELLO: u8 = 1 << 4;
/// Segments were missing while a request waited.
const GAP: u8 = 1 << 5;

/// What a response answers.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Exchange {
    /// A request of HTTP/1.
    Http = 0,
    /// A query of DNS.
    Dns = 1,
    /// A ClientHello over TCP.
    Tls = 2,
    /// The first data of another TCP connection.
    Tcp = 3,
}

impl Exchange {
    /// All, in order of their numbers.
    pub const ALL: [Self; 4] = [Self::Http, Self::Dns, Self::Tls, Self::Tcp];

    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Dns => "dns",
            Self::Tls => "tls",
            Self::Tcp => "tcp",
        }
    }
}

/// A response that was measured.
#[derive(Clone, Debug)]
pub struct Response {
    /// The key of its flow, in the initiator's direction.
    pub key: FlowKey,
    /// Whether the source of the key is the server.
    pub from_source: bool,
    /// What it answers.
    pub exchange: Exchange,
    /// The response time, microseconds, rounded down; `None`: its request had no room among those that wait.
    pub time_us: Option<u64>,
    /// The round-trip time of the handshake from the observer to the server, microseconds.
    pub rtt_us: Option<u64>,
    /// The application that follows from the facts so far.
    pub application: Option<Application>,
}

/// The response times of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ResponseTimes {
    /// Their sum, microseconds.
    pub sum_us: u64,
    /// Their number, at least 1.
    pub count: u32,
}

impl ResponseTimes {
    /// Bytes of [`ResponseTimes::canonical`].
    pub const CANONICAL_LEN: usize = 12;

    /// The mean, microseconds, rounded down.
    pub fn mean_us(&self) -> Option<u64> {
        self.sum_us.checked_div(self.count.into())
    }

    /// Both together.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self {
            sum_us: self.sum_us.saturating_add(other.sum_us),
            count: self.count.saturating_add(other.count),
        }
    }

    /// A fixed byte string for each value, for digests.
    pub fn canonical(&self) -> [u8; Self::CANONICAL_LEN] {
        let mut out = [0; Self::CANONICAL_LEN];
        out[..8].copy_from_slice(&self.sum_us.to_le_bytes());
        out[8..].copy_from_slice(&self.count.to_le_bytes());
        out
    }

    /// The values of these bytes, as [`ResponseTimes::canonical`] returned them; `None`: there is no response.
    pub fn from_canonical(bytes: &[u8; Self::CANONICAL_LEN]) -> Option<Self> {
        let mut bytes = Fields(bytes);
        let sum_us = u64::from_le_bytes(bytes.take());
        let count = u32::from_le_bytes(bytes.take());
        (count > 0).then_some(Self { sum_us, count })
    }
}

/// What each packet with data needs.
#[derive(Clone, Copy, Debug)]
struct Line {
    /// Octets of data of each side.
    octets: [u64; 2],
    /// The time of the oldest request so far, or of the client's first data.
    asked_ns: u64,
    /// The position of the flow's sums; 0: it has none.
    sums: u32,
    bits: u8,
}

impl Line {
    const EMPTY: Self = Self { octets: [0; 2], asked_ns: 0, sums: 0, bits: 0 };
}

#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    sum_us: u64,
    count: u32,
    /// The position of the flow's queue; 0: it has none.
    queue: u32,
}

/// Requests behind the oldest one, in order.
#[derive(Clone, Copy, Debug, Default)]
struct Queue {
    times: [u64; QUEUE],
    len: u32,
    /// Requests behind these that had no room.
    beyond: u32,
}

const _: () = assert!(size_of::<Line>() == 32 && size_of::<Sums>() == 16);

/// Most bytes that a flow takes more if response times and octets of data are measured.
pub const RESPONSE_BYTES: u64 =
    size_of::<Line>() as u64 + Pool::<Sums>::BYTES + Pool::<Queue>::BYTES;

/// What a packet with data is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Data {
    pub(crate) side: usize,
    /// Octets, those that were sent before included.
    pub(crate) octets: u32,
    pub(crate) ns: u64,
    pub(crate) news: News,
    /// Whether a message was found in it.
    pub(crate) has_message: bool,
}

/// The requests of the flows of a shelf, at the positions of their flows.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    lines: Vec<Line>,
    sums: Pool<Sums>,
    queues: Pool<Queue>,
}

/// Bytes of stored requests.
pub(crate) const SAVED_REQUESTS: usize = 8 + 1 + ResponseTimes::CANONICAL_LEN + 16;

impl Requests {
    /// The bytes of the requests of a flow; zeros if they are not measured. If several wait, all of them are left out.
    pub(crate) fn saved(&self, at: usize) -> [u8; SAVED_REQUESTS] {
        let mut out = [0; SAVED_REQUESTS];
        let Some(line) = self.lines.get(at) else { return out };
        let sums = self.sums.get(line.sums);
        let is_one = sums.is_none_or(|sums| sums.queue == 0);
        out[..8].copy_from_slice(&line.asked_ns.to_le_bytes());
        out[8] = if is_one { line.bits } else { line.bits & !(WAITS | GAP) };
        let (times, octets) = out[9..].split_at_mut(ResponseTimes::CANONICAL_LEN);
        times.copy_from_slice(&self.times(at).unwrap_or_default().canonical());
        for (place, own) in octets.chunks_exact_mut(8).zip(line.octets) {
            place.copy_from_slice(&own.to_le_bytes());
        }
        out
    }

    /// Adds a flow with requests of [`Requests::saved`].
    pub(crate) fn push_saved(&mut self, saved: &[u8; SAVED_REQUESTS]) {
        let mut bytes = Fields(saved);
        let asked_ns = u64::from_le_bytes(bytes.take());
        let [bits] = bytes.take();
        let times = ResponseTimes::from_canonical(&bytes.take());
        let octets = [bytes.take(), bytes.take()].map(u64::from_le_bytes);
        let sums = times.map_or(0, |ResponseTimes { sum_us, count }| {
            self.sums.add(Sums { sum_us, count, queue: 0 })
        });
        self.lines.push(Line { octets, asked_ns, sums, bits });
    }

    /// Reserves address space for this number of flows.
    pub(crate) fn reserve(&mut self, flows: usize) {
        // If the system does not reserve that much, the table grows when needed.
        let _ = self.lines.try_reserve_exact(flows);
    }

    /// Adds a flow.
    #[inline(always)]
    pub(crate) fn push(&mut self) {
        self.lines.push(Line::EMPTY);
    }

    /// Removes a flow, if response times are measured; the last one takes its place.
    #[inline(always)]
    pub(crate) fn swap_remove(&mut self, at: usize) {
        if at < self.lines.len() {
            self.release(at);
            self.lines.swap_remove(at);
        }
    }

    /// Removes all flows from this position on.
    pub(crate) fn truncate(&mut self, len: usize) {
        (len..self.lines.len()).for_each(|at| self.release(at));
        self.lines.truncate(len);
    }

    /// Gives the sums of a flow back.
    #[inline(always)]
    fn release(&mut self, at: usize) {
        self.release_queue(at);
        self.sums.release(&mut self.lines[at].sums);
    }

    #[inline(always)]
    fn release_queue(&mut self, at: usize) {
        if let Some(sums) = self.sums.get_mut(self.lines[at].sums) {
            self.queues.release(&mut sums.queue);
        }
    }

    /// A flow has ended and another one, or its next part (`cut`), takes its place. The next part knows what waits.
    pub(crate) fn restart(&mut self, at: usize, cut: bool) {
        if cut {
            self.cut(at);
        } else if at < self.lines.len() {
            self.release(at);
            self.lines[at] = Line::EMPTY;
        }
    }

    /// Another connection of the same ends begins: nothing waits any more.
    #[cold]
    pub(crate) fn begin(&mut self, at: usize) {
        if at < self.lines.len() {
            self.release_queue(at);
            self.lines[at].bits = 0;
        }
    }

    /// A part of a flow was reported.
    pub(crate) fn cut(&mut self, at: usize) {
        let Some(line) = self.lines.get_mut(at) else { return };
        line.octets = [0; 2];
        if let Some(sums) = self.sums.get_mut(line.sums) {
            (sums.sum_us, sums.count) = (0, 0);
        }
    }

    /// Octets of data of each side so far.
    pub(crate) fn octets(&self, at: usize) -> [u64; 2] {
        self.lines.get(at).map_or([0; 2], |line| line.octets)
    }

    /// The response times of a flow for its record.
    pub(crate) fn times(&self, at: usize) -> Option<ResponseTimes> {
        let &Sums { sum_us, count, .. } = self.sums.get(self.lines.get(at)?.sums)?;
        (count > 0).then_some(ResponseTimes { sum_us, count })
    }

    /// Adds a response time to its flow.
    pub(crate) fn add(&mut self, at: usize, time_us: u64) {
        let sums = self.sums(at);
        sums.sum_us = sums.sum_us.saturating_add(time_us);
        sums.count = sums.count.saturating_add(1);
    }

    /// The sums of a flow, which exist from the first call on.
    fn sums(&mut self, at: usize) -> &mut Sums {
        let Self { lines, sums, .. } = self;
        let place = &mut lines[at].sums;
        if *place == 0 {
            *place = sums.add(Sums::default());
        }
        &mut sums[*place]
    }

    /// Handles a TCP segment with data, before the messages in it. `is_client` returns whether its sender opened the
    /// connection, if that is known. Returns the response time if it answers the first data.
    #[inline(always)]
    pub(crate) fn on_data(
        &mut self,
        at: usize,
        data: &Data,
        is_client: impl FnOnce() -> Option<bool>,
    ) -> Option<u64> {
        let line = self.lines.get_mut(at)?;
        let octets = &mut line.octets[data.side & 1];
        *octets = octets.saturating_add(data.octets.into());
        if line.bits & (SPOKE | FIRST | WAITS) == SPOKE {
            return None;
        }
        self.on_wanted(at, data, is_client())
    }

    fn on_wanted(&mut self, at: usize, data: &Data, is_client: Option<bool>) -> Option<u64> {
        let line = &mut self.lines[at];
        if line.bits & SPOKE == 0 {
            line.bits |= SPOKE;
            if is_client == Some(true) {
                line.bits |= FIRST | side_bit(data.side);
                line.asked_ns = data.ns;
            }
            return None;
        }
        let asks = line.bits & SIDE_1 == side_bit(data.side);
        if line.bits & FIRST != 0 {
            if asks {
                return None;
            }
            line.bits &= !FIRST;
            return time_us(line.asked_ns, data.ns);
        }
        if data.news.is_behind_gap {
            line.bits |= GAP;
        }
        let goes_on = asks && data.news.is_new && !data.has_message && line.bits & HELLO == 0;
        if goes_on && self.sums.get(line.sums).is_none_or(|sums| sums.queue == 0) {
            line.asked_ns = data.ns;
        }
        None
    }

    /// A message of a protocol that is measured otherwise was found: its first data need not be.
    pub(crate) fn settle(&mut self, at: usize) {
        if let Some(line) = self.lines.get_mut(at) {
            line.bits = line.bits & !FIRST | SPOKE;
        }
    }

    /// Handles a request, or a hello, that was completed by a packet of this direction and time.
    pub(crate) fn on_request(&mut self, at: usize, side: usize, ns: u64, is_hello: bool) {
        self.settle(at);
        let Some(&Line { bits, .. }) = self.lines.get(at) else { return };
        let kind = side_bit(side) | if is_hello { HELLO } else { 0 };
        if bits & (WAITS | SIDE_1 | HELLO | GAP) == WAITS | kind && !is_hello {
            return self.queue(at, ns);
        }
        self.release_queue(at);
        let line = &mut self.lines[at];
        line.bits = SPOKE | WAITS | kind;
        line.asked_ns = ns;
    }

    /// Adds a request behind the oldest one.
    fn queue(&mut self, at: usize, ns: u64) {
        if self.sums(at).queue == 0 {
            let queue = self.queues.add(Queue::default());
            self.sums(at).queue = queue;
        }
        let place = self.sums(at).queue;
        let queue = &mut self.queues[place];
        if queue.beyond == 0 && (queue.len as usize) < QUEUE {
            queue.times[queue.len as usize] = ns;
            queue.len += 1;
        } else {
            queue.beyond = queue.beyond.saturating_add(1);
        }
    }

    /// Handles the response, or the hello of a server, whose first packet has this time. Returns the response time; or
    /// `Some(None)` if its request had no room.
    pub(crate) fn on_response(
        &mut self,
        at: usize,
        side: usize,
        ns: u64,
        is_hello: bool,
    ) -> Option<Option<u64>> {
        self.settle(at);
        let &Line { bits, asked_ns, .. } = self.lines.get(at)?;
        let kind = side_bit(1 - side) | if is_hello { HELLO } else { 0 };
        if bits & (WAITS | SIDE_1 | HELLO) != WAITS | kind {
            return None;
        }
        self.next(at);
        if asked_ns == NO_TIME { Some(None) } else { time_us(asked_ns, ns).map(Some) }
    }

    /// The oldest request was answered: the next one is the oldest, if there is one.
    fn next(&mut self, at: usize) {
        let sums = self.sums.get(self.lines[at].sums);
        let Some(queue) = sums.and_then(|sums| self.queues.get_mut(sums.queue)) else {
            self.lines[at].bits &= !(WAITS | GAP);
            return;
        };
        let line = &mut self.lines[at];
        if queue.len > 0 {
            line.asked_ns = queue.times[0];
            queue.times.copy_within(1.., 0);
            queue.len -= 1;
        } else {
            line.asked_ns = NO_TIME;
            queue.beyond -= 1;
        }
        if queue.len == 0 && queue.beyond == 0 {
            self.release_queue(at);
        }
    }
}

fn side_bit(side: usize) -> u8 {
    if side & 1 == 0 { 0 } else { SIDE_1 }
}

/// The time between packets, if it is one.
fn time_us(asked_ns: u64, ns: u64) -> Option<u64> {
    let time_us = ns.checked_sub(asked_ns)? / 1000;
    (time_us <= MOST_US).then_some(time_us)
}

#[cfg(test)]
mod tests;
