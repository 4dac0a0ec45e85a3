//! `ringtap monitor`, phase by phase. Each phase consumes the one before, so what comes before or after the change of
//! user is a type:
//!
//! ```text
//! Parsed ───▶ Planned ───▶ Opened ────────▶ Confined ──────▶ Running ───▶ exit code
//! flags,      memory,      fence, sockets,  the rights that  files open,
//! checked     threads      interfaces       the run keeps    threads started
//! ```

mod checks;
pub(crate) mod messages;
mod options;
mod page;
mod read_files;
mod reload;
mod source;
mod store;
mod views;

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use anyhow::Context;
use ringtap_base::User;
use ringtap_engine::Plan;
use ringtap_export::formats::Interface;
use ringtap_export::{Output, Prepared, WritePackets};
use ringtap_flow::Sinks;
use ringtap_monitor::resume::Resumed;
use ringtap_monitor::{Options, Reloads};
use ringtap_program::atomic_file::Existing;
use ringtap_program::json::json;
use ringtap_program::privileges::CapabilitySet;
use ringtap_program::{notify, privileges, sandbox};
use ringtap_serve::{Certificate, Listening};
use ringtap_store::{Created, Layout, Store};
use ringtap_terminal::Usage;
use ringtap_terminal::console;

use crate::alert_packets::PacketFiles;
use crate::args::{Capture, Command, MonitorArgs, ReportForm};
use crate::cards::Setup;
use crate::outputs::{self, Outputs};
use crate::states::{self, States};
use crate::{alerts, cards, config, live, resume, signals, text};

pub(crate) use checks::{outputs, roles};
pub(crate) use options::{file_rules, names, plan, settings};
use page::Page;
use read_files::ReadFiles;
use reload::Reload;
pub(crate) use reload::Requests;
use source::{Source, WATCH};
use views::Views;

pub(crate) fn run(args: &MonitorArgs) -> anyhow::Result<ExitCode> {
    let parsed = Parsed::new(args)?;
    // Until the end of the run, which it outlives. The number of queues is part of the plan.
    let _cards = parsed.set_up_cards()?;
    let planned = parsed.plan()?;
    if args.threads.dry_run {
        return planned.print();
    }
    planned.open()?.confine()?.start()?.run()
}

/// Checks a configuration as a run with it does before it opens anything.
pub(crate) fn check_config(file: &Path) -> anyhow::Result<ExitCode> {
    let command = ["ringtap", "monitor", "--config"].map(OsString::from);
    let words: Vec<_> = command.into_iter().chain([file.into()]).collect();
    let Some(Command::Monitor(mut args)) = config::parse(&words)?.command else {
        return Err(Usage::of("not a configuration of monitor"));
    };
    // A unit gives the interface on its command line.
    if args.interface.is_empty() && args.inputs.read.is_empty() {
        args.interface.push("lo".into());
    }
    let context = || format!("the configuration {}", file.display());
    Parsed::new(&args).and_then(Parsed::plan).with_context(context)?;
    console::print(&format!("{}: valid\n", file.display()))?;
    Ok(ExitCode::SUCCESS)
}

/// The flags, checked.
struct Parsed<'a> {
    args: &'a MonitorArgs,
    /// Empty for files.
    interfaces: Vec<String>,
    outputs: Vec<Output>,
    /// The paths of outputs that are files.
    paths: Vec<PathBuf>,
    existing: Existing,
    /// Where the files of the store are, if there is one.
    layout: Option<Layout>,
}

impl<'a> Parsed<'a> {
    fn new(args: &'a MonitorArgs) -> anyhow::Result<Self> {
        let interfaces = live::interfaces(args)?;
        let outputs = outputs(args, None)?;
        let existing = Existing::of(args.force, !interfaces.is_empty());
        roles(args, &outputs)?.check(existing)?;
        let paths = outputs.iter().filter_map(|output| outputs::written_path(output).transpose());
        let paths = paths.collect::<anyhow::Result<_>>()?;
        let layout = store::layout(args)?;
        Ok(Self { args, interfaces, outputs, paths, existing, layout })
    }

    /// Sets up the network cards, or prints what would be done.
    fn set_up_cards(&self) -> anyhow::Result<Option<Setup>> {
        let Self { args, interfaces, .. } = self;
        if !args.setup_nic || interfaces.is_empty() {
            return Ok(None);
        }
        if args.capture == Capture::Dpdk {
            return Err(Usage::of(
                "--setup-nic cannot be used with --capture dpdk, which sets up the card itself: omit --setup-nic",
            ));
        }
        let one = args.sequential || args.resume.is_some();
        let queues = args.threads.queues.or(one.then_some(1)).map(|queues| queues as u32);
        if !args.threads.dry_run {
            return Setup::start(interfaces, queues).map(Some);
        }
        for cards::Step { advice, .. } in cards::set_up(interfaces, queues, true)? {
            console::note(&format!("would run: {}", advice.command));
        }
        Ok(None)
    }

    fn plan(self) -> anyhow::Result<Planned<'a>> {
        let plan = plan(self.args, &self.interfaces, &self.outputs, false)?;
        checks::warn_of_little_room(self.args, &plan);
        if self.args.resume.is_some() && plan.options.live && plan.arrangement.queues > 1 {
            return Err(Usage::of(
                "--resume needs one queue, because cards choose the queue of a flow: omit --queues",
            ));
        }
        Ok(Planned { parsed: self, plan })
    }

    /// The files that the run writes.
    fn written(&self) -> Vec<PathBuf> {
        let outputs = self.paths.iter().cloned();
        let state = self.args.state.as_deref().map(states::written_path);
        let state = state.into_iter().chain(self.args.resume.clone());
        // Its manifest and its lock, besides the outputs.
        let store = self.layout.as_ref().map(|layout| layout.root.join("manifest"));
        let packets = self.outputs.iter().filter_map(outputs::packets_path);
        outputs.chain(state).chain(store).chain(packets).collect()
    }

    /// Whether records take stdout.
    fn stdout_is_taken(&self) -> bool {
        self.outputs.iter().any(Output::is_stdout)
    }
}

/// With the threads and the memory of the run.
struct Planned<'a> {
    parsed: Parsed<'a>,
    plan: Plan<Options>,
}

impl<'a> Planned<'a> {
    /// Prints the plan.
    fn print(&self) -> anyhow::Result<ExitCode> {
        let plan = match self.parsed.args.report {
            ReportForm::Text | ReportForm::Html => text::plan(&self.plan),
            ReportForm::Json => json(&self.plan)?,
        };
        console::print(&plan).map(|()| ExitCode::SUCCESS)
    }

    /// Starts programs for alerts, enters the fence, and opens what needs the rights that the process began with:
    /// ports, certificates, interfaces. Inputs are checked before.
    fn open(self) -> anyhow::Result<Opened<'a>> {
        let Self { parsed, mut plan } = self;
        let Parsed { args, interfaces, outputs, .. } = &parsed;
        if args.tui && parsed.stdout_is_taken() && io::stdout().is_terminal() {
            return Err(Usage::of(
                "--tui and records cannot both use the terminal: write the records to a file",
            ));
        }
        crate::source::check(&args.inputs.read)
            .map_err(|unopened| checks::explained(args, unopened))?;
        let user = args.user.as_deref().map(privileges::user).transpose()?;
        let created = parsed.layout.as_ref();
        let created = created.map(|layout| store::create(layout, user.as_ref())).transpose()?;
        // The fence forbids to run programs.
        let helpers = alerts::start_helpers(outputs, args.user.as_deref())?;
        let store = page::start_helper(args, parsed.layout.as_ref())?;
        if interfaces.is_empty() || args.capture != Capture::Dpdk {
            let written = parsed.written();
            let written = written.iter().map(PathBuf::as_path);
            let removed = created.as_ref().and_then(Created::parent);
            sandbox::enter_removing(written, removed, !interfaces.is_empty())?;
        } else {
            console::note("files: not restricted, because DPDK's drivers write to devices");
        }
        privileges::forbid_new();
        let numbered = live::numbered(interfaces, args)?;
        let has_number = numbered.iter().filter(|one| one.index > 0);
        let names = has_number.map(|one| (one.index, one.name.clone()));
        plan.app.enrichment.interfaces = names.collect();
        let read = ReadFiles::of(args, outputs);
        let page = args.web.map(|address| Page::open(address, args)).transpose()?;
        let metrics =
            args.metrics.map(|address| Listening::at("--metrics", address)).transpose()?;
        if let (Some(url), false) = (metrics.as_ref().and_then(Listening::url), args.quiet) {
            console::note(&format!("metrics: {url}metrics"));
        }
        let prepared = Prepared::new(outputs, settings(args, &plan, &numbered, &WATCH))?;
        let source = Source::open(args, interfaces, &plan)?;
        let resumed = args.resume.as_deref().map(|path| resume::read(path, &plan)).transpose()?;
        let prepared = prepared.with_programs(helpers).changing(plan.app.reloads);
        let page = page.map(|page| page.with_store(store));
        let resumed = resumed.flatten();
        Ok(Opened {
            parsed,
            plan,
            created,
            user,
            served: (page, metrics),
            numbered,
            prepared,
            source,
            resumed,
            read,
        })
    }
}

/// With sockets and interfaces.
struct Opened<'a> {
    parsed: Parsed<'a>,
    plan: Plan<Options>,
    /// The folders of the store that are removed again if the run does not start.
    created: Option<Created>,
    user: Option<User>,
    /// The page and the metrics.
    served: (Option<Page>, Option<Listening>),
    /// The interfaces, for records.
    numbered: Vec<Interface>,
    prepared: Prepared,
    source: Source,
    resumed: Option<Resumed>,
    read: ReadFiles,
}

impl<'a> Opened<'a> {
    /// Gives up all rights that the run does not need.
    fn confine(self) -> anyhow::Result<Confined<'a>> {
        let args = self.parsed.args;
        match &self.user {
            Some(user) => privileges::become_user(user)?,
            None if args.capture == Capture::Dpdk && self.plan.options.live => {
                console::note("capabilities: keeps all, because DPDK's drivers need them");
            }
            None => {
                let inputs = args.inputs.read.iter().map(PathBuf::as_path);
                let written = self.parsed.written();
                let written = written.iter().map(PathBuf::as_path);
                privileges::drop_capabilities(CapabilitySet::empty(), inputs, written)?;
            }
        }
        Ok(Confined(self))
    }
}

/// With the rights of the run. Files are opened, renamed and rotated with them.
struct Confined<'a>(Opened<'a>);

impl<'a> Confined<'a> {
    /// Opens the files of outputs, and starts the threads besides those of the plan.
    fn start(self) -> anyhow::Result<Running<'a>> {
        // The first is dropped last, after everything in the folders.
        let Opened { created, parsed, plan, user, served, numbered, prepared, source, .. } = self.0;
        let Opened { resumed, read, .. } = self.0;
        let Parsed { args, interfaces, outputs: named, existing, layout, .. } = &parsed;
        let workers = plan.arrangement.workers;
        let rules = file_rules(args, *existing);
        let store = layout.as_ref().map(|layout| store::open(layout, args, &plan)).transpose()?;
        let as_user = |error: anyhow::Error| match &user {
            Some(user) => error.context(format!("as the user {}", user.name.to_string_lossy())),
            None => error,
        };
        let packets = PacketFiles::open_all(named, &plan, interfaces).map_err(as_user)?;
        let parts = packets.iter().map(PacketFiles::part).collect();
        let packets = packets.into_iter().map(|own| Box::new(own) as Box<dyn WritePackets>);
        let prepared = prepared.with_packets(packets.collect());
        let started = Outputs::start(named, prepared, workers, &args.export, rules, store.as_ref());
        let (outputs, mut sinks) = started.map_err(as_user)?;
        outputs.extend_parts(parts);
        let certificate = served.0.as_ref().and_then(|page| page.certificate.clone());
        let extent = source.extent(interfaces, args.capture);
        let handle = outputs.control().handle().clone();
        let views = Views::open(args, &plan, interfaces, extent, handle, served, &mut sinks)?;
        if let Some((store, layout)) = store.as_ref().zip(layout.as_ref()) {
            store::count(store, named, &views.console);
            store::begin(store, layout)?;
        }
        let kept = args.resume.as_deref();
        let kept = kept
            .map(|path| resume::Kept::begin(path, resumed.as_ref(), &plan, interfaces, &mut sinks))
            .transpose()?;
        let open = Open { resumed, kept };
        if let Some(created) = created {
            created.keep();
        }
        let tls = (read, certificate);
        Ok(Running { parsed, plan, numbered, source, outputs, sinks, views, store, open, tls })
    }
}

/// With open files and running writers.
struct Running<'a> {
    parsed: Parsed<'a>,
    plan: Plan<Options>,
    numbered: Vec<Interface>,
    source: Source,
    outputs: Outputs,
    sinks: Vec<Sinks>,
    views: Views,
    store: Option<Arc<Store>>,
    open: Open,
    /// The files that were read, and the certificate of the page.
    tls: (ReadFiles, Option<Certificate>),
}

/// The open flows of the run before, and the file for those of this one.
struct Open {
    resumed: Option<Resumed>,
    kept: Option<resume::Kept>,
}

impl Running<'_> {
    /// Runs the plan to its end, and reports.
    fn run(self) -> anyhow::Result<ExitCode> {
        let Self { parsed, plan, numbered, source, mut outputs, sinks, views, store, open, tls } =
            self;
        let (read, certificate) = tls;
        let Open { resumed, kept } = open;
        let gap =
            resumed.as_ref().and_then(|resumed| resume::gap(resumed, &plan, &parsed.interfaces));
        let (args, console) = (parsed.args, &views.console);
        let (control, duration) =
            (outputs.control(), args.inputs.duration.map(Duration::from_nanos));
        let reloads = Arc::<Reloads>::default();
        let reload = args.config.clone().filter(|_| plan.app.reloads).map(|config| Reload {
            config,
            plan: &plan,
            numbered,
            // A file of this run is not replaced, whatever the flags.
            outputs: outputs.changes(file_rules(args, Existing::Next)),
            reloads: Arc::clone(&reloads),
            read,
            certificate,
            console,
        });
        let requests = reload.is_some().then(Requests::default);
        signals::attended(&WATCH, console, &control, requests.as_ref(), duration, || {
            source.announce(args);
            notify::ready(&format!("monitoring {}", plan.options.source.join(", ")));
            let (state, topics) = (args.state.as_deref(), outputs.take_states());
            let (states, on_part) = States::start(state, parsed.existing, topics, &plan, &WATCH)?;
            let totals = store::Totals::new(outputs.take_totals());
            let intervals = Arc::clone(&totals);
            let receivers = views.receivers(
                on_part,
                outputs.take_alerts(),
                plan.options.live,
                store.is_some().then_some(intervals),
            );
            let sinks = ringtap_monitor::Outputs { sinks, receivers, resumed, reloads };
            let outcome = std::thread::scope(|scope| {
                if let Some((reload, requests)) = reload.zip(requests.as_ref()) {
                    let attend = || reload.attend(requests, args, &parsed.outputs);
                    std::thread::Builder::new()
                        .name("reload".into())
                        .spawn_scoped(scope, attend)?;
                }
                // Ends the thread however the run ends, also by a panic.
                let _end = requests.as_ref().map(Requests::until_dropped);
                source.run(&plan, sinks)
            });
            console.close();
            let mut outcome = outcome?;
            outcome.gap = gap;
            messages::print_all(messages::messages(&mut outcome));
            let saved =
                states.finish(&outcome).and(kept.map_or(Ok(()), |kept| kept.finish(&outcome)));
            let intervals = outcome.report().intervals.as_deref().unwrap_or_default();
            totals.lock().unwrap_or_else(PoisonError::into_inner).end(intervals);
            (outcome.export, outcome.write) = outputs.finish();
            let kept = store.as_ref().map_or(Ok(()), |store| {
                store::end(store, &parsed.outputs, &outcome, &control.handle().status())
            });
            // An output may have recovered since the last turn of the attendant.
            console.tick();
            messages::print_all(outputs::messages(&outcome.export));
            messages::print_all(outputs::messages(&outcome.write));
            messages::print(args, &outcome, parsed.stdout_is_taken())?;
            saved.and(kept)?;
            Ok(messages::exit_code(args, &outcome))
        })
        .context("handling signals")?
    }
}
