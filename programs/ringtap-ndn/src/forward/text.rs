//! Plan, report and lists of a forwarder as text.

use std::fmt::Write;
use std::time::Duration;

use ringtap_ndn::faces::{Counters, Remote};
use ringtap_ndn::forwarder::FaceUse;
use ringtap_ndn::packets::Name;
use ringtap_ndn::packets::management::{
    FaceEvent, FaceStatus, GeneralStatus, ORIGIN_APP, ORIGIN_STATIC, RibEntry, StrategyChoice,
};
use ringtap_ndn::relay::{ForwardPlan, ForwardReport};

use ringtap_program::rate::Rate;
use ringtap_terminal::numbers::{bytes, count, of, rate};
use ringtap_terminal::table::{Lean, Table};

/// Most workers listed in the report.
const LISTED: usize = 16;

/// Most faces listed in the report.
const ROWS: usize = 20;

/// The plan.
pub(super) fn plan(plan: &ForwardPlan) -> String {
    let mut text = String::new();
    for at in &plan.faces.udp {
        let _ = writeln!(text, "neighbours at udp://{at}");
    }
    for at in &plan.faces.tcp {
        let _ = writeln!(text, "neighbours at tcp://{at}");
    }
    for ethernet in &plan.faces.ethernet {
        let strangers = if ethernet.strangers { ", unknown senders get faces" } else { "" };
        let (interface, method) = (&ethernet.interface, ethernet.method.name());
        let _ = writeln!(text, "neighbours at ether://{interface} by {method}{strangers}");
    }
    for at in &plan.faces.websocket {
        let _ = writeln!(text, "neighbours at ws://{at}");
    }
    for multicast in &plan.faces.multicast {
        let _ =
            writeln!(text, "neighbours at udp://{} on {}", multicast.group, multicast.interface);
    }
    if let Some(unix) = &plan.unix {
        let _ = writeln!(text, "programs at unix://{unix}");
    }
    let settings = &plan.settings;
    let _ = writeln!(
        text,
        "{} ({} per face), {} of Data, {} ({} on demand)",
        of(settings.pit_capacity as u64, "pending Interest"),
        count(settings.pit_per_face.unwrap_or(settings.pit_capacity) as u64),
        bytes(settings.cs_bytes as u64),
        of(plan.faces.faces_max as u64, "face"),
        count(plan.faces.on_demand_max() as u64),
    );
    if plan.workers > 1 {
        let _ = writeln!(
            text,
            "{} workers, names by {}",
            plan.workers,
            of(settings.dispatch_components as u64, "component"),
        );
    }
    for anchor in &plan.trust.anchors {
        let modules: Vec<_> = anchor.allow.iter().map(|module| module.name()).collect();
        let _ = writeln!(
            text,
            "commands signed by {} ({}): {}, under {}",
            anchor.name,
            anchor.key.signature_type().name(),
            modules.join(", "),
            anchor.prefix
        );
    }
    if plan.trust.sign_local {
        let _ = writeln!(text, "local programs must sign commands");
    }
    for route in &plan.routes {
        let local = match &route.to {
            Remote::Ethernet { interface, .. }
            | Remote::Multicast { interface: Some(interface), .. } => format!(" on {interface}"),
            _ => String::new(),
        };
        let _ = writeln!(text, "{} to {}{local}, cost {}", route.prefix, route.to, route.cost);
    }
    for (prefix, strategy) in &plan.strategies {
        let _ = writeln!(text, "{prefix} with strategy {}", strategy.name());
    }
    text
}

/// A line of totals, with the rate since the line before.
pub(super) fn stats(report: &ForwardReport, current: &mut Rate) -> String {
    let packets = report.links.packets_in();
    let dropped: u64 = report.dropped().iter().map(|(_, number)| number).sum();
    let evicted = match report.evicted {
        0 => String::new(),
        faces => format!(" ({} evicted)", count(faces)),
    };
    format!(
        "stats: {:.1} s, {} packets, {}/s, {}{evicted}, {} pending, {} dropped",
        report.seconds,
        count(packets),
        rate(current.read(Duration::from_secs_f64(report.seconds), packets, Duration::ZERO)),
        of(report.faces.len() as u64, "face"),
        count(report.pending as u64),
        count(dropped),
    )
}

/// The report.
pub(super) fn report(report: &ForwardReport) -> String {
    let counters = &report.forwarder;
    let mut text = format!(
        "in:  {} Interests, {} Data, {} Nacks\nout: {} Interests, {} Data, {} Nacks\n",
        count(counters.interests_in),
        count(counters.data_in),
        count(counters.nacks_in),
        count(counters.interests_out),
        count(counters.data_out),
        count(counters.nacks_out),
    );
    let _ = writeln!(
        text,
        "Interests answered: {} by received Data, {} from the content store; {} not answered, {} pending",
        count(counters.satisfied),
        count(counters.cs_hits),
        count(counters.unsatisfied),
        count(report.pending as u64),
    );
    if report.managed() > 0 {
        let _ = writeln!(text, "management: {} answered", of(report.managed(), "request"));
    }
    if report.shards.len() > 1 {
        let all = report.shards.iter().map(|shard| {
            let counters = &shard.counters;
            counters.interests_in + counters.data_in + counters.nacks_in
        });
        let all: Vec<u64> = all.collect();
        let sum = all.iter().sum::<u64>().max(1) as f64;
        let share = |packets: u64| format!("{:.0} %", 100.0 * packets as f64 / sum);
        let shares = match (all.iter().min(), all.iter().max()) {
            (Some(&least), Some(&most)) if all.len() > LISTED => {
                format!("{} to {} of the packets each", share(least), share(most))
            }
            _ => all.iter().map(|&packets| share(packets)).collect::<Vec<_>>().join(", "),
        };
        let _ = writeln!(text, "workers: {shares}");
    }
    for (reason, number) in report.refused_commands() {
        let _ = writeln!(text, "  commands refused, {reason}: {}", count(number));
    }
    for (reason, number) in report.dropped() {
        let _ = writeln!(text, "  dropped, {reason}: {}", count(number));
    }
    if report.evicted > 0 {
        let _ = writeln!(text, "  faces evicted to make room: {}", count(report.evicted));
    }
    if report.incomplete > 0 {
        let _ = writeln!(text, "  packets with missing fragments: {}", count(report.incomplete));
    }
    if report.kernel_drops > 0 {
        let _ = writeln!(text, "  dropped by the kernel: {}", count(report.kernel_drops));
    }
    let mut table = face_table();
    for face in report.faces.iter().take(ROWS) {
        table.row(face_row(face.face.into(), &face.remote, &face.counters, &face.usage));
    }
    table.lines().for_each(|line| text += &(line + "\n"));
    if report.faces.len() > ROWS {
        let _ = writeln!(text, "  and {}", of((report.faces.len() - ROWS) as u64, "face"));
    }
    let packets = report.links.packets_in();
    let _ = writeln!(
        text,
        "{:.2} s ({} packets/s), {} unaccounted for",
        report.seconds,
        rate(packets as f64 / report.seconds.max(1e-9)),
        report.residual(),
    );
    text
}

pub(super) fn faces(faces: &[FaceStatus]) -> String {
    let mut table = face_table();
    for face in faces {
        let mut counters = Counters::default();
        counters.interests_in = face.in_interests;
        counters.data_in = face.in_data;
        counters.interests_out = face.out_interests;
        counters.data_out = face.out_data;
        counters.octets_in = face.in_bytes;
        counters.octets_out = face.out_bytes;
        let usage =
            FaceUse { exchanges: face.exchanges, cs_hits: face.cs_hits, pending: face.pending };
        let uri = match face.local_uri.strip_prefix("dev://") {
            Some(interface) => format!("{} on {interface}", face.uri),
            None => face.uri.clone(),
        };
        table.row(face_row(face.face, &uri, &counters, &usage));
    }
    table.lines().map(|line| line + "\n").collect()
}

/// A line about an event of a face.
pub(super) fn event(event: &FaceEvent) -> String {
    let persistency = match event.persistency {
        0 => "persistent",
        1 => "on demand",
        _ => "permanent",
    };
    let FaceEvent { kind, face, uri, local_uri, .. } = event;
    format!("{} {face} {uri} from {local_uri}, {persistency}\n", kind.name())
}

pub(super) fn routes(entries: &[RibEntry], faces: &[FaceStatus]) -> String {
    let mut table = Table::new(&[Lean::Left, Lean::Right, Lean::Left, Lean::Right, Lean::Left]);
    table.row(["prefix", "face", "to", "cost", "from"]);
    for entry in entries {
        for route in &entry.routes {
            let face = faces.iter().find(|face| face.face == route.face);
            let origin = match route.origin {
                ORIGIN_APP => "a program".to_owned(),
                ORIGIN_STATIC => "configured".to_owned(),
                other => format!("origin {other}"),
            };
            let ends = route.expiration_ms.map(|ms| format!(", {} s left", ms / 1000));
            table.row([
                entry.name.to_string(),
                route.face.to_string(),
                face.map_or("gone", |face| &face.uri).to_owned(),
                route.cost.to_string(),
                origin + &ends.unwrap_or_default(),
            ]);
        }
    }
    table.lines().map(|line| line + "\n").collect()
}

pub(super) fn strategies(choices: &[StrategyChoice]) -> String {
    let mut table = Table::new(&[Lean::Left, Lean::Left]);
    for choice in choices {
        table.row([choice.name.to_string(), strategy_of(&choice.strategy.as_name())]);
    }
    table.lines().map(|line| line + "\n").collect()
}

pub(super) fn status(status: &GeneralStatus) -> String {
    let mut text = format!(
        "{}, {} s up\n{} pending, {} Data kept, next hops for {} prefix{}\n\
         in:  {} Interests, {} Data, {} Nacks\nout: {} Interests, {} Data, {} Nacks\n\
         Interests: {} satisfied, {} not\n",
        status.version,
        status.now_ms.saturating_sub(status.started_ms) / 1000,
        of(status.pit_entries, "Interest"),
        count(status.cs_entries),
        count(status.fib_entries),
        if status.fib_entries == 1 { "" } else { "es" },
        count(status.in_interests),
        count(status.in_data),
        count(status.in_nacks),
        count(status.out_interests),
        count(status.out_data),
        count(status.out_nacks),
        count(status.satisfied),
        count(status.unsatisfied),
    );
    for (number, what) in [
        (status.evicted_faces, "faces evicted to make room"),
        (status.refused_frames, "frames of senders without a face"),
        (status.refused_interests, "Interests refused: too many pending of their face"),
        (status.refused_commands, "commands refused"),
    ] {
        if number > 0 {
            let _ = writeln!(text, "{what}: {}", count(number));
        }
    }
    text
}

fn face_table() -> Table {
    let right = Lean::Right;
    let mut table = Table::new(&[
        right,
        Lean::Left,
        right,
        right,
        right,
        right,
        right,
        right,
        right,
        right,
        right,
    ]);
    table.row([
        "face",
        "to",
        "Interests in",
        "out",
        "Data in",
        "out",
        "bytes in",
        "out",
        "exchanges",
        "store hits",
        "pending",
    ]);
    table
}

fn face_row(face: u64, remote: &str, counters: &Counters, usage: &FaceUse) -> [String; 11] {
    [
        face.to_string(),
        remote.to_owned(),
        count(counters.interests_in),
        count(counters.interests_out),
        count(counters.data_in),
        count(counters.data_out),
        bytes(counters.octets_in),
        bytes(counters.octets_out),
        count(usage.exchanges),
        count(usage.cs_hits),
        count(usage.pending),
    ]
}

/// The name of a strategy: the fourth component of its NDN name.
fn strategy_of(name: &Name<'_>) -> String {
    let part = name.components().nth(3);
    part.map(|part| String::from_utf8_lossy(part.value).into_owned()).unwrap_or_default()
}
