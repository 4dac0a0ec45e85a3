//! The report for people.

use std::fmt::Write;

use ringtap_plan::{Outcome, Plan, Role};

/// What will run, in a few lines.
pub(crate) fn plan(plan: &Plan) -> String {
    let seats: Vec<String> = plan
        .seating
        .seats
        .iter()
        .map(|roles| roles.iter().map(role).collect::<Vec<_>>().join(" + "))
        .collect();
    format!(
        "plan: {}: {}; ring {} {}/{}; seed {}\n",
        plan.skeleton,
        seats.join(" | "),
        plan.ring,
        plan.ring_capacity,
        plan.ring_batch,
        plan.seed,
    )
}

fn role(role: &Role) -> String {
    match role {
        Role::Dispatcher => "dispatcher".into(),
        Role::Worker(index) => format!("worker {index}"),
        Role::Merger => "merger".into(),
    }
}

/// The whole report.
pub(crate) fn report(outcome: &Outcome) -> String {
    let mut out = plan(&outcome.plan);
    let packets = &outcome.report.packets;
    let _ = writeln!(
        out,
        "packets: {} received, {} IPv4, {} IPv6, {} other",
        outcome.received, packets.ipv4, packets.ipv6, packets.non_ip
    );
    if let Some(flows) = &outcome.report.flows {
        let _ = writeln!(out, "flows: {} records", flows.records);
    }
    let _ = writeln!(
        out,
        "time: {:.3} s, {} packets/s, {:.3} s CPU",
        outcome.performance.seconds,
        outcome.performance.packets_per_second,
        outcome.performance.cpu_seconds
    );
    if let Some(digest) = &outcome.digest {
        let _ = writeln!(out, "digest {digest}");
    }
    out
}
