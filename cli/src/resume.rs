//! `--resume`: the open flows of the run before are read at the start, and those of this run are written at its end.

use std::fs::File;
use std::io::{self, BufWriter, Read};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, anyhow, ensure};
use ringtap_base::now_ns;
use ringtap_engine::Plan;
use ringtap_flow::Sinks;
use ringtap_monitor::resume::{Counters, Gap, Keeper, Resumed};
use ringtap_monitor::{Options, Outcome};
use ringtap_program::atomic_file::{AtomicFile, Existing};

/// Reads a file from its begin, whatever others read.
struct From(Arc<File>, u64);

impl Read for From {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let read = self.0.read_at(to, self.1)?;
        self.1 += read as u64;
        Ok(read)
    }
}

/// The open flows of the run before, if its file is there.
pub(crate) fn read(path: &Path, plan: &Plan<Options>) -> anyhow::Result<Option<Resumed>> {
    let context = || format!("reading the open flows of {}", path.display());
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => Arc::new(other.with_context(context)?),
    };
    let open = move || Ok(Box::new(From(Arc::clone(&file), 0)) as Box<dyn Read>);
    let resumed = Resumed::new(Arc::new(open), plan.shards(), &plan.app.metering);
    resumed.with_context(context).map(Some)
}

/// What passed between the runs, for a run that begins to read now.
pub(crate) fn gap(resumed: &Resumed, plan: &Plan<Options>, interfaces: &[String]) -> Option<Gap> {
    let time_ns = now_ns();
    resumed.gap(time_ns, &counters(interfaces), plan.app.interval_ns.unwrap_or(0))
}

/// The kernel's counters of interfaces in this network namespace, from proc_net(5).
fn counters(interfaces: &[String]) -> Counters {
    let text = std::fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default();
    let row = |line: &str| {
        let (name, numbers) = line.trim_start().split_once(':')?;
        let numbers: Vec<u64> =
            numbers.split_whitespace().map_while(|own| own.parse().ok()).collect();
        let packets = numbers.get(1)?.checked_add(*numbers.get(9)?)?;
        interfaces.iter().any(|own| own == name).then(|| (name.to_owned(), packets))
    };
    text.lines().filter_map(row).collect()
}

/// The file for the next run.
pub(crate) struct Kept {
    file: AtomicFile,
    keeper: Keeper,
    /// The flows of the run before.
    earlier: u64,
}

impl Kept {
    /// Begins the file, which has its name at the end; the one that was read is removed, because its flows are those of
    /// this run.
    pub(crate) fn begin(
        path: &Path,
        resumed: Option<&Resumed>,
        plan: &Plan<Options>,
        interfaces: &[String],
        sinks: &mut Vec<Sinks>,
    ) -> anyhow::Result<Self> {
        let context = || format!("writing the open flows to {}", path.display());
        let mut file =
            AtomicFile::claim(path.to_owned(), Existing::Refuse).with_context(context)?;
        let out = BufWriter::new(file.begin().with_context(context)?);
        let interfaces = interfaces.to_vec();
        let keeper =
            Keeper::new(&plan.app.metering, Box::new(out), Box::new(move || counters(&interfaces)));
        sinks.resize_with(plan.arrangement.workers, Sinks::default);
        sinks.iter_mut().for_each(|sinks| sinks.open = Some(keeper.sink()));
        if resumed.is_some() {
            std::fs::remove_file(path).with_context(context)?;
        }
        Ok(Self { file, keeper, earlier: resumed.map_or(0, Resumed::flows) })
    }

    /// Ends the file.
    ///
    /// # Errors
    /// It cannot be written, or flows of the run before were not read.
    pub(crate) fn finish(mut self, outcome: &Outcome) -> anyhow::Result<()> {
        let path = self.file.path().display().to_string();
        let context = || format!("writing the open flows to {path}");
        if let Err((lost, error)) = self.keeper.finish() {
            return Err(anyhow!(error).context(format!("{}: {lost} flows are lost", context())));
        }
        self.file.finish().with_context(context)?;
        let flows = outcome.report().flows.as_ref();
        let taken =
            flows.map_or(0, |flows| flows.resumed.unwrap_or(0) + flows.not_continued.unwrap_or(0));
        let lost = self.earlier.saturating_sub(taken);
        ensure!(
            lost == 0,
            "{lost} open flows of the run before are lost: {path} was not read again"
        );
        Ok(())
    }
}
