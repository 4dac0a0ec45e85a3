//! Pacing: computes when the next frame is due.
//!
//! ```text
//!  packets a second   start + n · 1 s / rate            n: earlier frames
//!  bits a second      start + bits · 1 s / rate         bits: bits of the earlier frames
//!  as recorded        start + (ts - first ts) / speed
//! ```
//!
//! Invariants: the caller passes the time in, this module reads no clock. Each due time is computed
//! from the start in integers, so rounding errors do not add up. A late caller catches up, and the
//! largest delay is kept.

use std::num::NonZeroU64;

const SECOND_NS: u128 = 1_000_000_000;

/// Computes when each frame is due. A recorded frame with an earlier time than its predecessor is
/// due together with it.
#[derive(Clone, Debug)]
pub struct Pace {
    kind: Kind,
    /// Time of the first call.
    start_ns: Option<u64>,
    /// Frames or bits sent so far.
    done: u128,
    /// Recorded: capture time of the first frame.
    first_ns: u64,
    /// Recorded: largest distance of a frame from the first.
    latest_ns: u64,
    /// Largest delay of a frame so far.
    late_ns: u64,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Unlimited,
    Packets(NonZeroU64),
    Bits(NonZeroU64),
    /// In thousandths of the recorded speed.
    Recorded(NonZeroU64),
}

impl Pace {
    /// A pace without limit: every frame is due at once.
    pub fn unlimited() -> Self {
        Self::new(Kind::Unlimited)
    }

    /// A pace of `rate` frames a second, at even distances.
    pub fn packets_per_second(rate: NonZeroU64) -> Self {
        Self::new(Kind::Packets(rate))
    }

    /// A pace of `rate` bits a second. Counts the bits of the frames as given, without frame check
    /// sequence, preamble and inter-frame gap, which add 24 bytes per frame on the wire.
    pub fn bits_per_second(rate: NonZeroU64) -> Self {
        Self::new(Kind::Bits(rate))
    }

    /// A pace that keeps the distances of the frames' recorded times. `speed_thousandths` is the
    /// speed in thousandths of the recorded one: 2000 is twice as fast.
    pub fn recorded(speed_thousandths: NonZeroU64) -> Self {
        Self::new(Kind::Recorded(speed_thousandths))
    }

    fn new(kind: Kind) -> Self {
        Self { kind, start_ns: None, done: 0, first_ns: 0, latest_ns: 0, late_ns: 0 }
    }

    /// Returns the nanoseconds until the next frame is due, 0 if it is due now. `ts_ns` is the
    /// frame's recorded time, `len` its length in bytes. `now_ns` is the time of a monotonic clock.
    ///
    /// The frame counts as sent. Call this once for each frame, in order, and sleep for the
    /// returned time.
    pub fn due(&mut self, now_ns: u64, ts_ns: u64, len: usize) -> u64 {
        let start_ns = *self.start_ns.get_or_insert_with(|| {
            self.first_ns = ts_ns;
            now_ns
        });
        let after_ns = match self.kind {
            Kind::Unlimited => return 0,
            Kind::Packets(rate) => self.advance(1) * SECOND_NS / u128::from(rate.get()),
            Kind::Bits(rate) => self.advance(len as u128 * 8) * SECOND_NS / u128::from(rate.get()),
            Kind::Recorded(speed) => {
                self.latest_ns = self.latest_ns.max(ts_ns.saturating_sub(self.first_ns));
                u128::from(self.latest_ns) * 1000 / u128::from(speed.get())
            }
        };
        let due_ns = u128::from(start_ns) + after_ns;
        let late_ns = u128::from(now_ns).saturating_sub(due_ns) as u64;
        self.late_ns = self.late_ns.max(late_ns);
        u64::try_from(due_ns.saturating_sub(now_ns.into())).unwrap_or(u64::MAX)
    }

    /// Largest delay so far, in nanoseconds, of a frame behind its due time; always 0 for an
    /// unlimited pace.
    pub fn late_ns(&self) -> u64 {
        self.late_ns
    }

    /// Adds `more` to the work done; returns the value before.
    fn advance(&mut self, more: u128) -> u128 {
        let before = self.done;
        self.done += more;
        before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(number: u64) -> NonZeroU64 {
        NonZeroU64::new(number).unwrap()
    }

    /// Sends frames of `len` bytes as a caller that sleeps exactly as long as required; returns
    /// when each frame leaves.
    fn times(mut pace: Pace, frames: impl IntoIterator<Item = (u64, usize)>) -> Vec<u64> {
        let mut now = 1_000;
        let frames = frames.into_iter();
        frames
            .map(|(ts, len)| {
                now += pace.due(now, ts, len);
                now - 1_000
            })
            .collect()
    }

    #[test]
    fn packets_leave_at_even_distances_and_no_error_adds_up() {
        let frames = (0..3_000_001).map(|_| (0, 60));
        let first = times(Pace::packets_per_second(rate(3)), frames.clone().take(4));
        assert_eq!(first, [0, 333_333_333, 666_666_666, 1_000_000_000]);
        let last = *times(Pace::packets_per_second(rate(3)), frames).last().unwrap();
        assert_eq!(last, 1_000_000_000_000_000);
    }

    #[test]
    fn bits_count_the_frames_before() {
        let pace = Pace::bits_per_second(rate(8_000));
        assert_eq!(times(pace, [(0, 1000), (0, 500), (0, 1)]), [0, 1_000_000_000, 1_500_000_000]);
    }

    #[test]
    fn a_recording_keeps_its_distances_at_any_speed() {
        let frames = [(50, 1), (1050, 1), (550, 1), (4050, 1)];
        assert_eq!(times(Pace::recorded(rate(1000)), frames), [0, 1000, 1000, 4000]);
        assert_eq!(times(Pace::recorded(rate(2000)), frames), [0, 500, 500, 2000]);
        assert_eq!(times(Pace::recorded(rate(500)), frames), [0, 2000, 2000, 8000]);
    }

    #[test]
    fn a_late_caller_catches_up() {
        let mut pace = Pace::packets_per_second(rate(1000));
        assert_eq!(pace.due(0, 0, 60), 0);
        let late: Vec<u64> = (0..4).map(|_| pace.due(3_500_000, 0, 60)).collect();
        assert_eq!(late, [0, 0, 0, 500_000]);
        assert_eq!(pace.late_ns(), 2_500_000);
    }

    #[test]
    fn extreme_values_do_not_overflow() {
        let mut pace = Pace::recorded(rate(1));
        assert_eq!(pace.due(u64::MAX, 0, 0), 0);
        assert_eq!(pace.due(u64::MAX, u64::MAX, usize::MAX), u64::MAX);
        let mut pace = Pace::bits_per_second(rate(1));
        assert_eq!(pace.due(0, 0, usize::MAX), 0);
        assert_eq!(pace.due(0, 0, 1), u64::MAX);
        assert_eq!(Pace::unlimited().due(5, 9, 9), 0);
    }
}
