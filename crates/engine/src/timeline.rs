//! Packet time: the clock for marks, expiry and intervals, from the timestamps of packets.
//!
//! ```text
//!            far behind      │  near: time goes on to the latest  │      far ahead
//!  ──────────────────────────┼──────────────── now ───────────────┼──────────────────────────▶
//!   32 in a row: a step back   now − 60 s              now + 60 s   4 in a row: a step ahead
//! ```
//!
//! One packet moves time by a minute at most (by a tick, if that is longer). A packet further away
//! moves it only together with consecutive others: 4 ahead of it, as after a gap in the traffic; 32
//! behind it, as after a clock was set back or in an older second capture. Time then moves as far
//! as all of them agree. A few far ahead followed by others that are not are *strays*: they are
//! counted, and time continues without them.
//!
//! Invariant: a pure function of the timestamps in their order. Packets without a time (0) are
//! ignored.

/// The most that one packet moves time.
const FAR_NS: u64 = 60_000_000_000;

/// Consecutive packets that step time ahead, and back.
const AHEAD: u32 = 4;
const BACK: u32 = 32;

#[derive(Clone, Debug)]
pub(crate) struct Timeline {
    far_ns: u64,
    now_ns: Option<u64>,
    run: Run,
    strays: u64,
    steps_back: u64,
    last_step_ns: u64,
}

/// Consecutive packets that are far away on the same side.
#[derive(Clone, Copy, Debug, Default)]
struct Run {
    packets: u32,
    ahead: bool,
    low_ns: u64,
    high_ns: u64,
}

/// The effect of a packet on time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moved {
    /// None, or a small advance.
    On,
    /// The packet is far away, and not confirmed.
    Not,
    /// Time stepped ahead, as after a gap.
    Ahead,
    /// Time was set back, from this time.
    Back {
        /// Nanoseconds since 1970.
        from_ns: u64,
    },
}

impl Timeline {
    /// Before any packet; `tick_ns` is the distance of marks.
    pub(crate) fn new(tick_ns: u64) -> Self {
        Self {
            far_ns: FAR_NS.max(tick_ns),
            now_ns: None,
            run: Run::default(),
            strays: 0,
            steps_back: 0,
            last_step_ns: 0,
        }
    }

    /// The time now; `None` before the first packet.
    pub(crate) fn now_ns(&self) -> Option<u64> {
        self.now_ns
    }

    /// The time at the end of the stream. Packets far ahead without later ones are accepted.
    pub(crate) fn end_ns(&self) -> u64 {
        let now_ns = self.now_ns.unwrap_or(0);
        if self.doubted() > 0 { self.run.high_ns } else { now_ns }
    }

    /// Packets far ahead that no others confirmed.
    pub(crate) fn strays(&self) -> u64 {
        self.strays
    }

    /// How often time was set back.
    pub(crate) fn steps_back(&self) -> u64 {
        self.steps_back
    }

    /// How far it was set back by the last time.
    pub(crate) fn last_step_ns(&self) -> u64 {
        self.last_step_ns
    }

    /// Handles a packet.
    #[inline(always)]
    pub(crate) fn see(&mut self, ts_ns: u64) -> Moved {
        match self.now_ns {
            Some(now_ns) if now_ns.abs_diff(ts_ns) <= self.far_ns => {
                self.now_ns = Some(now_ns.max(ts_ns));
                if self.run.packets > 0 {
                    self.refute();
                }
                Moved::On
            }
            _ => self.see_far(ts_ns),
        }
    }

    /// Handles many packets at once, of which only the lowest and the highest time are known;
    /// false, without any effect, if they must be handled one by one.
    pub(crate) fn see_all(&mut self, low_ns: u64, high_ns: u64) -> bool {
        let Some(now_ns) = self.now_ns else { return false };
        let high_ns = high_ns.max(now_ns);
        let near = high_ns - now_ns <= self.far_ns && high_ns.saturating_sub(low_ns) <= self.far_ns;
        if near && self.run.packets == 0 {
            self.now_ns = Some(high_ns);
        }
        near && self.run.packets == 0
    }

    /// Whether `ts_ns` moves time in the ordinary way.
    #[inline(always)]
    pub(crate) fn is_near(&self, ts_ns: u64) -> bool {
        self.now_ns.is_some_and(|now_ns| now_ns.abs_diff(ts_ns) <= self.far_ns)
    }

    /// The last packets far ahead, which later ones may confirm.
    pub(crate) fn doubted(&self) -> u64 {
        if self.run.ahead { self.run.packets.into() } else { 0 }
    }

    /// Sets time to a clock's value.
    pub(crate) fn set(&mut self, now_ns: u64) {
        self.refute();
        self.step_to(now_ns);
    }

    fn step_to(&mut self, now_ns: u64) {
        let before_ns = self.now_ns.replace(now_ns).unwrap_or(now_ns);
        if now_ns < before_ns {
            self.steps_back += 1;
            self.last_step_ns = before_ns - now_ns;
        }
        self.run = Run::default();
    }

    #[cold]
    fn see_far(&mut self, ts_ns: u64) -> Moved {
        if ts_ns == 0 {
            return Moved::Not;
        }
        let Some(now_ns) = self.now_ns else {
            self.now_ns = Some(ts_ns);
            return Moved::On;
        };
        let ahead = ts_ns > now_ns;
        if self.run.packets > 0 && self.run.ahead != ahead {
            self.refute();
        }
        let run = &mut self.run;
        *run = match run.packets {
            0 => Run { packets: 1, ahead, low_ns: ts_ns, high_ns: ts_ns },
            packets => Run {
                packets: packets + 1,
                low_ns: run.low_ns.min(ts_ns),
                high_ns: run.high_ns.max(ts_ns),
                ..*run
            },
        };
        let Run { packets, low_ns, high_ns, .. } = *run;
        match ahead {
            true if packets >= AHEAD => {
                self.step_to(low_ns);
                Moved::Ahead
            }
            false if packets >= BACK => {
                self.step_to(high_ns);
                Moved::Back { from_ns: now_ns }
            }
            _ => Moved::Not,
        }
    }

    /// A packet that is not far away follows those that are.
    #[cold]
    fn refute(&mut self) {
        if self.run.ahead {
            self.strays += u64::from(self.run.packets);
        }
        self.run = Run::default();
    }
}

/// The times at which a table begins its next turn: its entries leave at the second one. A step of
/// time, ahead or back, is no turn, so it ends nothing: the period begins anew.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turns {
    period_ns: u64,
    /// The time of the last one, or of the first packet.
    last_ns: Option<u64>,
}

impl Turns {
    /// Turns that are at least `period_ns` apart.
    pub(crate) fn new(period_ns: u64) -> Self {
        Self { period_ns, last_ns: None }
    }

    /// Whether a turn begins at this time, a period after the last one.
    #[inline(always)]
    pub(crate) fn begins_at(&mut self, now_ns: u64) -> bool {
        if self.last_ns.is_some() && !self.is_due(now_ns) {
            return false;
        }
        let most_ns = self.period_ns.saturating_add(FAR_NS);
        let last_ns = self.last_ns.replace(now_ns);
        last_ns.is_some_and(|last_ns| now_ns >= last_ns && now_ns - last_ns <= most_ns)
    }

    /// Whether a turn, or a period, begins at this time.
    #[inline(always)]
    pub(crate) fn is_due(&self, now_ns: u64) -> bool {
        self.last_ns.is_some_and(|last_ns| now_ns < last_ns || now_ns - last_ns >= self.period_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;
    const HOUR: u64 = 3600 * SECOND;
    const BEGIN: u64 = 1_700_000_000 * SECOND;

    fn after(times: &[u64]) -> Timeline {
        let mut timeline = Timeline::new(SECOND);
        times.iter().for_each(|&ts_ns| {
            timeline.see(ts_ns);
        });
        timeline
    }

    #[test]
    fn time_is_the_latest_of_packets_near_by() {
        let timeline = after(&[BEGIN, BEGIN + 59 * SECOND, BEGIN + 5 * SECOND, 0]);
        assert_eq!(timeline.now_ns(), Some(BEGIN + 59 * SECOND));
        assert_eq!((timeline.end_ns(), timeline.strays()), (BEGIN + 59 * SECOND, 0));
    }

    #[test]
    fn a_stray_moves_nothing_and_is_counted() {
        for strays in 1..AHEAD {
            let mut times = vec![BEGIN];
            times.extend((0..strays).map(|_| BEGIN + 8_760 * HOUR));
            times.push(BEGIN + SECOND);
            let timeline = after(&times);
            assert_eq!(timeline.now_ns(), Some(BEGIN + SECOND));
            assert_eq!((timeline.strays(), timeline.steps_back()), (u64::from(strays), 0));
            assert_eq!(timeline.end_ns(), BEGIN + SECOND);
        }
    }

    #[test]
    fn behind_a_gap_time_goes_on_where_all_agree() {
        let mut timeline = after(&[BEGIN]);
        for seconds in [9, 2, 3] {
            assert_eq!(timeline.see(BEGIN + HOUR + seconds * SECOND), Moved::Not);
        }
        assert_eq!(timeline.end_ns(), BEGIN + HOUR + 9 * SECOND);
        assert_eq!(timeline.see(BEGIN + 9 * HOUR), Moved::Ahead);
        assert_eq!((timeline.now_ns(), timeline.strays()), (Some(BEGIN + HOUR + 2 * SECOND), 0));
    }

    #[test]
    fn time_is_set_back_when_many_in_a_row_agree() {
        let mut timeline = after(&[BEGIN]);
        for _ in 1..BACK {
            assert_eq!(timeline.see(BEGIN - HOUR), Moved::Not);
        }
        assert_eq!(timeline.see(BEGIN - HOUR - SECOND), Moved::Back { from_ns: BEGIN });
        assert_eq!((timeline.now_ns(), timeline.steps_back()), (Some(BEGIN - HOUR), 1));
        // Single late packets are not a step.
        let late: Vec<u64> = (0..1_000).map(|n| BEGIN - HOUR * u64::from(n % 31 > 0)).collect();
        let timeline = after(&late);
        assert_eq!((timeline.now_ns(), timeline.steps_back()), (Some(BEGIN), 0));
    }

    #[test]
    fn many_at_once_are_as_one_by_one() {
        let mut dice = 7_u64;
        let (mut one, mut many) = (Timeline::new(SECOND), Timeline::new(SECOND));
        let (mut at_once, mut base) = (0, BEGIN);
        for _ in 0..20_000 {
            let mut roll = |most: u64| {
                dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (dice >> 33) % most
            };
            base = if roll(50) == 0 { BEGIN + roll(20) * 40 * SECOND } else { base + roll(SECOND) };
            let times: Vec<u64> =
                (0..1 + roll(40)).map(|_| base + roll(2) * roll(70) * SECOND).collect();
            times.iter().for_each(|&ts_ns| {
                one.see(ts_ns);
            });
            let (low_ns, high_ns) = (times.iter().min(), times.iter().max());
            if many.see_all(*low_ns.unwrap(), *high_ns.unwrap()) {
                at_once += 1;
            } else {
                times.iter().for_each(|&ts_ns| {
                    many.see(ts_ns);
                });
            }
            assert_eq!(format!("{one:?}"), format!("{many:?}"));
        }
        assert!(at_once > 100 && one.strays() > 10 && one.steps_back() > 10, "{at_once}, {one:?}");
    }

    #[test]
    fn a_turn_begins_after_a_period_and_at_no_step() {
        let mut turns = Turns::new(10 * SECOND);
        let begins = [0, 9, 10, 19, 20, 3_600, 3_601, 3_610, 5, 6, 15].map(|seconds| {
            let now_ns = BEGIN + seconds * SECOND;
            let due = turns.is_due(now_ns);
            let begins = turns.begins_at(now_ns);
            assert!(due || !begins);
            begins
        });
        let t = true;
        assert_eq!(begins, [!t, !t, t, !t, t, !t, !t, t, !t, !t, t]);
    }

    #[test]
    fn the_ends_of_time_are_reached() {
        let mut timeline = after(&[u64::MAX, 1]);
        assert_eq!(timeline.end_ns(), u64::MAX);
        for _ in 0..BACK {
            timeline.see(1);
        }
        for _ in 0..AHEAD {
            timeline.see(u64::MAX);
        }
        assert_eq!((timeline.now_ns(), timeline.steps_back()), (Some(u64::MAX), 1));
    }
}
