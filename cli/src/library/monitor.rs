//! A run as a value: where packets come from, and what is done with them.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ringtap_flow::FlowKey;
use ringtap_monitor::state::Earlier;
use ringtap_monitor::{Analyses, Custom, CustomSet, Observers, Outcome};
use ringtap_terminal::Usage;
use toml::{Table, Value};

use super::analysis::{Analysis, definition};
use super::observers::{OnFlow, OnFlowWhere, OnMessage, OnPacket, Selection, observer};
use super::run::{self, Ended, Failure, Stop};
use crate::args::MonitorArgs;
use crate::{Flow, Message, Packet, text};

/// Flags that only the command has, and what a run of the library has instead.
pub(crate) const REFUSED: [(&str, &str); 12] = [
    ("state", "use with_state"),
    ("resume", OF_COMMAND),
    ("metrics", OF_COMMAND),
    ("web", OF_COMMAND),
    ("stats", OF_COMMAND),
    ("tui", OF_COMMAND),
    ("report", "use text and json of the report"),
    ("user", OF_COMMAND),
    ("config", OF_COMMAND),
    ("dry-run", OF_COMMAND),
    ("quiet", "a run prints nothing"),
    ("setup-nic", OF_COMMAND),
];
const OF_COMMAND: &str = "only the command has it";

/// A run of the monitor in this process. Its flags are those of `ringtap monitor`, with the same defaults.
#[derive(Debug, Default)]
pub struct Monitor {
    files: Vec<OsString>,
    flags: Table,
    analyses: Option<String>,
    own: CustomSet,
    observers: Observers,
    /// What those of them select that need not get all flows.
    selections: Vec<Arc<Selection>>,
    /// The first error of a method, for `run`.
    error: Option<String>,
    keeps_state: bool,
    stop: Stop,
}

impl Monitor {
    /// A run without packets, yet.
    pub fn builder() -> Self {
        Self::default()
    }

    /// Reads these captures, in order: pcap or pcapng, also compressed; `-` is the standard input.
    #[must_use]
    pub fn files<P: AsRef<Path>>(mut self, files: impl IntoIterator<Item = P>) -> Self {
        self.files.extend(files.into_iter().map(|file| file.as_ref().as_os_str().to_owned()));
        self
    }

    /// Reads the packets of an interface, until [`Stop::request`] or the end of [`Monitor::duration`].
    #[must_use]
    pub fn interface(mut self, name: &str) -> Self {
        let list = self.flags.entry("interface").or_insert_with(|| Value::Array(Vec::new()));
        if let Value::String(other) = list {
            *list = Value::Array(vec![std::mem::take(other).into()]);
        }
        if let Value::Array(list) = list {
            list.push(name.into());
        }
        self
    }

    /// Ends a run over interfaces after this time.
    #[must_use]
    pub fn duration(self, duration: Duration) -> Self {
        self.set("duration", format!("{}ms", duration.as_millis()))
    }

    /// Reads only packets that an expression of pcap-filter(7) selects.
    #[must_use]
    pub fn filter(self, expression: &str) -> Self {
        self.set("filter", expression)
    }

    /// Sets a flag of `ringtap monitor` by its long name, without the hyphens: `set("idle-timeout", "15s")`. A switch is
    /// `true`, a flag for several values is a list. Flags that only the command can have are an error of [`Monitor::run`].
    #[must_use]
    pub fn set(mut self, flag: &str, value: impl Into<Value>) -> Self {
        self.flags.insert(flag.to_owned(), value.into());
        self
    }

    /// Runs these analyses of the command instead of the default ones: `"flows,volumes"`, or `"none"`.
    #[must_use]
    pub fn analyses(mut self, list: &str) -> Self {
        self.analyses = Some(list.to_owned());
        self
    }

    /// Runs an analysis, too.
    #[must_use]
    pub fn analysis<A: Analysis>(mut self) -> Self {
        match Analyses::register(definition::<A>()) {
            Ok(own) => self.own = self.own.with(own),
            Err(error) => self.error = self.error.or(Some(error.to_string())),
        }
        self
    }

    /// Calls a function with each packet that [`Analysis::packets`] gets. Workers call it at the same time, each with packets of its own
    /// address pairs, in order.
    #[must_use]
    pub fn on_packet(self, call: impl Fn(&Packet) + Send + Sync + 'static) -> Self {
        self.observe(observer(OnPacket(call)))
    }

    /// Calls a function with the record of each flow that ends. Workers call it at the same time.
    #[must_use]
    pub fn on_flow(self, call: impl Fn(&Flow) + Send + Sync + 'static) -> Self {
        self.observe(observer(OnFlow(call)))
    }

    /// As [`Monitor::on_flow`], with the flows that an expression selects, in the language of `ringtap query`:
    /// `"tcp port 443 and name ~ example"`.
    #[must_use]
    pub fn on_flow_where(
        mut self,
        expression: &str,
        call: impl Fn(&Flow) + Send + Sync + 'static,
    ) -> Self {
        let matcher = run::matcher(expression).and_then(|own| match own.needs() {
            Some(flag) => Err(Usage::of(format!(
                "the expression {expression:?}: a column of it is in records of outputs with {flag} alone"
            ))),
            None => Ok(own),
        });
        match matcher {
            Ok(matcher) => {
                let selection = Arc::new(Selection { expression: expression.to_owned(), matcher });
                self.selections.push(Arc::clone(&selection));
                self.observe(observer(OnFlowWhere(selection, call)))
            }
            Err(error) => {
                self.error = self.error.or(Some(format!("{error:#}")));
                self
            }
        }
    }

    /// Calls a function with each message in payloads. Workers call it at the same time.
    #[must_use]
    pub fn on_message(self, call: impl Fn(&Message) + Send + Sync + 'static) -> Self {
        self.observe(observer(OnMessage(call)))
    }

    fn observe(mut self, observer: Arc<dyn Custom>) -> Self {
        self.observers.all.push(observer);
        self
    }

    /// Keeps the state of the run, for [`Report::state`].
    #[must_use]
    pub fn with_state(mut self) -> Self {
        self.keeps_state = true;
        self
    }

    /// What stops the run from another thread.
    pub fn stop(&self) -> Stop {
        self.stop.clone()
    }

    /// The plan of the run, as `--dry-run` of the command prints it: threads, memory, and what selects flows when.
    ///
    /// # Errors
    /// An invalid flag, an input or interface that does not exist.
    pub fn plan(self) -> Result<String, Failure> {
        Ok(text::plan(&run::plan(&self.prepare()?.0)?))
    }

    /// Runs until the captures end or the run is stopped.
    ///
    /// # Errors
    /// An invalid flag, an input or output that cannot be opened, a thread that failed: what the command prints.
    pub fn run(self) -> Result<Report, Failure> {
        let keeps_state = self.keeps_state;
        let (args, stop) = self.prepare()?;
        let Ended { outcome, warnings, errors } = run::run(&args, None, keeps_state, &stop)?;
        Ok(Report { outcome, warnings, errors })
    }

    fn prepare(self) -> anyhow::Result<(MonitorArgs, Stop)> {
        if let Some(error) = self.error {
            return Err(Usage::of(error));
        }
        if let Some((flag, why)) = REFUSED.iter().find(|(flag, _)| self.flags.contains_key(*flag)) {
            return Err(Usage::of(format!("set({flag:?}): {why}")));
        }
        let mut args = run::parse_monitor(&self.files, &self.flags)?;
        let given = self.analyses.as_deref().map(|list| match list {
            "none" => Ok(Analyses::NONE),
            list => list.parse::<Analyses>(),
        });
        let mut analyses = given.transpose().map_err(Usage::of)?.or(args.analyses);
        let on = analyses.get_or_insert(Analyses::ALL);
        on.custom = on.custom.with(self.own);
        let mut observers = self.observers;
        let takers = observers.all.iter().filter(|own| own.takes_records()).count();
        let selects = !on.flows && takers == self.selections.len();
        // A flow is a record only if there is a table of them.
        on.flows |= takers > 0;
        if selects && self.selections.iter().all(|own| own.matcher.refuses_packets()) {
            let wanted = self.selections;
            let wants = move |key: &FlowKey| {
                wanted.iter().any(|own| own.matcher.of_packet(key) != Some(false))
            };
            observers.wants = Some(Arc::new(wants));
        }
        args.analyses = analyses;
        args.observers = observers;
        Ok((args, self.stop))
    }
}

/// The result of a run.
#[derive(Debug)]
pub struct Report {
    outcome: Outcome,
    warnings: Vec<String>,
    errors: Vec<String>,
}

impl Report {
    /// What an analysis of this run reports; `None` if it did not run.
    pub fn of<A: Analysis>(&self) -> Option<&A::Report> {
        let section = self.outcome.report().sections.custom.get(A::NAME)?;
        section.report.downcast_ref()
    }

    /// As [`Report::of`], in JSON.
    pub fn json_of<A: Analysis>(&self) -> Option<&serde_json::Value> {
        Some(&self.outcome.report().sections.custom.get(A::NAME)?.json)
    }

    /// Packets that were received, whether or not they have IP.
    pub fn packets(&self) -> u64 {
        self.outcome.run.received
    }

    /// Why something is missing or not exact, with numbers; empty if the report is complete.
    pub fn losses(&self) -> Vec<(&'static str, u64)> {
        self.outcome.losses()
    }

    /// Messages that the command prints as warnings.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Messages with which the command fails, although there is a report: an input that is damaged, an output that lost
    /// records.
    pub fn errors(&self) -> &[String] {
        &self.errors
    }

    /// The report as the command prints it with `--report json`.
    ///
    /// # Errors
    /// None are expected.
    pub fn json(&self) -> serde_json::Result<String> {
        self.outcome.to_json(env!("CARGO_PKG_VERSION"))
    }

    /// The report as the command prints it.
    pub fn text(&self) -> String {
        text::report(&self.outcome).text()
    }

    /// The state of a run [`with_state`](Monitor::with_state), for `ringtap merge` of a program that has the same analyses;
    /// `None` if the run did not have all that a state needs: the analyses flows, volumes and talkers.
    ///
    /// # Errors
    /// The state is too large for memory, or damaged.
    pub fn state(&self) -> Result<Option<Vec<u8>>, Failure> {
        if self.outcome.report().state.is_none() {
            return Ok(None);
        }
        let state = self.outcome.write_state(&mut Earlier::default(), Vec::new());
        state.map(Some).map_err(|error| Failure(error.to_string()))
    }
}
