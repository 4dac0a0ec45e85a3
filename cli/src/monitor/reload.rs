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

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;
use ringtap_base::without_secrets;
use ringtap_engine::{Plan, Selection};
use ringtap_export::formats::Interface;
use ringtap_export::{Items, Output, Prepared};
use ringtap_monitor::{Options, Reloads};
use ringtap_program::atomic_file::Existing;
use ringtap_serve::Certificate;
use ringtap_terminal::Usage;
use ringtap_terminal::numbers::bytes;

use super::read_files::ReadFiles;
use super::source::WATCH;
use super::{checks, options, page, read_files};
use crate::alerts;
use crate::args::{Command, Given, MonitorArgs};
use crate::config;
use crate::console::Console;
use crate::outputs::{self, Changes};

/// Flags that change while a run goes on.
pub(super) const CHANGING: [&str; 23] = [
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
    "oui",
    "port_labels",
    "sample",
    "scan_threshold",
    "template_refresh",
    "tls_ca",
    "tls_cert",
    "tls_key",
    "udp_scan_threshold",
    "vlans",
    "watch",
    "words",
    "write",
];

/// Flags that all collectors depend on: if one changes, these begin anew.
const OF_COLLECTORS: [&str; 3] = ["observation_domain", "sample", "template_refresh"];

/// Flags that all encrypted outputs depend on: if one or its file changes, these begin anew.
const OF_TLS: [&str; 3] = ["tls_ca", "tls_cert", "tls_key"];

/// Flags that decide whether the page is encrypted: files may change, and not whether there are any.
const OF_PAGE: [&str; 2] = ["tls_cert", "tls_key"];

/// Flags that decide which fields records have: files may change, and not whether there are any.
const OF_FIELDS: [&str; 4] = ["geo", "networks", "oui", "vlans"];

/// Flags that a state has: they are those of the whole run.
const OF_STATES: [&str; 5] = ["filter", "names", "port_labels", "sample", "words"];

/// How often outputs that have ended are removed from the list.
const TURN: Duration = Duration::from_secs(1);

/// What a reload needs of a run.
pub(super) struct Reload<'a> {
    /// The file.
    pub(super) config: PathBuf,
    pub(super) plan: &'a Plan<Options>,
    pub(super) numbered: Vec<Interface>,
    pub(super) outputs: Changes,
    pub(super) reloads: Arc<Reloads>,
    /// The files that outputs and the page have read.
    pub(super) read: ReadFiles,
    /// The certificate of the page.
    pub(super) certificate: Option<Certificate>,
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
    read: ReadFiles,
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

    /// Waits for a request, and calls `turn` meanwhile. Returns false when the run is over.
    fn wait(&self, turn: impl Fn()) -> bool {
        let mut wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        while !std::mem::take(&mut *wanted) {
            let waited = self.change.wait_timeout(wanted, TURN);
            let (now, is_late) = waited.unwrap_or_else(PoisonError::into_inner);
            wanted = now;
            if is_late.timed_out() {
                drop(wanted);
                turn();
                wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
            }
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
    pub(super) fn attend(mut self, requests: &Requests, args: &MonitorArgs, outputs: &[Output]) {
        let read = std::mem::take(&mut self.read);
        let mut current = Current { given: args.given.clone(), outputs: outputs.to_vec(), read };
        let file = self.config.display();
        while requests.wait(|| self.outputs.reap()) {
            // A request may come before the run begins.
            while !self.reloads.has_begun() && !requests.over.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(20));
            }
            let text = match self.reload(&mut current) {
                Ok(changed) if changed.is_empty() => {
                    format!("{file}: nothing has changed; lists were read again")
                }
                Ok(changed) => format!("{file}: changed: {}", changed.join(", ")),
                Err(error) => {
                    let text = format!("reload: {error:#}; the run goes on as before");
                    self.console.warn(&without_secrets(&text));
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
        // A pipe cannot be read again.
        file_len(&self.config)?;
        let Some(Command::Monitor(args)) = config::parse(current.given.words())?.command else {
            return Err(Usage::of("not a configuration of monitor"));
        };
        let changed = current.given.differences(&args.given);
        self.check_keys(current, &args, &changed)?;
        let lists = [&args.watch, &args.allow, &args.networks, &args.names, &args.port_labels];
        let lists = lists.into_iter().chain([&args.oui, &args.vlans]).flatten();
        let lists = lists.chain(&args.geo).map(|path| file_len(path));
        let (bytes_of_lists, room) =
            (lists.sum::<anyhow::Result<u64>>()?, self.plan.app.list_bytes);
        if bytes_of_lists > room {
            let [needed, room] = [bytes_of_lists, room].map(bytes);
            return Err(Usage::of(format!(
                "the lists have {needed}, and the run has room for {room}"
            )));
        }
        let outputs = checks::outputs(&args, None)?;
        let read = ReadFiles::of(&args, &outputs);
        let is_renewed = |path: &Path| read.is_renewed(&current.read, path);
        let of_tls = read_files::of_tls(&args);
        let renewed = of_tls.iter().filter(|(_, path)| path.is_some_and(is_renewed));
        let renewed: Vec<_> = renewed.map(|(key, _)| *key).collect();
        let has_changed = |keys: &[&str]| changed.iter().any(|key| keys.contains(&&**key));
        let of_tls = !renewed.is_empty() || has_changed(&OF_TLS);
        let of_collectors = has_changed(&OF_COLLECTORS);
        let stays = |output: &Output, others: &[Output]| {
            let is_collector = output.path().is_none() && output.items() == Items::Flows;
            let begins_anew = of_collectors && is_collector
                || of_tls && output.is_encrypted()
                || output.reads().into_iter().any(is_renewed);
            others.contains(output) && !begins_anew
        };
        let ending: Vec<_> =
            current.outputs.iter().filter(|own| !stays(own, &outputs)).cloned().collect();
        let beginning: Vec<_> =
            outputs.iter().filter(|own| !stays(own, &current.outputs)).cloned().collect();
        self.check(&ending, &beginning)?;
        let is_ipfix_file = |output: &Output| matches!(output, Output::IpfixFile(_));
        let is_of_file = |key: &&String| matches!(&***key, "sample" | "observation_domain");
        if let Some(key) = changed.iter().find(is_of_file)
            && outputs.iter().any(is_ipfix_file)
        {
            let key = flag(key);
            return Err(Usage::of(format!("{key} needs a restart: a file of IPFIX has one")));
        }
        checks::roles(&args, &beginning)?.check(Existing::Next)?;
        let next = options::next_plan(&args, self.plan, &outputs)?;
        let checked = self.reloads.check(&next.app)?;
        let settings = options::settings(&args, &next, &self.numbered, &WATCH);
        let prepared = Prepared::new(&beginning, settings)?;
        let certificate = match (&self.certificate, &args.tls_cert, &args.tls_key) {
            (Some(own), Some(certificate), Some(key)) if of_tls => {
                Some((own, page::read_certificate(certificate, key)?))
            }
            _ => None,
        };
        self.outputs.change(&ending, &beginning, &args.export, prepared)?;
        self.reloads.post(checked);
        let Plan { options: ringtap_engine::Options { filter, sample, .. }, .. } = next;
        WATCH.select(Selection { filter, sample });
        if let Some((own, other)) = certificate {
            own.replace(&other);
        }
        self.console.set_prints_alerts(alerts::are_printed(&args.alert_to));
        let mut all: Vec<_> = changed.iter().map(|key| flag(key)).collect();
        let is_read = |path: &&Path| is_renewed(path);
        let of_outputs = outputs.iter().flat_map(|output| output.reads()).filter(is_read);
        all.extend(renewed.iter().map(|key| format!("the file of {}", flag(key))));
        all.extend(of_outputs.map(|path| format!("the file {}", path.display())));
        *current = Current { given: args.given.clone(), outputs, read };
        Ok(all)
    }

    /// Checks that the run can take up all flags that have changed.
    ///
    /// # Errors
    /// Those that need a restart, with their values.
    fn check_keys(
        &self,
        current: &Current,
        args: &MonitorArgs,
        changed: &[String],
    ) -> anyhow::Result<()> {
        let is_other = |key: &str| current.given.has(key) != args.given.has(key);
        let needs_restart = |key: &&String| {
            let key = key.as_str();
            let is_of_state = self.plan.app.state.is_some() && OF_STATES.contains(&key);
            let is_of_page = args.web.is_some() && OF_PAGE.contains(&key);
            !CHANGING.contains(&key)
                || is_of_state
                || (is_of_page || OF_FIELDS.contains(&key)) && is_other(key)
        };
        let keys: Vec<_> = changed.iter().filter(needs_restart).collect();
        if keys.is_empty() {
            return Ok(());
        }
        let text = |key: &&String| {
            let [now, then] = [&current.given, &args.given].map(|given| given.shown(key));
            format!("{} needs a restart (now {now}, in the file {then})", flag(key))
        };
        let all: Vec<_> = keys.iter().map(text).collect();
        // Flows of the other run have other keys or records.
        let ends_flows = |key: &&String| {
            matches!(key.as_str(), "uniflow" | "vlan_in_key") || *key == "cut" && is_other("cut")
        };
        let flows = match keys.iter().any(ends_flows) {
            true => "ends the open flows, also with resume",
            false => "with resume continues the open flows",
        };
        Err(Usage::of(format!("{}; nothing was changed; a restart {flows}", all.join(", "))))
    }

    /// Checks that outputs can end and begin while the run goes on.
    fn check(&self, ending: &[Output], beginning: &[Output]) -> anyhow::Result<()> {
        if let Some(output) = ending.iter().chain(beginning).find(|output| {
            let is_program = matches!(output, Output::Alerts(own) if own.program().is_some());
            let has_packets = outputs::packets_path(output).is_some();
            is_program || has_packets || output.is_stdout() || output.items() == Items::States
        }) {
            return Err(Usage::of(format!("{output} needs a restart")));
        }
        // A file with its name at once has marks of its own, and a pipe waits for its reader.
        for output in beginning {
            let path = outputs::written_path(output)?;
            let is_other = path.is_some_and(|path| path.exists() && !path.is_file());
            if is_other || output.is_open() && output.items() != Items::Alerts {
                return Err(Usage::of(format!("{output} needs a restart")));
            }
        }
        let is_of_worker =
            |output: &&Output| matches!(output.items(), Items::Flows | Items::Events);
        self.outputs.reap();
        let running = self.outputs.running();
        let all = running.iter().chain(beginning);
        let (count, fixed) =
            (all.clone().filter(is_of_worker).count(), all.map(Output::fixed_bytes).sum::<u64>());
        // Those with packets do not begin now.
        let fixed = fixed + outputs::packet_bytes(&running);
        let run = &self.plan.options;
        if !beginning.is_empty() && (count > run.outputs || fixed > run.output_fixed_bytes) {
            return Err(Usage::of(format!(
                "no memory for {} more outputs: {} run or are ending",
                beginning.len(),
                running.len()
            )));
        }
        Ok(())
    }
}

/// The length of a file.
///
/// # Errors
/// It is none, or cannot be read.
fn file_len(path: &Path) -> anyhow::Result<u64> {
    let about = std::fs::metadata(path).map_err(Usage::of);
    let about = about.with_context(|| format!("reading {}", path.display()))?;
    if !about.is_file() {
        return Err(Usage::of(format!(
            "{}: not a file, so it cannot be read again",
            path.display()
        )));
    }
    Ok(about.len())
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
        let parts = OF_COLLECTORS.iter().chain(&OF_TLS).chain(&OF_PAGE);
        let parts = parts.chain(&OF_FIELDS).chain(&OF_STATES);
        assert!(parts.copied().all(|id| CHANGING.contains(&id)));
        assert!(CHANGING.is_sorted());
    }

    #[test]
    fn requests_are_joined_and_end() {
        let requests = Requests::default();
        requests.request();
        requests.request();
        assert!(requests.wait(|| {}));
        drop(requests.until_dropped());
        assert!(!requests.wait(|| {}));
    }
}
