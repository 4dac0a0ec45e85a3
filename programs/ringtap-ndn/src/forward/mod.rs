//! `ringtap-ndn forward`: reads the configuration, opens the faces, forwards and prints the report.

mod anchors;
mod client;
mod config;
mod ctl;
mod events;
mod metrics;
mod text;
mod values;

use std::process::ExitCode;

use ringtap_ndn::relay::{ForwardReport, Relay};

use crate::args::{Form, ForwardAction, ForwardArgs};
use crate::run::{RUN, stoppable};
use metrics::Latest;
use ringtap_program::atomic_file::Existing;
use ringtap_program::json::json;
use ringtap_program::privileges::CapabilitySet;
use ringtap_program::rate::Rate;
use ringtap_program::roles::Roles;
use ringtap_program::{notify, open_files, privileges, sandbox};
use ringtap_serve::Listening;
use ringtap_serve::listen;
use ringtap_terminal::Usage;
use ringtap_terminal::console::{self, note, print_message, print_to_stderr};

/// The exit code for losses with `--fail-on-drop`.
const LOST: u8 = 3;

/// Drop reasons for lack of room, on links and in tables. Other drops are caused by the traffic.
const LACK_OF_ROOM: [&str; 7] = [
    "no-face",
    "congested",
    "too-many-pieces",
    "pit-full",
    "face-share",
    "records-full",
    "worker-full",
];

pub(crate) fn run(args: &ForwardArgs) -> anyhow::Result<ExitCode> {
    if let Some(ForwardAction::Ctl(args)) = &args.action {
        return ctl::run(args);
    }
    let Some(path) = &args.config else {
        return Err(Usage::of(
            "nothing to forward: use --config ndn.toml ('ringtap-ndn forward --help' shows one)",
        ));
    };
    let config::Config { mut plan, unix, keys } = config::read(path)?;
    let mut roles = Roles::default();
    roles.reads("--config", [path]).reads("the key of [[anchor]]", &keys);
    if let Some(unix) = &unix {
        roles.other(&format!("listen of [unix] {}", unix.path.display()), &unix.path);
    }
    roles.check(Existing::Refuse)?;
    plan.workers = args.workers.map_or(plan.workers, usize::from);
    if args.dry_run {
        let text = match args.output.report {
            Form::Text => text::plan(&plan),
            Form::Json => json(&plan.to_json())?,
        };
        return console::print_plain(&text).map(|()| ExitCode::SUCCESS);
    }
    if let Some(warning) = too_few_files(plan.faces.faces_max, open_files::raise_limit()) {
        print_message("warning", &warning);
    }
    let user = args.user.as_deref().map(privileges::user).transpose()?;
    let socket = unix.as_ref().map(|unix| unix.path.clone());
    sandbox::enter(socket.as_deref().into_iter(), true)?;
    privileges::forbid_new();
    let unix = unix.map(|unix| listen(&unix.path, unix.mode)).transpose()?;
    let (listener, _file) = unix.unzip();
    let listening = args.metrics.map(|at| Listening::at("--metrics", at)).transpose()?;
    let mut relay = Relay::open(plan, listener, env!("CARGO_PKG_VERSION"))?;
    relay.take_warnings().iter().for_each(|warning| print_message("warning", warning));
    match &user {
        Some(user) => privileges::become_user(user)?,
        // Faces on Ethernets may be created later.
        None => {
            privileges::drop_capabilities(CapabilitySet::NET_RAW, [], socket.as_deref())?;
        }
    }
    let latest = Latest::default();
    let pages = latest.clone();
    let serve = |listening: Listening| listening.serve_metrics(move || pages.reply());
    let url = listening.as_ref().and_then(Listening::url);
    let metrics = listening.map(serve).transpose()?;
    let mut next = args.stats.unwrap_or(u64::MAX);
    let mut rate = Rate::default();
    let publish = |report: &dyn Fn() -> ForwardReport| {
        if next == u64::MAX && metrics.is_none() {
            return;
        }
        let report = report();
        if report.seconds * 1e9 >= next as f64 {
            next = next.saturating_add(args.stats.unwrap_or(u64::MAX));
            print_to_stderr(&text::stats(&report, &mut rate));
        }
        if metrics.is_some() {
            latest.set(report);
        }
    };
    let report = stoppable(args.duration, || {
        // Signals are handled from here on: announce the start.
        url.iter().for_each(|url| note(&format!("metrics: {url}metrics")));
        relay.listening().iter().for_each(|at| note(&format!("forwarding at {at}")));
        notify::ready(&format!("forwarding at {}", relay.listening().join(", ")));
        Ok(relay.run(|| RUN.ends(), publish)?)
    })?;
    let text = match args.output.report {
        Form::Text => text::report(&report),
        Form::Json => json(&report.to_json(env!("CARGO_PKG_VERSION")))?,
    };
    console::print_plain(&text)?;
    Ok(exit_code(args, &report))
}

/// Open files besides those of faces: listeners, threads and outputs.
const OTHER_FILES: u64 = 64;

/// The warning if the limit of open files permits fewer faces than the configuration.
fn too_few_files(faces_max: usize, limit: u64) -> Option<String> {
    let needed = faces_max as u64 + OTHER_FILES;
    (limit < needed).then(|| {
        format!(
            "the limit of open files is {limit}, and most = {faces_max} in [faces] may need {needed}: \
             raise it (ulimit -n, LimitNOFILE), or lower most"
        )
    })
}

/// Prints losses; returns the exit code.
fn exit_code(args: &ForwardArgs, report: &ForwardReport) -> ExitCode {
    if report.residual() != 0 {
        print_message("error", &format!("{} packets are unaccounted for", report.residual()));
        return ExitCode::FAILURE;
    }
    let mut lost: Vec<_> =
        report.dropped().into_iter().filter(|(reason, _)| LACK_OF_ROOM.contains(reason)).collect();
    if report.kernel_drops > 0 {
        lost.push(("kernel", report.kernel_drops));
    }
    for (reason, packets) in &lost {
        print_message("warning", &format!("packets lost ({reason}): {packets}"));
    }
    if report.evicted > 0 {
        print_message(
            "warning",
            &format!(
                "faces evicted: {}; more senders than on-demand = {} in [faces]",
                report.evicted, report.on_demand[1]
            ),
        );
    }
    if args.fail_on_drop && !lost.is_empty() { ExitCode::from(LOST) } else { ExitCode::SUCCESS }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_of_open_files_below_the_faces_is_a_warning() {
        assert_eq!(too_few_files(4096, 4160), None);
        let warning = too_few_files(4096, 4159).unwrap();
        assert!(warning.contains("4159") && warning.contains("most = 4096"), "{warning}");
    }
}
