//! The monitor as an application: its workers, its merger and its outputs.

use std::sync::{Arc, Mutex};

use ringtap_flow::Sinks;
use ringtap_stage::{Application, Shard};
use ringtap_wire::PacketRecord;

use crate::merger::MonitorMerger;
use crate::options::Setup;
use crate::outputs::{Outputs, Receivers};
use crate::partial::Partial;
use crate::reload::Reloads;
use crate::report::Report;
use crate::resume::Resumed;
use crate::worker::MonitorWorker;

/// The application. Holds the setup and the outputs until workers and merger take theirs.
pub struct Monitor {
    setup: Setup,
    /// For the workers, by number.
    sinks: Mutex<Vec<Sinks>>,
    /// For the merger.
    receivers: Mutex<Receivers>,
    resumed: Option<Resumed>,
    reloads: Arc<Reloads>,
    reports_intervals: bool,
}

impl Monitor {
    /// A monitor with these outputs.
    pub fn new(setup: Setup, outputs: Outputs) -> Self {
        let Outputs { sinks, receivers, resumed, reloads } = outputs;
        if setup.options.reloads {
            reloads.begin(&setup);
        }
        Self {
            setup,
            sinks: Mutex::new(sinks),
            reports_intervals: receivers.interval.is_some(),
            receivers: Mutex::new(receivers),
            resumed,
            reloads,
        }
    }
}

impl Application for Monitor {
    type Item = PacketRecord;
    type Message = ();
    type Partial = Partial;
    type Report = Report;
    type Worker = MonitorWorker;
    type Merger = MonitorMerger;

    #[inline(always)]
    fn shard_key(&self, packet: &PacketRecord) -> u32 {
        packet.pair_hash
    }

    fn worker(&self, shard: Shard) -> MonitorWorker {
        let mut sinks = self.sinks.lock().unwrap_or_else(|poison| poison.into_inner());
        let sinks = sinks.get_mut(shard.index).map(std::mem::take).unwrap_or_default();
        let reloads = Arc::clone(&self.reloads);
        let mut worker =
            MonitorWorker::new(&self.setup, shard, sinks, self.reports_intervals, reloads);
        if let Some(resumed) = &self.resumed {
            worker.resume(resumed, shard, &self.setup.context.hash_key);
        }
        worker
    }

    fn merger(&self) -> MonitorMerger {
        let mut receivers = self.receivers.lock().unwrap_or_else(|poison| poison.into_inner());
        MonitorMerger::new(&self.setup, std::mem::take(&mut *receivers), Arc::clone(&self.reloads))
    }
}
