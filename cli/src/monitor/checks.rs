//! Checks before the plan: outputs, files, flags without effect.

use std::path::PathBuf;

use ringtap_engine::Plan;
use ringtap_export::{Items, Output};
use ringtap_extract::Extractors;
use ringtap_io::bpf::Expression;
use ringtap_monitor::Analyses;
use ringtap_program::roles::Roles;
use ringtap_terminal::Usage;
use ringtap_terminal::console::print_message;
use ringtap_terminal::numbers::{bytes, count};

use super::{options, store};
use crate::args::{Capture, MonitorArgs};
use crate::source::Unopened;
use crate::units::TimeoutList;
use crate::{alerts, outputs, states};

/// What rotation and retention need.
const FILES: &str = "a file of records, as in --write json:flows-%Y%m%dT%H%M.json";

/// Fewer flows than a small network has.
const FEW_FLOWS: u64 = 10_000;

/// The outputs of the flags, and a further one.
pub(crate) fn outputs(args: &MonitorArgs, further: Option<Output>) -> anyhow::Result<Vec<Output>> {
    if args.inputs.read.is_empty() && args.interface.is_empty() {
        return Err(Usage::of("nothing to read: use -r trace.pcap, -r - for stdin, or -i eth0"));
    }
    if !args.events.is_empty() && args.extract == Some(Extractors::NONE) {
        return Err(Usage::of("--events needs payloads: omit --extract none"));
    }
    let alerts = alerts::outputs(&args.alert_to);
    let mut all = outputs::named(&args.export, &args.write, &args.events.concat(), &alerts)?;
    if let Some(layout) = store::layout(args)? {
        all.extend(store::outputs(&layout, args));
    }
    all.extend(further);
    check_use(args, &all)?;
    if args.anonymise.is_some() && all.iter().any(has_packets) {
        return Err(Usage::of(
            "packets have addresses: --anonymise cannot be used with --alert-to packets:FOLDER",
        ));
    }
    Ok(all)
}

/// Checks that flags have an effect, as far as their definition does not.
fn check_use(args: &MonitorArgs, outputs: &[Output]) -> anyhow::Result<()> {
    let analyses = args.analyses.unwrap_or_else(Analyses::all);
    let encrypts = outputs.iter().any(Output::is_encrypted);
    let has_files = outputs.iter().any(is_file);
    let is_read = outputs.iter().any(Output::is_read);
    let has_statistics = outputs.iter().any(Output::has_statistics);
    let (_, changes) = options::limits(args);
    let page_is_encrypted = args.web.is_some() && args.tls_cert.is_some();
    for (given, has_effect, flag, needed) in [
        (
            args.tls_ca.is_some(),
            encrypts,
            "--tls-ca",
            "an output with TLS, as in --export ipfix+tls://HOST",
        ),
        (
            args.tls_cert.is_some(),
            encrypts || page_is_encrypted,
            "--tls-cert",
            "an output with TLS, as in --export ipfix+tls://HOST, or --web",
        ),
        (args.dpdk_args.is_some(), args.capture == Capture::Dpdk, "--dpdk-args", "--capture dpdk"),
        (
            args.names.is_some(),
            args.extract != Some(Extractors::NONE),
            "--names",
            "payloads: omit --extract none",
        ),
        (
            args.cut.is_some() && args.store.is_none(),
            analyses.flows && outputs.iter().any(|output| output.items() == Items::Flows),
            "--cut",
            "an output for flow records, as in --write json:flows.json",
        ),
        (
            args.recent.is_some(),
            outputs.iter().any(has_packets),
            "--recent",
            "--alert-to packets:FOLDER",
        ),
        (args.rotate.is_some(), has_files || has_statistics || is_read, "--rotate", FILES),
        (args.keep.is_some(), has_files, "--keep", FILES),
        (args.keep_size.is_some(), has_files, "--keep-size", FILES),
        (args.keep_free.is_some(), has_files, "--keep-free", FILES),
        (
            changes.volume_floor.is_some(),
            changes.volume_change.is_some(),
            "--alert volume-floor=",
            "--alert volume-change=",
        ),
        (
            args.analyses.is_some() && analyses.changes,
            changes.any(),
            "--analyses changes",
            "--alert new-device=1h",
        ),
        (
            args.statistics_packets.is_some(),
            analyses.statistics,
            "--statistics-packets",
            "--analyses all,statistics",
        ),
        (
            args.statistics_octets.is_some(),
            analyses.statistics,
            "--statistics-octets",
            "--analyses all,statistics",
        ),
        (args.scan_threshold.is_some(), analyses.scans, "--scan-threshold", "the analysis scans"),
        (
            args.udp_scan_threshold.is_some(),
            analyses.udp_scans,
            "--udp-scan-threshold",
            "the analysis udp_scans",
        ),
    ] {
        if given && !has_effect {
            return Err(Usage::of(format!("{flag} has no effect: it needs {needed}")));
        }
    }
    TimeoutList::join(&args.timeouts).map_err(Usage::of)?;
    Ok(())
}

/// Whether an output is files of records, events or alerts.
fn is_file(output: &Output) -> bool {
    output.path().is_some() && !output.is_stdout()
}

/// Whether an output is files with the packets of alerts.
fn has_packets(output: &Output) -> bool {
    outputs::packets_path(output).is_some()
}

/// The files of the flags.
pub(crate) fn roles(args: &MonitorArgs, outputs: &[Output]) -> anyhow::Result<Roles> {
    let mut roles = Roles::default();
    roles.reads("--read", &args.inputs.read);
    roles.reads("--config", &args.config).reads("--names", &args.names);
    roles.reads("--watch", &args.watch).reads("--networks", &args.networks);
    roles.reads("--allow", &args.allow);
    roles.reads("--oui", &args.oui).reads("--vlans", &args.vlans);
    roles.reads("--port-labels", &args.port_labels);
    roles.reads("--geo", &args.geo).reads("--anonymise", &args.anonymise);
    roles.reads("--tls-ca", &args.tls_ca).reads("--tls-cert", &args.tls_cert);
    roles.reads("--tls-key", &args.tls_key).reads("--web-token", &args.web_token);
    for output in outputs {
        match (output, outputs::written_path(output)?) {
            (Output::Alerts(alerts), Some(path)) => {
                roles.other(&format!("--alert-to {alerts}"), &path);
            }
            (Output::Alerts(alerts), None) => {
                let program = alerts.program().map(alerts::find_program).transpose()?;
                roles.reads("--alert-to exec", program);
            }
            (_, Some(path)) => {
                roles.output(output, &path);
            }
            (_, None) => {}
        }
    }
    let state = args.state.as_deref().filter(|path| !states::is_folder(path));
    roles.writes("--state", state);
    if let Some(path) = &args.resume {
        roles.other(&"--resume", path);
    }
    Ok(roles)
}

/// Warns if `--memory` leaves room for few flows.
pub(super) fn warn_of_little_room(args: &MonitorArgs, plan: &Plan<ringtap_monitor::Options>) {
    let flows = plan.app.max_flows();
    let is_chosen = args.max_flows.is_some_and(|most| most <= flows);
    let Some(limit) = args.memory.filter(|_| flows < FEW_FLOWS && !is_chosen && !args.quiet) else {
        return;
    };
    let text = format!(
        "--memory {} leaves room for {} flows at a time, so flows may end early: raise it, or use fewer outputs or workers",
        bytes(limit),
        count(flows)
    );
    print_message("warning", &text);
}

/// The error about inputs that cannot be opened. If they are the words of a filter expression, it
/// says how to give one.
pub(super) fn explained(args: &MonitorArgs, unopened: Unopened) -> anyhow::Error {
    let words: Vec<_> = args.inputs.read.iter().map(|path| path.to_string_lossy()).collect();
    let is_missing = |path: &PathBuf| unopened.0.iter().any(|notice| notice.path == *path);
    let begins = |&at: &usize| is_missing(&args.inputs.read[at]) && begins_expression(&words[at]);
    let start = (1..words.len()).find(begins);
    let expression = start.map(|at| words[at..].join(" "));
    let expression = expression.filter(|text| Expression::new(text).is_ok());
    match (start, expression) {
        (Some(at), Some(expression)) => anyhow::anyhow!(
            "{unopened}; put a filter expression after --: ringtap monitor -r {} -- {expression}",
            words[..at].join(" ")
        ),
        _ => unopened.into(),
    }
}

/// Whether a word can only begin a filter expression. Other words could be names of hosts, which
/// are not looked up for a file that is missing.
fn begins_expression(word: &str) -> bool {
    const WORDS: [&str; 33] = [
        "arp",
        "broadcast",
        "dst",
        "ether",
        "gateway",
        "geneve",
        "greater",
        "host",
        "icmp",
        "icmp6",
        "igmp",
        "inbound",
        "ip",
        "ip6",
        "less",
        "mpls",
        "multicast",
        "net",
        "not",
        "outbound",
        "port",
        "portrange",
        "pppoes",
        "proto",
        "rarp",
        "sctp",
        "src",
        "stp",
        "tcp",
        "udp",
        "vlan",
        "vxlan",
        "wlan",
    ];
    let first = word.split(|letter: char| !letter.is_ascii_alphanumeric()).next();
    word.starts_with(['!', '(']) || first.is_some_and(|first| WORDS.contains(&first))
}
