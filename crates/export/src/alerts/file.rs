//! Alerts as JSON lines in a file. Unlike a file of records, it has its name from the start, so that each alert can be read
//! at once.

use super::{Notice, Target, count_lost, count_sent};
use crate::Reason;
use crate::shared::Shared;
use crate::store::{Retry, Store, Unwritten, finish, persist, tick};

pub(crate) struct FileTarget {
    store: Box<dyn Store>,
    /// The length of the periods that have a file each.
    every_ns: Option<u64>,
    /// The number of the current period since 1970.
    period: Option<u64>,
    /// The store failed at the last second.
    ticks_failed: bool,
    reader_gone: bool,
}

impl FileTarget {
    pub(crate) fn new(store: Box<dyn Store>, every_ns: Option<u64>) -> Self {
        Self { store, every_ns, period: None, ticks_failed: false, reader_gone: false }
    }

    /// Begins the period of an alert. An earlier one does not begin again, because the ends of alerts may be found late.
    fn turn(&mut self, time_ns: u64) {
        let Some(every_ns) = self.every_ns else { return };
        let period = time_ns / every_ns;
        if self.period.is_none_or(|before| period > before) {
            self.period = Some(period);
            self.store.begins(period.saturating_mul(every_ns) / 1_000_000_000);
        }
    }
}

impl Target for FileTarget {
    fn deliver(&mut self, notice: &Notice, shared: &Shared) {
        let line = notice.object() + "\n";
        self.turn(notice.time_ns);
        loop {
            if self.reader_gone {
                return count_lost(Reason::ReaderGone, shared);
            }
            match persist(&mut *self.store, line.as_bytes(), shared, Retry::UntilRenewal) {
                Ok(()) => return count_sent(line.len(), shared),
                Err(Unwritten::Renewal) => self.renew(shared),
                Err(Unwritten::Lost(reason)) => {
                    self.reader_gone |= reason == Reason::ReaderGone;
                    return count_lost(reason, shared);
                }
            }
        }
    }

    fn store(&mut self) -> Option<&mut dyn Store> {
        Some(&mut *self.store)
    }

    fn tick(&mut self, shared: &Shared) {
        tick(&mut *self.store, &mut self.ticks_failed, shared);
    }

    fn finish(&mut self, shared: &Shared) {
        let closed = finish(shared, || self.store.close());
        if closed.is_ok() && self.ticks_failed {
            shared.works();
        }
    }

    fn renew(&mut self, shared: &Shared) {
        // After a wrong clock, too.
        self.period = None;
        if let Err(error) = self.store.finish() {
            shared.fails(&error);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::alerts::tests::{notice, shared};

    const MINUTE: u64 = 60_000_000_000;

    /// Notes each call.
    struct Notes(Arc<Mutex<Vec<String>>>);

    impl Store for Notes {
        fn write(&mut self, octets: &[u8]) -> io::Result<()> {
            self.0.lock().unwrap().push(String::from_utf8(octets.to_vec()).unwrap());
            Ok(())
        }

        fn finish(&mut self) -> io::Result<()> {
            self.0.lock().unwrap().push("finish".into());
            Ok(())
        }

        fn begins(&mut self, seconds: u64) {
            self.0.lock().unwrap().push(seconds.to_string());
        }

        fn is_regular(&self) -> bool {
            true
        }

        fn may_abandon(&self) -> bool {
            false
        }
    }

    /// The calls for alerts at these times.
    fn calls(every_ns: Option<u64>, times: &[u64]) -> Vec<String> {
        let notes = Arc::default();
        let mut target = FileTarget::new(Box::new(Notes(Arc::clone(&notes))), every_ns);
        let shared = shared();
        for (at, &time_ns) in times.iter().enumerate() {
            target.deliver(&Notice { time_ns, ..notice(&at.to_string()) }, &shared);
        }
        target.renew(&shared);
        let notes = notes.lock().unwrap();
        let is_line = |note: &str| note.ends_with('\n');
        notes.iter().map(|note| if is_line(note) { "line".into() } else { note.clone() }).collect()
    }

    #[test]
    fn a_period_begins_with_its_first_alert_and_late_ones_stay_in_the_current_file() {
        let times = [600, 659, 660, 659, 720, 60].map(|seconds| seconds * 1_000_000_000);
        let expected =
            ["600", "line", "line", "660", "line", "line", "720", "line", "line", "finish"];
        assert_eq!(calls(Some(MINUTE), &times), expected);
        assert_eq!(calls(None, &times[..2]), ["line", "line", "finish"]);
    }

    #[test]
    fn after_a_renewal_any_period_may_begin() {
        let notes = Arc::default();
        let mut target = FileTarget::new(Box::new(Notes(Arc::clone(&notes))), Some(MINUTE));
        for _ in 0..2 {
            target.deliver(&Notice { time_ns: MINUTE, ..notice("a") }, &shared());
            target.deliver(&Notice { time_ns: 3 * MINUTE, ..notice("b") }, &shared());
            target.renew(&shared());
        }
        let begins = |note: &&String| note.parse::<u64>().is_ok();
        assert_eq!(
            notes.lock().unwrap().iter().filter(begins).collect::<Vec<_>>(),
            ["60", "180"].repeat(2).iter().collect::<Vec<_>>()
        );
    }
}
