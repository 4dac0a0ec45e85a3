//! The results of `ringtap check`. Field names are those of `--report json`; docs/GENERATE.md
//! defines them.

use std::collections::BTreeMap;

use ringtap_io::live::Receiver;
use ringtap_traffic::{Arrivals, Reading, Stamp};
use serde::Serialize;

/// Limit of streams with their own counters.
const STREAMS_MOST: usize = 64;

/// Counters of all frames and streams.
#[derive(Default, Serialize)]
pub(super) struct Findings {
    pub(super) interface: String,
    /// All received frames, and those without a stamp.
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
    /// Stamped frames of streams beyond [`STREAMS_MOST`].
    pub(super) other_streams: u64,
    pub(super) streams: Vec<Stream>,
    /// Time from the first stamped frame to the last.
    pub(super) seconds: f64,
    pub(super) packets_per_second: f64,
    /// Frames lost by this receiver, by reason, and frames lost by the interface.
    pub(super) dropped: BTreeMap<&'static str, u64>,
    pub(super) missed: Option<u64>,

    #[serde(skip)]
    expected: Option<u64>,
    #[serde(skip)]
    arrivals: BTreeMap<(u16, u8), Arrivals>,
    #[serde(skip)]
    range_ns: Option<(u64, u64)>,
}

/// Results for one sender.
#[derive(Serialize)]
pub(super) struct Stream {
    pub(super) run: u16,
    pub(super) stream: u8,
    pub(super) received: u64,
    pub(super) lost: u64,
    pub(super) duplicated: u64,
    pub(super) reordered: u64,
    pub(super) stale: u64,
    /// Frames that arrived before their send time: the two clocks differ.
    pub(super) before_sent: u64,
    /// `None` if no frame has a send time.
    pub(super) latency_ns: Option<Spread>,
}

/// A distribution of latencies, in nanoseconds.
#[derive(Clone, Copy, Serialize)]
pub(super) struct Spread {
    pub(super) min: u64,
    pub(super) p50: u64,
    pub(super) p99: u64,
    pub(super) max: u64,
}

impl Findings {
    /// Empty results, with `expected` stamped frames if known.
    pub(super) fn new(interface: &str, expected: Option<u64>) -> Self {
        Self { interface: interface.to_owned(), expected, ..Self::default() }
    }

    /// Counts a frame received at `ts_ns`.
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
        let before = arrivals.counters().received;
        arrivals.add(stamp.number, stamp.latency_ns(ts_ns));
        self.received += arrivals.counters().received - before;
        let (first, last) = self.range_ns.unwrap_or((ts_ns, ts_ns));
        self.range_ns = Some((first.min(ts_ns), last.max(ts_ns)));
    }

    /// Frames with a stamp, including copies and corrupted ones.
    pub(super) fn stamped(&self) -> u64 {
        self.frames - self.unstamped
    }

    /// Whether all sent frames have arrived.
    pub(super) fn all_arrived(&self) -> bool {
        self.expected.is_some_and(|expected| self.received >= expected)
    }

    /// Computes the sums, and adds the losses of the receivers.
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

    /// Computes the streams and the sums over them.
    fn add_up(&mut self) {
        self.streams =
            self.arrivals.iter().map(|(&key, arrivals)| Stream::of(key, arrivals)).collect();
        let sum = |field: fn(&Stream) -> u64| self.streams.iter().map(field).sum();
        self.duplicated = sum(|stream| stream.duplicated);
        self.reordered = sum(|stream| stream.reordered);
        self.stale = sum(|stream| stream.stale);
        let missing: u64 = sum(|stream| stream.lost);
        // Frames missing at the end are only known from the expected number.
        let not_received = self.expected.unwrap_or(0).saturating_sub(self.received);
        self.lost = missing.max(not_received);
        let (first, last) = self.range_ns.unwrap_or_default();
        self.seconds = (last - first) as f64 / 1e9;
        if last > first {
            self.packets_per_second = self.received as f64 / self.seconds;
        }
    }

    /// Whether frames arrived, and all of them once and intact.
    pub(super) fn is_success(&self) -> bool {
        self.received > 0
            && [self.lost, self.duplicated, self.stale, self.corrupted, self.other_streams]
                == [0; 5]
    }
}

impl Stream {
    fn of((run, stream): (u16, u8), arrivals: &Arrivals) -> Self {
        let counts = arrivals.counters();
        let latency = arrivals.latency();
        let spread = latency.range().zip(latency.quantile(500)).zip(latency.quantile(990));
        Self {
            run,
            stream,
            received: counts.received,
            lost: counts.lost(None),
            duplicated: counts.duplicated,
            reordered: counts.reordered,
            stale: counts.stale,
            before_sent: counts.before_sent,
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
    fn streams_have_their_own_counters_up_to_a_limit() {
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
        assert!(!findings.is_success() && !findings.all_arrived());
    }

    #[test]
    fn frames_missing_at_the_end_are_lost() {
        let mut findings = Findings::new("eth0", Some(10));
        findings.take(5_000, &frame(1, 0));
        findings.take(5_000, &frame(1, 2));
        findings.add_up();
        assert_eq!((findings.received, findings.lost), (2, 8));
        // No frames are not a success either.
        assert!(!Findings::new("eth0", None).is_success());
    }
}
