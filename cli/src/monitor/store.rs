//! The store of a run (`--store`): its outputs, and what its manifest says of the run.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Context;
use ringtap_base::User;
use ringtap_base::text::json_document;
use ringtap_engine::Plan;
use ringtap_export::formats::Format;
use ringtap_export::{
    AlertOutput, Alerts, EventFormat, EventOutput, FileOutput, Notice, Output, Severity, Status,
    TotalsOutput,
};
use ringtap_extract::Extractors;
use ringtap_flow::EndReason;
use ringtap_monitor::report::Interval;
use ringtap_monitor::{Options, Outcome};
use ringtap_program::retention::Retention;
use ringtap_store::{
    Counts, Created, Flows, Kind, Layout, Packets, Records, Start, Store, StoreOptions,
};
use ringtap_terminal::Usage;
use serde::Serialize;

use super::source::WATCH;
use crate::args::MonitorArgs;
use crate::console::Console;

const SECOND: u64 = 1_000_000_000;

/// Most intervals whose late packets are found at the end.
const MOST_SENT: usize = 1 << 12;

/// Memory of an interval of them: nodes of the tree are half full at least.
const SENT_BYTES: u64 = 48;

/// Limits of the memory for the names of files while a store is opened, and the part of all: 1 in N.
const NAMES_BYTES: [u64; 2] = [1 << 20, 16 << 20];
const NAMES_PART: u64 = 64;

/// Where the files of the store are, if there is one.
pub(super) fn layout(args: &MonitorArgs) -> anyhow::Result<Option<Layout>> {
    let Some(root) = &args.store else { return Ok(None) };
    if cfg!(not(feature = "parquet")) {
        return Err(Usage::of(
            "this program was built without the feature parquet, which --store needs",
        ));
    }
    if root.exists() && !root.is_dir() {
        return Err(Usage::of(format!("--store {}: it is not a folder", root.display())));
    }
    if root.to_str().is_none() {
        return Err(Usage::of(format!("--store {}: use a path in UTF-8", root.display())));
    }
    let rotate_s = args.rotate.unwrap_or(SECOND) / SECOND;
    Layout::new(root, &args.probe_name(), rotate_s).map(Some).map_err(Usage::of)
}

/// Memory of a store besides its outputs. The names of files are not in it: they are dropped before the first packet.
pub(super) fn fixed_bytes(args: &MonitorArgs) -> u64 {
    if args.store.is_some() { MOST_SENT as u64 * SENT_BYTES } else { 0 }
}

/// Memory for the names of files while a store is opened.
fn names_bytes(args: &MonitorArgs) -> u64 {
    let [least, most] = NAMES_BYTES;
    args.memory.map_or(most, |memory| (memory / NAMES_PART).clamp(least, most))
}

/// The outputs of a store.
pub(super) fn outputs(layout: &Layout, args: &MonitorArgs) -> Vec<Output> {
    let path = |kind| layout.pattern(kind);
    let mut all = Vec::new();
    if args.analyses.is_none_or(|on| on.flows) {
        all.push(Output::File(FileOutput {
            format: Format::Parquet,
            path: path(Kind::Flows),
            open: false,
            sums_s: Some(layout.rotate_s),
        }));
    }
    if args.extract != Some(Extractors::NONE) {
        let (format, path) = (EventFormat::Json, path(Kind::Events));
        all.push(Output::Events(EventOutput { format, path, open: false }));
    }
    all.push(Output::Alerts(AlertOutput::to_file(path(Kind::Alerts))));
    if args.analyses.is_none_or(|on| on.volumes) {
        all.push(Output::Totals(TotalsOutput { path: path(Kind::Totals) }));
    }
    all
}

/// Sends the totals of intervals to the store.
pub(super) struct Totals {
    to: Alerts,
    /// Packets of the last intervals that were sent, by their begin.
    sent: BTreeMap<u64, u64>,
    /// The last interval that is not among them any more.
    before: Option<u64>,
}

impl Totals {
    pub(super) fn new(to: Alerts) -> Arc<Mutex<Self>> {
        Arc::new(Mutex::new(Self { to, sent: BTreeMap::new(), before: None }))
    }

    /// An interval has ended.
    pub(super) fn send(&mut self, interval: &Interval, live_flows: Option<u64>) {
        if self.to.is_empty() {
            return;
        }
        #[derive(Serialize)]
        struct Line<'a> {
            #[serde(flatten)]
            interval: &'a Interval,
            #[serde(skip_serializing_if = "Option::is_none")]
            live_flows: Option<u64>,
        }
        let line = Line { interval, live_flows };
        let time_ns = interval.start.0;
        self.note(time_ns, interval.packets.handled);
        self.to.send(&Notice {
            json: json_document(serde_json::to_string(&line).unwrap_or_default()),
            text: String::new(),
            kind: "totals",
            severity: Severity::Info,
            is_end: false,
            fields: Vec::new(),
            time_ns,
            packets_of: Vec::new(),
            lost_before: 0,
        });
    }

    fn note(&mut self, begin: u64, packets: u64) {
        self.sent.insert(begin, packets);
        if self.sent.len() > MOST_SENT {
            self.before = self.before.max(self.sent.pop_first().map(|(begin, _)| begin));
        }
    }

    /// Whether an interval must be sent at the end. It is not known of early ones.
    fn is_due(&self, begin: u64, packets: u64) -> bool {
        self.before.is_none_or(|before| begin > before) && self.sent.get(&begin) != Some(&packets)
    }

    /// The run has ended: sends the intervals that did not end before, and again those with late packets.
    pub(super) fn end(&mut self, intervals: &[Interval]) {
        for interval in intervals {
            if self.is_due(interval.start.0, interval.packets.handled) {
                self.send(interval, None);
            }
        }
        self.to = Alerts::default();
    }
}

/// Creates the folders, which the run's user owns.
pub(super) fn create(layout: &Layout, user: Option<&User>) -> anyhow::Result<Created> {
    let root = &layout.root;
    let created = ringtap_store::create(root, user.map(User::ids));
    if created.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied) {
        denied(layout)?;
    }
    created.with_context(|| format!("creating the store {}", root.display()))
}

/// Checks that the process may use the store, with the rights that it has now.
fn denied(layout: &Layout) -> anyhow::Result<()> {
    let Some(denied) = ringtap_store::denied(layout) else { return Ok(()) };
    let user = match User::effective() {
        Ok(Some(user)) => user.name.to_string_lossy().into_owned(),
        Ok(None) | Err(_) => rustix::process::geteuid().as_raw().to_string(),
    };
    let what = if denied.is_write { "write to" } else { "read" };
    let error = io::Error::from(rustix::io::Errno::ACCESS);
    anyhow::bail!(
        "--store {}: user {user} cannot {what} {}: {error}",
        layout.root.display(),
        denied.path.display()
    )
}

/// Opens the store.
pub(super) fn open(
    layout: &Layout,
    args: &MonitorArgs,
    plan: &Plan<Options>,
) -> anyhow::Result<Arc<Store>> {
    let start = Start {
        version: env!("CARGO_PKG_VERSION").into(),
        process: std::process::id(),
        live: plan.options.live,
        rotate: layout.rotate_s,
        cut: args.cut.map(|cut_ns| cut_ns / SECOND),
        ..Start::default()
    };
    let keep = Retention { age: args.keep.map(Duration::from_nanos), bytes: args.keep_size };
    // Files of outputs are opened later, whose errors do not name the folder.
    denied(layout)?;
    let names_bytes = names_bytes(args);
    Store::open(StoreOptions { layout: layout.clone(), keep, start, names_bytes })
        .with_context(|| format!("opening the store {}", layout.root.display()))
}

/// Begins the run in the manifest.
pub(super) fn begin(store: &Store, layout: &Layout) -> anyhow::Result<()> {
    store.begin().with_context(|| format!("opening the store {}", layout.root.display()))
}

/// The names of outputs in a manifest, and their own: the store's outputs have those of their folders.
fn names(store: &Store, outputs: &[Output]) -> Vec<(String, String)> {
    let name = |output: &Output| match output.path().and_then(|path| store.kind_of(path)) {
        Some(kind) => (kind.to_string(), output.to_string()),
        None => (output.to_string(), output.to_string()),
    };
    outputs.iter().map(name).collect()
}

/// Lets the manifest have the counts of the run so far.
pub(super) fn count(store: &Store, outputs: &[Output], console: &Arc<Console>) {
    let (names, console) = (names(store, outputs), Arc::clone(console));
    store.count_by(Box::new(move || {
        let stats = console.run_stats();
        let (read, dropped, shed) = (WATCH.packets.get(), WATCH.dropped.get(), WATCH.shed.get());
        let totals = &stats.totals;
        Counts {
            packets: Packets {
                received: read + dropped,
                handled: read - shed.min(read),
                dropped: some([("receive", dropped), ("shed", shed)]),
            },
            flows: Flows {
                live: totals.live_flows,
                ended: some(EndReason::ALL.iter().map(|end| end.name()).zip(totals.flows_ended)),
                parts: totals.flow_parts,
            },
            clock_steps: WATCH.clock().0,
            outputs: named(&names, &stats.outputs),
        }
    }));
}

/// Ends the run in the manifest.
pub(super) fn end(
    store: &Store,
    outputs: &[Output],
    outcome: &Outcome,
    all: &[Status],
) -> anyhow::Result<()> {
    let (run, flows) = (&outcome.counts, outcome.report().flows.as_ref());
    let counts = Counts {
        packets: Packets {
            received: run.received,
            handled: outcome.report().packets.handled,
            dropped: run.dropped.clone(),
        },
        flows: Flows {
            live: flows.and_then(|flows| flows.kept).unwrap_or(0),
            ended: some(
                flows.iter().flat_map(|flows| &flows.end_reasons).map(|(&end, &n)| (end, n)),
            ),
            parts: flows.and_then(|flows| flows.parts).unwrap_or(0),
        },
        clock_steps: outcome.run.clock.set,
        outputs: named(&names(store, outputs), all),
    };
    store.end(counts).context("ending the manifest of the store")
}

/// The counts of outputs, by their names in the manifest. Others may have begun and ended.
fn named(names: &[(String, String)], all: &[Status]) -> BTreeMap<String, Records> {
    let of = |(name, output): &(String, String)| {
        let status = all.iter().find(|own| own.name == *output)?;
        Some((name.clone(), records(status)))
    };
    names.iter().filter_map(of).collect()
}

fn records(status: &Status) -> Records {
    let lost = status.lost.iter().map(|(reason, lost)| (reason.name(), *lost));
    Records { made: status.made, sent: status.sent, lost: some(lost) }
}

/// The numbers that are not zero.
fn some<'a>(all: impl IntoIterator<Item = (&'a str, u64)>) -> BTreeMap<String, u64> {
    let all = all.into_iter().filter(|(_, number)| *number > 0);
    all.map(|(name, number)| (name.to_owned(), number)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_sent_again_only_if_their_packets_have_changed() {
        let mut totals = Totals { to: Alerts::default(), sent: BTreeMap::new(), before: None };
        let last = MOST_SENT as u64 + 10;
        (1..=last).for_each(|begin| totals.note(begin, 7));
        assert_eq!(totals.sent.len(), MOST_SENT);
        // Those of the first ten are not known any more.
        let due: Vec<_> = (1..=last).filter(|&begin| totals.is_due(begin, 8)).collect();
        assert_eq!((due[0], due.len()), (11, MOST_SENT));
        assert!(!(1..=last).any(|begin| totals.is_due(begin, 7)) && totals.is_due(last + 1, 0));
    }
}
