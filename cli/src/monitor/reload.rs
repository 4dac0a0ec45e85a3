//! HUP: the configuration file is read again, and the run takes up what has changed.
//!
//! ```text
//! HUP ─▶ thread `reload`: parse, compare, read lists, open ─┬─ a fault: a warning, and nothing changes
//!                                                          └─▶ outputs ─▶ Changer ─▶ workers, merger
//!                                                              lists, limits ─▶ Reloads ─▶ workers, merger
//!                                                              filter, sampling ─▶ Watch ─▶ readers
//! ```
//!
//! Flags of the command line still have priority. Lists are read again also if their paths are the same.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use anyhow::Context;
use ringtap_engine::{Plan, Selection};
use ringtap_export::formats::Interface;
use ringtap_export::{Items, Output, Prepared};
use ringtap_monitor::{Options, Reloads};
use ringtap_program::atomic_file::Existing;
use ringtap_terminal::Usage;
use ringtap_terminal::console::labelled;

use super::source::WATCH;
use super::{checks, options};
use crate::alerts;
use crate::args::{Command, Given, MonitorArgs};
use crate::config;
use crate::console::Console;
use crate::outputs::Changes;

/// Flags that change while a run goes on.
pub(super) const CHANGING: [&str; 20] = [
    "alert",
    "alert_to",
    "allow",
    "events",
    "export",
    "filter",
    "geo",
    "names",
    "networks",
    "observation_domain",
    "sample",
    "scan_threshold",
    "template_refresh",
    "tls_ca",
    "tls_cert",
    "tls_key",
    "udp_scan_threshold",
    "watch",
    "words",
    "write",
];

/// Flags that all collectors depend on: if one changes, these begin anew.
const OF_COLLECTORS: [&str; 6] =
    ["observation_domain", "sample", "template_refresh", "tls_ca", "tls_cert", "tls_key"];

/// Flags that decide which fields records have: files may change, and not whether there are any.
const OF_FIELDS: [&str; 2] = ["geo", "networks"];

/// What a reload needs of a run.
pub(super) struct Reload<'a> {
    pub(super) plan: &'a Plan<Options>,
    pub(super) numbered: Vec<Interface>,
    pub(super) existing: Existing,
    pub(super) outputs: Changes,
    pub(super) reloads: Arc<Reloads>,
    pub(super) console: &'a Console,
}

/// Requests to reload; several at once are one.
#[derive(Default)]
pub(crate) struct Requests {
    wanted: Mutex<bool>,
    change: Condvar,
    over: AtomicBool,
}

/// What the run has now.
struct Current {
    given: Given,
    outputs: Vec<Output>,
}

impl Requests {
    /// Requests a reload. Does not wait for it.
    pub(crate) fn request(&self) {
        *self.wanted.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.change.notify_all();
    }

    /// The run is over when this is dropped.
    pub(super) fn until_dropped(&self) -> UntilDropped<'_> {
        UntilDropped(self)
    }

    /// Waits for a request. Returns false when the run is over.
    fn wait(&self) -> bool {
        let mut wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        while !std::mem::take(&mut *wanted) {
            wanted = self.change.wait(wanted).unwrap_or_else(PoisonError::into_inner);
        }
        !self.over.load(Ordering::Relaxed)
    }
}

/// The part of the run in which requests are handled.
pub(super) struct UntilDropped<'a>(&'a Requests);

impl Drop for UntilDropped<'_> {
    fn drop(&mut self) {
        self.0.over.store(true, Ordering::Relaxed);
        self.0.request();
    }
}

impl Reload<'_> {
    /// Handles requests until the run is over.
    pub(super) fn attend(self, requests: &Requests, args: &MonitorArgs, outputs: &[Output]) {
        let mut current = Current { given: args.given.clone(), outputs: outputs.to_vec() };
        let file = args.config.as_deref().unwrap_or("".as_ref()).display();
        while requests.wait() {
            let text = match self.reload(&mut current) {
                Ok(changed) if changed.is_empty() => {
                    format!("{file}: nothing has changed; lists were read again")
                }
                Ok(changed) => format!("{file}: changed: {}", changed.join(", ")),
                Err(error) => {
                    let text = format!("reload: {error:#}; the run goes on as before");
                    self.console.print_line(&labelled("warning", &text));
                    continue;
                }
            };
            self.console.note(&text);
        }
    }

    /// Takes up the configuration. Returns the flags that have changed.
    ///
    /// # Errors
    /// Any fault; then nothing has changed.
    fn reload(&self, current: &mut Current) -> anyhow::Result<Vec<String>> {
        let Some(Command::Monitor(args)) = config::parse(current.given.words())?.command else {
            return Err(Usage::of("not a configuration of monitor"));
        };
        let changed = current.given.differences(&args.given);
        for key in &changed {
            let is_of_fields = OF_FIELDS.contains(&&**key);
            if !CHANGING.contains(&&**key)
                || is_of_fields && current.given.has(key) != args.given.has(key)
            {
                return Err(Usage::of(format!("{} needs a restart", flag(key))));
            }
        }
        let outputs = checks::outputs(&args, None)?;
        let of_collectors = changed.iter().any(|key| OF_COLLECTORS.contains(&&**key));
        let stays = |output: &Output, others: &[Output]| {
            others.contains(output)
                && !(of_collectors && output.path().is_none() && output.items() == Items::Flows)
        };
        let ending: Vec<_> =
            current.outputs.iter().filter(|own| !stays(own, &outputs)).cloned().collect();
        let beginning: Vec<_> =
            outputs.iter().filter(|own| !stays(own, &current.outputs)).cloned().collect();
        self.check(&ending, &beginning)?;
        let is_ipfix_file = |output: &Output| matches!(output, Output::IpfixFile(_));
        if changed.iter().any(|key| key == "sample") && outputs.iter().any(is_ipfix_file) {
            return Err(Usage::of("sample needs a restart: a file of IPFIX has one sampling"));
        }
        checks::roles(&args, &beginning)?.check(self.existing)?;
        let next = options::next_plan(&args, self.plan, &outputs)?;
        self.reloads.check(&next.app)?;
        let settings = options::settings(&args, self.plan, &self.numbered, &WATCH);
        let prepared = Prepared::new(&beginning, settings)?;
        self.outputs.change(&ending, &beginning, &args.export, prepared)?;
        // It was checked, and no other thread posts.
        self.reloads.post(&next.app).context("unexpected")?;
        let Plan { options: ringtap_engine::Options { filter, sample, .. }, .. } = next;
        WATCH.select(Selection { filter, sample });
        self.console.set_prints_alerts(alerts::are_printed(&args.alert_to));
        *current = Current { given: args.given.clone(), outputs };
        Ok(changed.iter().map(|key| flag(key)).collect())
    }

    /// Checks that outputs can end and begin while the run goes on.
    fn check(&self, ending: &[Output], beginning: &[Output]) -> anyhow::Result<()> {
        if let Some(output) = ending.iter().chain(beginning).find(|output| {
            let is_program = matches!(output, Output::Alerts(own) if own.program().is_some());
            is_program || output.is_stdout() || output.items() == Items::States
        }) {
            return Err(Usage::of(format!("{output} needs a restart")));
        }
        let is_of_worker =
            |output: &&Output| matches!(output.items(), Items::Flows | Items::Events);
        let new = beginning.iter().filter(is_of_worker).count();
        let most = self.plan.options.outputs;
        let running = self.outputs.running();
        if new > 0 && running + new > most {
            return Err(Usage::of(format!(
                "no memory for {new} more outputs: {running} run or are ending, and the run has room for {most}"
            )));
        }
        Ok(())
    }
}

/// The name of a flag in a configuration.
fn flag(id: &str) -> String {
    if id == "words" { "filter".into() } else { id.replace('_', "-") }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::args::Cli;

    #[test]
    fn all_changing_flags_exist() {
        let command = Cli::command();
        let monitor = command.find_subcommand("monitor").unwrap();
        for id in CHANGING {
            assert!(monitor.get_arguments().any(|arg| arg.get_id() == id), "{id}");
        }
        assert!(OF_COLLECTORS.iter().chain(&OF_FIELDS).all(|id| CHANGING.contains(id)));
        assert!(CHANGING.is_sorted());
    }

    #[test]
    fn requests_are_joined_and_end() {
        let requests = Requests::default();
        requests.request();
        requests.request();
        assert!(requests.wait());
        drop(requests.until_dropped());
        assert!(!requests.wait());
    }
}
