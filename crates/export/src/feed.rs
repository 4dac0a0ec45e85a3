//! Where records go in: a ring to each exporting thread, with patience if it is full; or, for a regular file, the
//! encoder itself.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use ringtap_flow::FlowRecord;
use ringtap_ring::{Producer, Vernier};

use crate::exporter::Exporter;
use crate::link::now;
use crate::shared::Shared;
use crate::{Protocol, Reason, Tally};

/// Records a ring holds: at 96 to 112 bytes each, less than 2 MiB.
pub(crate) const ROOM: usize = 16_384;

/// How long all waits for a collector may take together.
const PATIENCE: Duration = Duration::from_secs(10);

/// What a record taken gives back of it.
const REGAIN: Duration = Duration::from_millis(1);

/// Records after which a sleeping thread is woken.
const WAKE_EVERY: u64 = 1024;

/// Takes records for all collectors. When it is dropped, no more will come.
///
/// A collector that cannot keep up holds the source back, so that a capture file loses nothing; but not for ever. Each
/// collector has ten seconds of patience. Waiting uses it up, and each record taken gives a millisecond of it back. So
/// one that takes a thousand records a second is waited for as long as it likes, and one that takes none costs the run
/// ten seconds; what then finds no room is counted.
pub struct Feed {
    pub(crate) lanes: Vec<Lane>,
}

impl Feed {
    /// Takes a record. May wait while a collector has no room, as said of [`Feed`].
    #[inline]
    pub fn take(&mut self, record: &FlowRecord) {
        self.lanes.iter_mut().for_each(|lane| lane.take(record));
    }
}

/// The way to one collector.
pub(crate) enum Lane {
    Ring(Box<RingLane>),
    Here(Here),
}

impl Lane {
    #[inline]
    fn take(&mut self, record: &FlowRecord) {
        match self {
            Self::Ring(lane) => lane.take(record),
            Self::Here(here) => here.take(record),
        }
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        match self {
            Self::Ring(lane) => lane.shared.books().offered = lane.offered,
            Self::Here(here) => here.finish(),
        }
    }
}

/// An exporter that works where records come from. The lock is for whoever finishes its file and begins another one.
pub(crate) struct Here(pub(crate) Arc<Mutex<Option<Exporter>>>);

impl Here {
    #[inline]
    fn take(&self, record: &FlowRecord) {
        if let Some(exporter) = &mut *self.lock() {
            exporter.add(record);
        }
    }

    pub(crate) fn renew(&self) {
        if let Some(exporter) = &mut *self.lock() {
            exporter.renew();
        }
    }

    fn finish(&self) {
        let exporter = self.lock().take();
        exporter.into_iter().for_each(Exporter::finish);
    }

    fn lock(&self) -> MutexGuard<'_, Option<Exporter>> {
        self.0.lock().unwrap_or_else(|poison| poison.into_inner())
    }
}

/// The way to one exporting thread.
pub(crate) struct RingLane {
    records: Producer<FlowRecord, Vernier>,
    protocol: Protocol,
    shared: Arc<Shared>,
    offered: Tally,
    patience: Duration,
    pushed: u64,
}

impl RingLane {
    pub(crate) fn new(
        records: Producer<FlowRecord, Vernier>,
        protocol: Protocol,
        shared: Arc<Shared>,
    ) -> Self {
        let offered = Tally::default();
        Self { records, protocol, shared, offered, patience: PATIENCE, pushed: 0 }
    }

    #[inline]
    fn take(&mut self, record: &FlowRecord) {
        self.offered += self.protocol.tally(record);
        if self.records.push(*record).is_err() {
            return self.wait(record);
        }
        self.patience = (self.patience + REGAIN).min(PATIENCE);
        self.pushed += 1;
        if self.pushed.is_multiple_of(WAKE_EVERY) {
            self.records.wake();
        }
    }

    #[cold]
    fn wait(&mut self, record: &FlowRecord) {
        self.records.wake();
        while !self.patience.is_zero() && !self.records.is_abandoned() {
            let before = now();
            self.records.park(self.patience.min(Duration::from_millis(50)));
            let pushed = self.records.push(*record).is_ok();
            self.patience = self.patience.saturating_sub(before.elapsed());
            if pushed {
                return;
            }
        }
        self.shared.books().summary.lose(Reason::NoRoom, self.protocol.tally(record));
    }
}
