//! `ringtap doctor`: prints this machine's resources, with advice.
//!
//! Invariant: it only reads, except with `--apply`. Unknown facts are omitted, never guessed.

mod facts;

use std::process::ExitCode;

use anstyle::AnsiColor;
use ringtap_base::text::{shown, shown_lines};
use ringtap_engine::{MOST_INTERFACES, Machine, Options, Plan};
use serde::Serialize;

use crate::args::{DoctorArgs, Form};
use crate::cards::{self, Advice, Card, Interface, Size, Step};
use crate::text;
use facts::{Facts, Nic};
use ringtap_program::json::json;
use ringtap_terminal::Usage;
use ringtap_terminal::console::bold;
use ringtap_terminal::table::{Lean, Table};
use ringtap_terminal::{console, numbers};

#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    facts: Facts,
    /// The threads of a run with default options.
    arrangement: String,
    advice: Vec<String>,
    /// What would improve the settings of the network cards.
    changes: Vec<Advice>,
}

pub(crate) fn run(args: &DoctorArgs) -> anyhow::Result<ExitCode> {
    let (form, names) = (args.output.report, &args.interfaces);
    if args.apply {
        let steps = cards::set_up(names, None, args.dry_run)?;
        let page = match form {
            Form::Text => steps_text(&steps),
            Form::Json => json(&steps)?,
        };
        return console::print(&page).map(|()| ExitCode::SUCCESS);
    }
    let mut facts = Facts::gather();
    if !names.is_empty() {
        // An unknown name is an error.
        names.iter().try_for_each(|name| Interface::open(name, None).map(drop))?;
        facts.interfaces.retain(|nic| names.contains(&nic.name));
    }
    let of_interest =
        facts.interfaces.iter_mut().filter(|nic| !names.is_empty() || nic.is_card_up());
    let changes = of_interest.flat_map(|nic| std::mem::take(&mut nic.changes)).collect();
    let plan = Plan::new(Options::default(), ringtap_monitor::Options::default(), &Machine::this())
        .map_err(Usage::of)?;
    let arrangement = format!("{}: {}", plan.arrangement.skeleton, text::seats(&plan));
    let report = Report { advice: advice(&facts), facts, arrangement, changes };
    let page = match form {
        Form::Text => page(&report, !names.is_empty()),
        Form::Json => json(&report)?,
    };
    console::print(&page).map(|()| ExitCode::SUCCESS)
}

/// Advice for this machine, a line each.
fn advice(facts: &Facts) -> Vec<String> {
    let mut advice = Vec::new();
    let cores = &facts.cores;
    if cores.usable == 1 {
        advice.push("one core is available: runs use one thread (--sequential)".into());
    }
    if cores.usable < cores.online {
        advice.push(format!(
            "{} of {} cores are available; taskset or the container's limits exclude the others",
            cores.usable, cores.online
        ));
    }
    if let Some(one_each) = cores.one_of_each_sibling_group() {
        advice.push(format!("sibling threads share a core: --cores {one_each} uses one of each"));
    }
    if facts.memory.transparent_hugepages.as_deref() == Some("never") {
        advice.push(
            "large tables are faster on huge pages: \
             echo madvise > /sys/kernel/mm/transparent_hugepage/enabled"
                .into(),
        );
    }
    let available = facts.memory.available_bytes.unwrap_or(u64::MAX);
    if available < 1 << 30 {
        advice.push("less than 1 GiB of memory is free: limit the tables with --memory".into());
    }
    if facts
        .clock_source
        .as_deref()
        .is_some_and(|clock| clock != "tsc" && clock != "arch_sys_counter")
    {
        advice.push("the clock source is slow: measured times are less exact".into());
    }
    advice.extend(live_advice(facts));
    advice
}

/// Advice for live interfaces.
fn live_advice(facts: &Facts) -> Vec<String> {
    let mut advice = Vec::new();
    let held = |name: &str| facts.capabilities.get(name).copied().unwrap_or(true);
    if !held("CAP_NET_RAW") {
        advice.push(
            "live capture needs capabilities: sudo setcap \
             cap_net_raw,cap_net_admin,cap_bpf+ep $(command -v ringtap)"
                .into(),
        );
    } else if !(held("CAP_NET_ADMIN") && held("CAP_BPF")) {
        advice.push(
            "--capture af-xdp needs capabilities: sudo setcap \
             cap_net_raw,cap_net_admin,cap_bpf+ep $(command -v ringtap)"
                .into(),
        );
    }
    if facts.bpf_jit == Some(false) {
        advice.push(
            "BPF programs are interpreted: echo 1 > /proc/sys/net/core/bpf_jit_enable".into(),
        );
    }
    advice.extend(taps(&facts.interfaces));
    for nic in &facts.interfaces {
        let rules = nic.card.as_ref().and_then(|card| card.steering_rules).unwrap_or(0);
        if rules > 0 {
            let name = &nic.name;
            advice.push(format!(
                "{name} has {rules} rules that send frames to queues, whatever their hash: ethtool -n {name} lists \
                 them, ethtool -N {name} delete N removes one"
            ));
        }
    }
    if facts.cores.numa_nodes.is_some_and(|nodes| nodes > 1) {
        for nic in &facts.interfaces {
            if let (Some(node), Some(cores)) = (nic.numa_node, &nic.local_cores) {
                let name = &nic.name;
                advice.push(format!(
                    "{name} is attached to NUMA node {node}: use --cores {cores}, so that frames and tables \
                     stay in that node's memory"
                ));
            }
        }
    }
    advice
}

/// Advice to read several network cards as one stream, if more than one is up.
fn taps(interfaces: &[Nic]) -> Option<String> {
    let cards = interfaces.iter().filter(|nic| nic.is_card_up());
    let names: Vec<_> = cards.map(|nic| nic.name.as_str()).take(MOST_INTERFACES).collect();
    (names.len() > 1).then(|| {
        format!(
            "to read taps of both directions of a link as one stream: ringtap monitor -i {}",
            names.join(",")
        )
    })
}

/// The report as text; `all`: with the settings of interfaces without a device.
fn page(report: &Report, all: bool) -> String {
    let Report { facts, arrangement, advice, changes } = report;
    let mut page = String::new();
    let row = |name: &str, value: String| [name.to_owned(), value];
    let number = |number: usize| number.to_string();
    let cores = &facts.cores;
    let siblings = (!cores.siblings.is_empty()).then(|| cores.siblings.join(" | "));
    let rows = [
        ("processor", cores.model.clone()),
        ("usable", Some(format!("{} of {} online", cores.usable, cores.online))),
        ("packages", cores.packages.map(number)),
        ("NUMA nodes", cores.numa_nodes.map(number)),
        ("siblings", siblings),
    ];
    let caches = cores.caches.iter().map(|cache| {
        let name = format!("L{} {}", cache.level, cache.kind.to_lowercase());
        [name, format!("{}, shared by {}", cache.size, cache.shared_by)]
    });
    let last = row("by default", arrangement.clone());
    section(&mut page, "Cores", known(rows).chain(caches).chain([last]));

    let memory = &facts.memory;
    let sizes = [("total", memory.total_bytes), ("available", memory.available_bytes)];
    let sizes = sizes.map(|(name, size)| (name, size.map(numbers::bytes)));
    let huge = memory.hugepages.iter().map(|pages| {
        let (free, total) = (numbers::count(pages.free), numbers::count(pages.total));
        row("huge pages", format!("{free} of {total} free, {} each", numbers::bytes(pages.bytes)))
    });
    let transparent = known([("transparent", memory.transparent_hugepages.clone())]);
    section(&mut page, "Memory", known(sizes).chain(huge).chain(transparent));

    let nic = |nic: &Nic| {
        let speed = nic.speed_mbps.map(|speed| format!("{} Mbit/s", numbers::count(speed)));
        [
            nic.name.clone(),
            nic.state.clone(),
            nic.driver.clone().unwrap_or_else(|| "virtual".into()),
            format!("{} rx, {} tx queues", nic.rx_queues, nic.tx_queues),
            speed.unwrap_or_default(),
        ]
    };
    section(&mut page, "Interfaces", facts.interfaces.iter().map(nic));

    for nic in facts.interfaces.iter().filter(|nic| all || nic.driver.is_some()) {
        let near = nic.numa_node.map(|node| format!("node {node}")).into_iter();
        let near = near.chain(nic.local_cores.iter().map(|cores| format!("cores {cores}")));
        let near = row("NUMA", near.collect::<Vec<_>>().join(", "));
        let settings = nic.card.iter().flat_map(settings).map(|(name, value)| row(name, value));
        section(&mut page, &format!("Card {}", shown(&nic.name)), settings.chain([near]));
    }

    let yes = |is: bool| if is { "yes" } else { "no" }.to_owned();
    let or_unlimited = |limit: Option<String>| limit.or_else(|| Some("unlimited".into()));
    let held = facts.capabilities.iter().filter(|(_, held)| **held).map(|(name, _)| *name);
    let held = Some(held.collect::<Vec<_>>().join(", ")).filter(|held| !held.is_empty());
    let rows = [
        ("kernel", Some(facts.kernel.clone())),
        ("clock", facts.clock_source.clone()),
        ("BPF compiled", facts.bpf_jit.map(yes)),
        ("landlock", facts.landlock.map(yes)),
        ("locked memory", or_unlimited(facts.limits.locked_memory_bytes.map(numbers::bytes))),
        ("open files", or_unlimited(facts.limits.open_files.map(numbers::count))),
        ("capabilities", held.or_else(|| Some("none".into()))),
    ];
    section(&mut page, "System", known(rows));

    let heading = bold(AnsiColor::Yellow);
    page += &format!("\n{heading}Advice{heading:#}\n");
    if advice.is_empty() && changes.is_empty() {
        page += "  none\n";
    }
    for line in advice {
        page += &format!("  - {}\n", shown(line));
    }
    for Advice { interface, why, command, .. } in changes {
        page += &format!("  - {}: {why}: {}\n", shown(interface), shown(command));
    }
    page
}

/// The settings of a card that its driver reports.
fn settings(card: &Card) -> Vec<(&'static str, String)> {
    let size = |Size { now, most }: Size| {
        format!("{} of {}", numbers::count(now.into()), numbers::count(most.into()))
    };
    let mut rows = Vec::new();
    if let Some(driver) = &card.driver {
        rows.push(("driver", driver.clone()));
    }
    if let Some(queues) = &card.queues {
        let kinds = [("combined", queues.combined), ("rx", queues.rx), ("tx", queues.tx)];
        let kinds = kinds.into_iter().filter(|kind| kind.1.most > 0);
        let kinds: Vec<_> =
            kinds.map(|(name, number)| format!("{name} {}", size(number))).collect();
        rows.push(("queues", kinds.join(", ")));
    }
    if let Some(rings) = &card.rings {
        rows.push(("rings", format!("rx {}, tx {} frames", size(rings.rx), size(rings.tx))));
    }
    if let Some(hash) = &card.hash {
        let is = if hash.is_symmetric { "symmetric" } else { "not symmetric" };
        let function = hash.function.unwrap_or("unknown");
        let text =
            format!("{function}, {is}, a table of {} over {} queues", hash.table, hash.queues);
        rows.extend([("hash", text), ("key", hash.key.clone())]);
    }
    if !card.hash_fields.is_empty() {
        let fields = card.hash_fields.iter().map(|(flow, fields)| format!("{flow} {fields}"));
        rows.push(("hashed", fields.collect::<Vec<_>>().join(", ")));
    }
    let offloads = card.offloads.iter().map(|(name, offload)| {
        let fixed = if offload.fixed { " (fixed)" } else { "" };
        format!("{name} {}{fixed}", if offload.on { "on" } else { "off" })
    });
    rows.push(("offloads", offloads.collect::<Vec<_>>().join(", ")));
    for interrupt in &card.interrupts {
        let text = format!("{} {}: cores {}", interrupt.number, interrupt.name, interrupt.cores);
        rows.push(("interrupt", text));
    }
    rows
}

/// Changes that were made, and how to undo them.
fn steps_text(steps: &[Step]) -> String {
    let mut text = String::new();
    for Step { advice: Advice { why, command, .. }, error, .. } in steps {
        let result = error.as_ref().map_or(String::new(), |error| format!("   {error}"));
        text += &format!("{command}   # {why}{result}\n");
    }
    if text.is_empty() {
        return "nothing to change\n".into();
    }
    let made = || steps.iter().rev().filter(|step| step.made);
    if made().next().is_some() {
        text += "\nTo undo:\n";
    }
    made().for_each(|step| text += &format!("{}\n", step.advice.undo));
    shown_lines(&text)
}

/// The rows whose values are known.
fn known<const N: usize>(rows: [(&str, Option<String>); N]) -> impl Iterator<Item = [String; 2]> {
    rows.into_iter().filter_map(|(name, value)| Some([name.to_owned(), value?]))
}

fn section<const N: usize>(
    page: &mut String,
    title: &str,
    rows: impl IntoIterator<Item = [String; N]>,
) {
    let mut table = Table::new(&[Lean::Left; N]);
    rows.into_iter().for_each(|row| table.row(row));
    let heading = bold(AnsiColor::Cyan);
    let gap = if page.is_empty() { "" } else { "\n" };
    *page += &format!("{gap}{heading}{title}{heading:#}\n");
    table.lines().for_each(|line| *page += &(line + "\n"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_lists_the_network_cards_that_are_up() {
        let nic = |name: &str, state: &str, driver: Option<&str>| Nic {
            name: name.into(),
            state: state.into(),
            driver: driver.map(str::to_owned),
            rx_queues: 1,
            tx_queues: 1,
            speed_mbps: None,
            numa_node: None,
            local_cores: None,
            card: None,
            changes: Vec::new(),
        };
        let mut all =
            vec![nic("lo", "up", None), nic("e1", "up", Some("x")), nic("e2", "down", Some("x"))];
        assert_eq!(taps(&all), None);
        all.push(nic("e3", "up", Some("x")));
        assert!(taps(&all).unwrap().ends_with("ringtap monitor -i e1,e3"));
    }
}
