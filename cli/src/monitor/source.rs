//! The source of packets: files, or interfaces.

use ringtap_engine::{Plan, Watch};
use ringtap_io::capture::Files;
use ringtap_io::live::MergedReceiver;
use ringtap_monitor::{Options, Outcome, Outputs};

use crate::args::{Capture, MonitorArgs};
use crate::console::Extent;
use crate::{live, source};

/// What threads of the run share.
pub(super) static WATCH: Watch = Watch::new();

pub(super) enum Source {
    Files(Box<Files>),
    Live(Vec<MergedReceiver>),
}

impl Source {
    /// Opens the interfaces, if there are any.
    pub(super) fn open(
        args: &MonitorArgs,
        interfaces: &[String],
        plan: &Plan<Options>,
    ) -> anyhow::Result<Self> {
        if interfaces.is_empty() {
            let files = source::reader(&args.inputs.read, &WATCH);
            let files = files.with_window_max(source::window_bytes(args.memory));
            return Ok(Self::Files(Box::new(files)));
        }
        live::open(interfaces, args, plan).map(Self::Live)
    }

    pub(super) fn extent(&self, interfaces: &[String], capture: Capture) -> Extent {
        match self {
            Self::Files(files) => Extent::Bytes(files.position().bytes_total),
            Self::Live(_) => Extent::Live(interfaces.to_vec(), capture),
        }
    }

    /// Prints the interfaces, unless the views show them.
    pub(super) fn announce(&self, args: &MonitorArgs) {
        if let (Self::Live(receivers), false) = (self, args.quiet || args.tui) {
            live::announce_merged(receivers);
        }
    }

    /// Runs the plan to its end.
    pub(super) fn run(self, plan: &Plan<Options>, outputs: Outputs) -> anyhow::Result<Outcome> {
        Ok(match self {
            Self::Files(files) => ringtap_monitor::run(plan, *files, outputs, &WATCH)?,
            Self::Live(receivers) => ringtap_monitor::run_live(plan, receivers, outputs, &WATCH)?,
        })
    }
}
