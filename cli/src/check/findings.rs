//! What is found of stamped frames. The names are those of `--report json`; docs/GENERATE.md defines
//! them.

use std::collections::BTreeMap;

use ringtap_io::live::Receiver;
use ringtap_traffic::{Arrivals, Reading, Stamp};
use serde::Serialize;

/// Streams that are told apart.
const STREAMS_MOST: usize = 64;

#[derive(Default, Serialize)]
pub(super) struct Findings {
    pub(super) interface: String,
    /// Frames that came, of whatever kind, and those of them without a stamp.
    pub(super) frames: u64,
    pub(super) unstamped: u64,
    /// Frames with a stamp and a wrong checksum.
    pub(super) corrupted: u64,
    /// Sums over all streams.
    pub(super) received: u64,
    pub(super) lost: u64,
    pub(super) duplicated: u64,
    pub(super) reordered: u64,
    pub(super) stale: u64,
    /// Stamped frames of more streams than are told apart.
    pub(super) other_streams: u64,
    pub(super) streams: Vec<Stream>,
    /// From the first stamped frame to the last.
    pub(super) seconds: f64,
    pub(super) packets_per_second: f64,
    /// Frames that this receiver lost, by reason, and that the interface lost before.
    pub(super) dropped: BTreeMap<&'static str, u64>,
    pub(super) missed: Option<u64>,

    #[serde(skip)]
    expected: Option<u64>,
    #[serde(skip)]
    arrivals: BTreeMap<(u16, u8), Arrivals>,
    #[serde(skip)]
    range_ns: Option<(u64, u64)>,
}

/// What is found of the frames of one sender.
#[derive(Serialize)]
pub(super) struct Stream {
    pub(super) run: u16,
    pub(super) stream: u8,
    pub(super) received: u64,
    pub(super) lost: u64,
    pub(super) duplicated: u64,
    pub(super) reordered: u64,
    pub(super) stale: u64,
    /// Frames that came before they were sent, by two clocks that differ.
    pub(super) before_sent: u64,
    /// None if no frame told when it was sent.
    pub(super) latency_ns: Option<Spread>,
}

/// A distribution.
#[derive(Clone, Copy, Serialize)]
pub(super) struct Spread {
    pub(super) min: u64,
    pub(super) p50: u64,
    pub(super) p99: u64,
    pub(super) max: u64,
}

impl Findings {
    /// Nothing yet, of `expected` stamped frames if that is known.
    pub(super) fn new(interface: &str, expected: Option<u64>) -> Self {
        Self { interface: interface.to_owned(), expected, ..Self::default() }
    }

    pub(super) fn take(&mut self, ts_ns: u64, frame: &[u8]) {
        self.frames += 1;
        let stamp = match Stamp::read(frame) {
            Reading::Unstamped => {
                self.unstamped += 1;
                return;
            }
            Reading::Corrupted => {
                self.corrupted += 1;
                return;
            }
            Reading::Stamped(stamp) => stamp,
        };
        let key = (stamp.run, stamp.stream);
        if self.arrivals.len() == STREAMS_MOST && !self.arrivals.contains_key(&key) {
            self.other_streams += 1;
            return;
        }
        let arrivals = self.arrivals.entry(key).or_default();
        let before = arrivals.tally().received;
        arrivals.add(stamp.number, stamp.latency_ns(ts_ns));
        self.received += arrivals.tally().received - before;
        let (first, last) = self.range_ns.unwrap_or((ts_ns, ts_ns));
        self.range_ns = Some((first.min(ts_ns), last.max(ts_ns)));
    }

    /// Frames with a stamp, however they came.
    pub(super) fn stamped(&self) -> u64 {
        self.frames - self.unstamped
    }

    /// Whether as many have come as were sent.
    pub(super) fn all_came(&self) -> bool {
        self.expected.is_some_and(|expected| self.received >= expected)
    }

    /// Adds up, and asks the receivers what they lost.
    pub(super) fn close(&mut self, receivers: &mut [Receiver]) {
        self.add_up();
        for receiver in receivers.iter_mut() {
            for (reason, frames) in receiver.counters().dropped.by_reason() {
                if frames > 0 {
                    *self.dropped.entry(reason).or_default() += frames;
                }
            }
        }
        self.missed = receivers.first().and_then(Receiver::missed);
    }

    fn add_up(&mut self) {
        self.streams =
            self.arrivals.iter().map(|(&key, arrivals)| Stream::of(key, arrivals)).collect();
        let sum = |field: fn(&Stream) -> u64| self.streams.iter().map(field).sum();
        self.duplicated = sum(|stream| stream.duplicated);
        self.reordered = sum(|stream| stream.reordered);
        self.stale = sum(|stream| stream.stale);
        let missing: u64 = sum(|stream| stream.lost);
        // What is missing at the end shows only in the number of all.
        let never_came = self.expected.unwrap_or(0).saturating_sub(self.received);
        self.lost = missing.max(never_came);
        let (first, last) = self.range_ns.unwrap_or_default();
        self.seconds = (last - first) as f64 / 1e9;
        if last > first {
            self.packets_per_second = self.received as f64 / self.seconds;
        }
    }

    /// Whether frames came, all of them, once and whole.
    pub(super) fn all_well(&self) -> bool {
        self.received > 0
            && [self.lost, self.duplicated, self.stale, self.corrupted, self.other_streams]
                == [0; 5]
    }
}

impl Stream {
    fn of((run, stream): (u16, u8), arrivals: &Arrivals) -> Self {
        let tally = arrivals.tally();
        let latency = arrivals.latency();
        let spread = latency.range().zip(latency.quantile(500)).zip(latency.quantile(990));
        Self {
            run,
            stream,
            received: tally.received,
            lost: tally.lost(None),
            duplicated: tally.duplicated,
            reordered: tally.reordered,
            stale: tally.stale,
            before_sent: tally.before_sent,
            latency_ns: spread.map(|(((min, max), p50), p99)| Spread { min, p50, p99, max }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A UDP datagram over IPv4 without a checksum, stamped as `number` of `run`.
    fn frame(run: u16, number: u64) -> Vec<u8> {
        let mut frame = vec![0; 60];
        frame[12..18].copy_from_slice(&[8, 0, 0x45, 0, 0, 46]);
        frame[23] = 17;
        frame[39] = 26;
        assert!(Stamp { run, stream: 0, number, sent_ns: Some(1_000) }.write(&mut frame));
        frame
    }

    #[test]
    fn streams_are_told_apart_up_to_a_number() {
        let mut findings = Findings::new("eth0", None);
        for run in 0..=STREAMS_MOST as u16 {
            findings.take(5_000, &frame(run, 0));
            findings.take(9_000, &frame(run, 2));
        }
        findings.take(9_000, &[0; 60]);
        findings.add_up();
        assert_eq!((findings.frames, findings.unstamped, findings.other_streams), (131, 1, 2));
        assert_eq!((findings.received, findings.lost, findings.streams.len()), (128, 64, 64));
        let spread = findings.streams[0].latency_ns.unwrap();
        assert_eq!((spread.min, spread.max), (4_000, 8_000));
        assert!(!findings.all_well() && !findings.all_came());
    }

    #[test]
    fn what_is_missing_at_the_end_shows_in_the_number_of_all() {
        let mut findings = Findings::new("eth0", Some(10));
        findings.take(5_000, &frame(1, 0));
        findings.take(5_000, &frame(1, 2));
        findings.add_up();
        assert_eq!((findings.received, findings.lost), (2, 8));
        // Nothing at all is not well either.
        assert!(!Findings::new("eth0", None).all_well());
    }
}
