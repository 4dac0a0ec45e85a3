//! Measurement: heavy keys, found by a sketch or a table, in several designs.
//!
//! X. Wu, P. Li, Y. Ran, Y. Luo, "Network Measurement for 100 Gbps Links Using Multicore
//! Processors", compares designs of three axes. Two belong to this crate: the structure, and
//! whether it is separate or shared. The third, the distribution of packets (SYNC, ASYNC, RSS), is
//! the choice of a skeleton.
//!
//! ```text
//!            ┌ separate ─ worker: keys ─▶ its own structure ─┐ merged at the end
//!  packets ─▶┤                     or of each interval       ├─▶ Findings ─▶ report
//!            └ shared ─── worker: keys ─▶ the common one ────┘      └─▶ image ─▶ merged with other machines'
//! ```
//!
//! Invariants: no threads, rings or I/O outside [`run`], which connects the measurement to the
//! engine, and no clock: the caller's function returns the time, which reaches no count. Packets
//! without a key are counted under a reason. Every estimate has bounds.
#![forbid(unsafe_code)]

mod accuracy;
mod common;
mod counter;
mod counts;
mod findings;
mod image;
mod intervals;
mod keys;
mod merger;
pub mod report;
pub mod run;
mod settings;
mod size;
mod structure;
mod worker;

use std::sync::{Arc, Mutex, PoisonError, Weak};

use ringtap_stage::{Application, Shard};
use ringtap_wire::PacketRecord;

pub use findings::{Findings, FrequentItemsError};
pub use image::{Image, ImageError};
pub use keys::{AddressKeys, CountBy, Keying, Keys, PacketKey, PairKeys, TupleKeys, UnknownKey};
pub use merger::MeasureMerger;
pub use report::{Interval, OnInterval, Report};
pub use settings::{Kind, Settings, SettingsError, State, Weight};
pub use worker::{MeasureWorker, Part};

use common::Both;

/// The application, for keys of the lengths of `V`.
pub struct Measure<V: Keys> {
    settings: Settings,
    now: fn() -> u64,
    /// The common structures, while a worker has them.
    common: Mutex<Weak<Both<V>>>,
    /// For the merger.
    on_interval: Mutex<Option<OnInterval>>,
}

impl<V: Keys> Measure<V> {
    /// A measurement with these settings, which are checked. `now` returns nanoseconds of the clock
    /// that stamps packets; it measures processing time and delay.
    pub fn new(settings: Settings, now: fn() -> u64) -> Result<Self, SettingsError> {
        settings.check()?;
        let (common, on_interval) = (Mutex::new(Weak::new()), Mutex::new(None));
        Ok(Self { settings, now, common, on_interval })
    }

    /// Calls `on_interval` for each interval, from the merger's thread.
    #[must_use]
    pub fn reporting(self, on_interval: Option<OnInterval>) -> Self {
        Self { on_interval: Mutex::new(on_interval), ..self }
    }

    fn common(&self) -> Option<Arc<Both<V>>> {
        (self.settings.state == State::Shared).then(|| {
            let mut common = self.common.lock().unwrap_or_else(PoisonError::into_inner);
            common.upgrade().unwrap_or_else(|| {
                let made = Arc::new(Both::new());
                *common = Arc::downgrade(&made);
                made
            })
        })
    }
}

impl<V: Keys> Application for Measure<V> {
    type Item = PacketRecord;
    type Message = ();
    type Partial = Part<V>;
    type Report = Findings<V>;
    type Worker = MeasureWorker<V>;
    type Merger = MeasureMerger<V>;

    /// Any distribution is correct, because separate structures merge. The pair of addresses keeps
    /// both directions together, as network cards do.
    #[inline(always)]
    fn shard_key(&self, packet: &PacketRecord) -> u32 {
        packet.pair_hash
    }

    fn worker(&self, _shard: Shard) -> MeasureWorker<V> {
        MeasureWorker::new(&self.settings, self.now, self.common())
    }

    fn merger(&self) -> MeasureMerger<V> {
        let mut on_interval = self.on_interval.lock().unwrap_or_else(PoisonError::into_inner);
        MeasureMerger::new(&self.settings, on_interval.take())
    }
}
