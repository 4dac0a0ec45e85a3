//! How much CPU time rendering may take, whatever the clients do.

/// Time between two samples, and the shortest time between two events.
pub(super) const SECOND_NS: u64 = 1_000_000_000;

/// Events of one view take at most one part in this many of the time; those of several views together at most
/// [`VIEWS`] times as much.
const EVENTS: u64 = 50;
const VIEWS: u64 = 5;

/// Replies take at most one part in this many of the time, after a reserve.
const REPLIES: u64 = 20;
const RESERVE_NS: u64 = 20_000_000_000;

/// The times at which samples, events and replies are due, nanoseconds of one clock.
#[derive(Debug, Default)]
pub(super) struct Pace {
    sample_ns: u64,
    event_ns: u64,
    /// When the latest event was begun, and the time that rendering it took.
    begun_ns: u64,
    taken_ns: u64,
    views: u64,
    /// Not all who follow have got the latest event.
    is_publishing: bool,
    /// The end of the time that replies have used, ahead of the clock.
    used_ns: u64,
}

impl Pace {
    /// The next time at which anything is due.
    pub(super) fn next_ns(&self) -> u64 {
        if self.is_publishing { 0 } else { self.sample_ns.min(self.event_ns) }
    }

    /// Whether a sample is due; then the next one is due in the next second.
    pub(super) fn takes_sample(&mut self, now_ns: u64) -> bool {
        let is_due = now_ns >= self.sample_ns;
        if is_due {
            self.sample_ns = (now_ns / SECOND_NS + 1) * SECOND_NS;
        }
        is_due
    }

    /// Whether the latest event is still to be sent to some.
    pub(super) fn is_publishing(&self) -> bool {
        self.is_publishing
    }

    /// All have got the latest event.
    pub(super) fn published(&mut self) {
        self.is_publishing = false;
    }

    /// Whether an event is due; then it begins now.
    pub(super) fn begins_event(&mut self, now_ns: u64) -> bool {
        // The time that the latest event took decides when the next one is due.
        let rest_ns = self.taken_ns.saturating_mul(EVENTS / self.views.clamp(1, VIEWS));
        let due_ns = self.begun_ns.saturating_add(rest_ns);
        if now_ns < self.event_ns.max(due_ns) {
            self.event_ns = self.event_ns.max(due_ns);
            return false;
        }
        (self.begun_ns, self.taken_ns, self.views) = (now_ns, 0, 0);
        self.is_publishing = true;
        // Behind the sample of that second.
        self.event_ns = self.sample_ns;
        true
    }

    /// A view of the event was rendered.
    pub(super) fn took_for_event(&mut self, ns: u64) {
        self.taken_ns = self.taken_ns.saturating_add(ns);
        self.views += 1;
    }

    /// Whether there is time for a reply.
    pub(super) fn has_time_for_reply(&self, now_ns: u64) -> bool {
        self.used_ns <= now_ns.saturating_add(RESERVE_NS)
    }

    /// A reply was rendered.
    pub(super) fn took_for_reply(&mut self, ns: u64, now_ns: u64) {
        self.used_ns = self.used_ns.max(now_ns).saturating_add(ns.saturating_mul(REPLIES));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs an hour in which each event has this number of views, each of which takes this long; returns the number of
    /// samples and of events.
    fn hour(views: u64, taken_ns: u64) -> (u64, u64) {
        let (mut pace, mut now_ns, mut samples, mut events) = (Pace::default(), 5, 0, 0);
        while now_ns < 3_600 * SECOND_NS {
            samples += u64::from(pace.takes_sample(now_ns));
            if pace.begins_event(now_ns) {
                (0..views).for_each(|_| pace.took_for_event(taken_ns));
                now_ns += views * taken_ns;
                events += 1;
                assert!(pace.is_publishing() && pace.next_ns() == 0);
                pace.published();
            }
            assert!(pace.next_ns() <= now_ns + SECOND_NS);
            now_ns = now_ns.max(pace.next_ns());
        }
        (samples, events)
    }

    #[test]
    fn events_follow_samples_and_take_a_fiftieth_of_the_time() {
        assert_eq!(hour(1, 1_000_000), (3_600, 3_600));
        let (samples, events) = hour(1, 100_000_000);
        assert_eq!(samples, 3_600);
        assert!((710..=720).contains(&events), "{events}");
        let (samples, events) = hour(1, 3_000_000_000);
        assert!((22..=24).contains(&events) && samples > 3_500, "{samples} {events}");
        // Many views: a tenth of the time.
        let (_, events) = hour(60, 10_000_000);
        assert!((590..=600).contains(&events), "{events}");
    }

    #[test]
    fn replies_take_a_twentieth_of_the_time_after_a_reserve() {
        let (mut pace, mut replies) = (Pace::default(), 0);
        for tenth in 0..36_000 {
            let now_ns = tenth * SECOND_NS / 10;
            if pace.has_time_for_reply(now_ns) {
                pace.took_for_reply(SECOND_NS / 10, now_ns);
                replies += 1;
            }
        }
        assert!((1_800..=1_820).contains(&replies), "{replies}");
        assert!(!pace.has_time_for_reply(3_600 * SECOND_NS - 1_000));
        assert!(pace.has_time_for_reply(3_610 * SECOND_NS));
    }
}
