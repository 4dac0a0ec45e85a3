//! The packets of an exchange as an observer between client and server sees them.
//!
//! ```text
//!  client      observer      server
//!    │ ──────────▶ │ ──────────▶ │
//!    │ ◀────────── │ ◀────────── │
//!     └ rtt_ns[0] ┘ └ rtt_ns[1] ┘      a packet passes, and its answer passes this much later
//! ```
//!
//! A sender sends a flight of segments, and the receiver acknowledges each of them at once. Then the next flight follows.
//! At most one segment of a flight is lost or late:
//!
//! | | at the observer | the receiver |
//! |---|---|---|
//! | lost before | the segment is missing, and comes later | repeats its acknowledgment for each of the others behind it |
//! | lost behind | the segment comes twice | the same |
//! | late | it comes behind the next one | repeats its acknowledgment once |
//!
//! A lost segment is sent again after three repeated acknowledgments and a round trip, else after a timeout that is
//! longer than the round trip. The last segment of a flight that was lost before the observer is not a repetition there.
//! The first segment of a message is not late, nor lost before; if the message continues, it is not lost behind.
//!
//! A receiver may also announce a window of zero behind a flight. The sender waits for another announcement, and
//! probes with one byte if that takes long.

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::SeedableRng;

use super::exchange::{Exchange, Protocol};
use super::messages::{Kind, MESSAGE_MAX};
use crate::frame::{ACK, FIN, PSH, SYN, WINDOW};
use crate::popularity::{below, unit};
use crate::profile::Applications;

const MICROSECOND: u64 = 1_000;
const MILLISECOND: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;

/// Most segments of a flight.
const FLIGHT_MAX: u64 = 8;
/// Distance of the segments of a flight: at least this, and less than three times this.
const DISTANCE: u64 = 12 * MICROSECOND;
/// The timeout of a lost segment, if the round trip is short.
const TIMEOUT: u64 = 200 * MILLISECOND;
/// Before an acknowledgment is repeated without a reason.
const REPEAT: u64 = 5 * MICROSECOND;

/// How a packet counts in the performance of its direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Count {
    Nothing,
    Retransmission,
    OutOfOrder,
    DuplicateAck,
    ZeroWindow,
}

/// A packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    /// Since the first packet.
    pub(super) at_ns: u64,
    /// 0: from the client, 1: from the server.
    pub(super) way: u8,
    pub(super) flags: u8,
    pub(super) window: u16,
    pub(super) seq: u32,
    pub(super) ack: u32,
    /// Position in the list of messages.
    pub(super) message: u16,
    /// The segment of the message.
    pub(super) part: u8,
    pub(super) count: Count,
    /// The bytes of the message, from here.
    pub(super) from: u16,
    /// 0: the packet has no data.
    pub(super) len: u16,
}

/// A message and the bytes at its beginning that have facts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message {
    pub(super) kind: Kind,
    pub(super) len: u16,
    /// Number of segments with facts.
    pub(super) parts: u8,
}

/// The packets of an exchange and its messages. Vectors are used again for the next one.
#[derive(Clone, Debug, Default)]
pub(super) struct Script {
    /// In order of time.
    pub(super) steps: Vec<Step>,
    pub(super) messages: Vec<Message>,
}

impl Script {
    /// Replaces the script by that of an exchange.
    pub(super) fn replace(
        &mut self,
        exchange: &Exchange,
        spec: &Applications,
        scratch: &mut Vec<u8>,
    ) {
        self.steps.clear();
        self.messages.clear();
        let mut writer = Writer {
            random: SplitMix64::seed_from_u64(exchange.bits(13)),
            exchange,
            spec,
            now: 0,
            last_way: 0,
            next: [exchange.bits(14) as u32, exchange.bits(15) as u32],
            script: self,
            scratch,
        };
        match exchange.protocol {
            Protocol::Dns => writer.dns(),
            Protocol::Quic => writer.quic(),
            Protocol::Tls => writer.tls(),
            Protocol::Http => writer.http(),
            Protocol::Ssh => writer.ssh(),
        }
        // The sort is stable and, for few elements, in place.
        insertion_sort(&mut self.steps);
    }
}

/// A stable sort without allocation; the steps are nearly in order.
fn insertion_sort(steps: &mut [Step]) {
    for end in 1..steps.len() {
        let mut at = end;
        while at > 0 && steps[at - 1].at_ns > steps[at].at_ns {
            steps.swap(at - 1, at);
            at -= 1;
        }
    }
}

/// What happens to a flight.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Event {
    Nothing,
    LostBefore(u64),
    LostBehind(u64),
    Late(u64),
}

/// A segment of a message.
#[derive(Clone, Copy)]
struct Segment {
    message: u16,
    part: u8,
    from: u16,
    len: u16,
    seq: u32,
}

struct Writer<'a> {
    random: SplitMix64,
    exchange: &'a Exchange,
    spec: &'a Applications,
    /// When the last packet passes.
    now: u64,
    /// The sender of the last flight.
    last_way: usize,
    /// The next sequence number of each side.
    next: [u32; 2],
    script: &'a mut Script,
    scratch: &'a mut Vec<u8>,
}

impl Writer<'_> {
    fn tls(&mut self) {
        self.open();
        self.transfer(0, Kind::ClientHello, 0);
        let certificate = 600 + self.below(3_500);
        self.transfer(1, Kind::ServerHello, certificate);
        self.transfer(0, Kind::Finished, 80);
        for _ in 0..1 + self.below(3) {
            let (request, response) = (100 + self.below(900), 100 + self.below(12_000));
            self.transfer(0, Kind::Encrypted, request);
            self.transfer(1, Kind::Encrypted, response);
        }
        self.close();
    }

    fn http(&mut self) {
        self.open();
        for number in 0..1 + self.below(6) as u8 {
            self.transfer(0, Kind::Request(number), 0);
            let body = if self.exchange.has_body(number) { self.exchange.body(number) } else { 0 };
            self.transfer(1, Kind::Response(number), body as u64);
        }
        self.close();
    }

    fn ssh(&mut self) {
        self.open();
        self.transfer(0, Kind::Version(0), 0);
        self.transfer(1, Kind::Version(1), 0);
        for _ in 0..2 + self.below(4) {
            for way in 0..2 {
                let len = 40 + self.below(1_500);
                self.transfer(way, Kind::Binary, len);
            }
        }
        self.close();
    }

    fn dns(&mut self) {
        let server = self.exchange.rtt_ns[1];
        let mut at = 0;
        for number in 0..1 + self.below(2) as u8 {
            at += 30 * MICROSECOND * u64::from(number);
            let think = self.below(2 * MILLISECOND);
            self.datagram(at, 0, Kind::Query(number), 0);
            self.datagram(at + server + think, 1, Kind::Answer(number), 0);
        }
    }

    fn quic(&mut self) {
        let [client, server] = self.exchange.rtt_ns;
        let mut at = 0;
        self.datagram(at, 0, Kind::ClientInitial(0), 0);
        if self.exchange.long() {
            at += DISTANCE;
            self.datagram(at, 0, Kind::ClientInitial(1), 0);
        }
        at += server;
        self.datagram(at, 1, Kind::ServerInitial, 0);
        for _ in 0..2 + self.below(20) {
            let len = 30 + self.below(1_170);
            let way = usize::from(self.below(4) > 0);
            at += if way == 0 { client } else { DISTANCE } + self.below(MILLISECOND);
            self.datagram(at, way, Kind::Short(way as u8), len);
        }
    }

    fn below(&mut self, bound: u64) -> u64 {
        below(&mut self.random, bound)
    }

    fn happens(&mut self, share: f64) -> bool {
        unit(&mut self.random) < share
    }

    /// Adds a message; returns its position. `filler` is the number of bytes behind the part with facts.
    fn message(&mut self, kind: Kind, filler: u64, mss: u64) -> u16 {
        let (head, len) = self.exchange.lengths(kind, self.scratch);
        let len = (len + filler as usize).min(MESSAGE_MAX);
        let parts = head.div_ceil(mss as usize) as u8;
        self.script.messages.push(Message { kind, len: len as u16, parts });
        (self.script.messages.len() - 1) as u16
    }

    fn datagram(&mut self, at_ns: u64, way: usize, kind: Kind, filler: u64) {
        let message = self.message(kind, filler, u64::from(u16::MAX));
        let len = self.script.messages[usize::from(message)].len;
        self.script.steps.push(Step {
            at_ns,
            way: way as u8,
            flags: 0,
            window: 0,
            seq: 0,
            ack: 0,
            message,
            part: 0,
            count: Count::Nothing,
            from: 0,
            len,
        });
    }

    /// A segment without data.
    fn control(&mut self, at_ns: u64, way: usize, flags: u8, seq: u32, ack: u32, count: Count) {
        let window = if count == Count::ZeroWindow { 0 } else { WINDOW };
        let (way, message, part, from, len) = (way as u8, 0, 0, 0, 0);
        let step = Step { at_ns, way, flags, window, seq, ack, message, part, count, from, len };
        self.script.steps.push(step);
    }

    /// An acknowledgment by `way`, sometimes twice.
    fn acknowledge(&mut self, at_ns: u64, way: usize, ack: u32) {
        self.control(at_ns, way, ACK, self.next[way], ack, Count::Nothing);
        if self.happens(self.spec.duplicate_acks) {
            let at_ns = at_ns + REPEAT;
            self.control(at_ns, way, ACK, self.next[way], ack, Count::DuplicateAck);
        }
    }

    fn data(&mut self, at_ns: u64, way: usize, segment: Segment, count: Count) {
        let Segment { message, part, from, len, seq } = segment;
        let (ack, flags) = (self.next[1 - way], ACK | PSH);
        let (way, window) = (way as u8, WINDOW);
        let step = Step { at_ns, way, flags, window, seq, ack, message, part, count, from, len };
        self.script.steps.push(step);
    }

    /// How long a sender waits before it sends a lost segment again.
    fn timeout(&self) -> u64 {
        TIMEOUT.max(2 * (self.exchange.rtt_ns[0] + self.exchange.rtt_ns[1]))
    }

    fn open(&mut self) {
        let [client, server] = self.exchange.rtt_ns;
        let [from_client, from_server] = self.next;
        let mut at = 0;
        self.control(at, 0, SYN, from_client, 0, Count::Nothing);
        if self.happens(self.spec.loss) {
            at += SECOND.max(self.timeout());
            self.control(at, 0, SYN, from_client, 0, Count::Retransmission);
        }
        self.next[0] = from_client.wrapping_add(1);
        at += server;
        self.control(at, 1, SYN | ACK, from_server, self.next[0], Count::Nothing);
        if self.happens(self.spec.loss) {
            at += SECOND.max(self.timeout());
            self.control(at, 1, SYN | ACK, from_server, self.next[0], Count::Retransmission);
        }
        self.next[1] = from_server.wrapping_add(1);
        at += client;
        self.acknowledge(at, 0, self.next[1]);
        (self.now, self.last_way) = (at, 1);
    }

    fn close(&mut self) {
        let [client, server] = self.exchange.rtt_ns;
        let mut at = self.turn(0);
        let ends = self.next.map(|next| next.wrapping_add(1));
        self.control(at, 0, FIN | ACK, self.next[0], self.next[1], Count::Nothing);
        if self.happens(self.spec.loss) {
            at += self.timeout();
            self.control(at, 0, FIN | ACK, self.next[0], self.next[1], Count::Retransmission);
        }
        at += server;
        self.control(at, 1, FIN | ACK, self.next[1], ends[0], Count::Nothing);
        at += client;
        self.control(at, 0, ACK, ends[0], ends[1], Count::Nothing);
    }

    /// When `way` can send after all that has passed.
    fn turn(&mut self, way: usize) -> u64 {
        let think = 20 * MICROSECOND + self.below(3 * MILLISECOND);
        // The receiver has sent the last acknowledgment; the sender receives it after half a round trip.
        let back = if way == self.last_way { self.exchange.rtt_ns[way] } else { 0 };
        self.now + back + think
    }

    /// A message from `way` to the other side.
    fn transfer(&mut self, way: usize, kind: Kind, filler: u64) {
        let mss = if self.exchange.ipv6 { 1440 } else { 1460 };
        let message = self.message(kind, filler, mss);
        let Message { len, parts, .. } = self.script.messages[usize::from(message)];
        let segments = u64::from(len).div_ceil(mss);
        let first = self.next[way];
        // A last segment of one byte has two instead: its repetition would be a keep-alive.
        let single = u64::from(len) % mss == 1;
        let segment = |number: u64| {
            let begin = |number: u64| {
                let moved = number > 0 && number == segments - 1 && single;
                (number * mss - u64::from(moved)).min(len.into())
            };
            let from = begin(number);
            let len = (begin(number + 1) - from) as u16;
            let seq = first.wrapping_add(from as u32);
            Segment { message, part: number as u8, from: from as u16, len, seq }
        };
        let mut sent = 0;
        while sent < segments {
            let start = self.turn(way);
            let count = (2 + self.below(FLIGHT_MAX - 1)).min(segments - sent);
            let event = self.event(count, if sent == 0 { parts } else { 0 });
            self.flight(start, way, count, event, |number| segment(sent + number));
            sent += count;
            self.last_way = way;
            if sent < segments && event == Event::Nothing && self.happens(self.spec.zero_windows) {
                self.stop(way, segment(sent));
            }
        }
        self.next[way] = first.wrapping_add(len.into());
    }

    /// Selects what happens to a flight that begins with this number of segments with facts.
    fn event(&mut self, count: u64, parts: u8) -> Event {
        for at in 0..count {
            let begins = at == 0 && parts > 0;
            if self.happens(self.spec.loss_before) && !begins {
                return Event::LostBefore(at);
            }
            if self.happens(self.spec.loss) {
                return Event::LostBehind(at);
            }
            if self.happens(self.spec.reordering) && !begins && at + 1 < count {
                return Event::Late(at);
            }
        }
        Event::Nothing
    }

    /// Sends the segments of a flight, and acknowledges them.
    fn flight(
        &mut self,
        start: u64,
        way: usize,
        count: u64,
        event: Event,
        segment: impl Fn(u64) -> Segment,
    ) {
        let (near, far) = (self.exchange.rtt_ns[way], self.exchange.rtt_ns[1 - way]);
        let distance = DISTANCE + self.below(2 * DISTANCE);
        let passes = |at: u64| start + at * distance;
        let end = |at: u64| {
            let segment = segment(at);
            segment.seq.wrapping_add(segment.len.into())
        };
        let last = count - 1;
        for at in 0..count {
            let (ts, peer) = (passes(at), 1 - way);
            match event {
                Event::LostBefore(lost) | Event::LostBehind(lost) if at == lost => {
                    if event == Event::LostBehind(lost) {
                        self.data(ts, way, segment(at), Count::Nothing);
                    }
                }
                Event::LostBefore(lost) | Event::LostBehind(lost) if at > lost => {
                    self.data(ts, way, segment(at), Count::Nothing);
                    let (seq, ack) = (self.next[peer], segment(lost).seq);
                    self.control(ts + far, peer, ACK, seq, ack, Count::DuplicateAck);
                }
                Event::Late(late) if at == late => {
                    let ts = passes(at + 1) + distance / 2;
                    self.data(ts, way, segment(at), Count::OutOfOrder);
                    self.acknowledge(ts + far, peer, end(at + 1));
                }
                Event::Late(late) if at == late + 1 => {
                    self.data(ts, way, segment(at), Count::Nothing);
                    let (seq, ack) = (self.next[peer], segment(late).seq);
                    self.control(ts + far, peer, ACK, seq, ack, Count::DuplicateAck);
                }
                _ => {
                    self.data(ts, way, segment(at), Count::Nothing);
                    self.acknowledge(ts + far, peer, end(at));
                }
            }
        }
        self.now = passes(last) + far;
        match event {
            Event::LostBefore(lost) | Event::LostBehind(lost) => {
                let again = if last - lost >= 3 {
                    self.now + near + 100 * MICROSECOND
                } else {
                    passes(last) + self.timeout()
                };
                // The observer has not seen it, nor a later one: it is in order.
                let is_new = event == Event::LostBefore(last);
                let count = if is_new { Count::Nothing } else { Count::Retransmission };
                self.data(again, way, segment(lost), count);
                self.acknowledge(again + far, 1 - way, end(last));
                self.now = again + far;
            }
            Event::Late(late) if late + 1 == last => self.now += distance / 2,
            _ => {}
        }
        // A repeated acknowledgment is before all that follows.
        self.now += REPEAT;
    }

    /// The receiver of `way` has no more room for a time. `next` is the segment that waits.
    fn stop(&mut self, way: usize, next: Segment) {
        const PROBE: u64 = 200 * MILLISECOND;
        let peer = 1 - way;
        let (near, far) = (self.exchange.rtt_ns[way], self.exchange.rtt_ns[peer]);
        let wait = MILLISECOND + self.below(400 * MILLISECOND);
        let stopped = self.now + 10 * MICROSECOND;
        let mut opened = stopped + wait;
        self.control(stopped, peer, ACK, self.next[peer], next.seq, Count::ZeroWindow);
        if wait > PROBE {
            let probe = stopped + near + PROBE;
            self.data(probe, way, Segment { len: 1, ..next }, Count::Nothing);
            let answer = probe + far;
            self.control(answer, peer, ACK, self.next[peer], next.seq, Count::ZeroWindow);
            opened = opened.max(answer + MILLISECOND);
        }
        self.control(opened, peer, ACK, self.next[peer], next.seq, Count::Nothing);
        self.now = opened;
    }
}
