//! Compares the reference and all skeletons with an oracle that has no tables, hashes, groups or
//! shards. The traffic is random and small, with many collisions and odd cases: hosts that send to
//! themselves, timestamps that run backwards, FIN with SYN, fragments without a first one. The
//! whole report is compared.

mod naive;
mod world;

use crate::common::Plan;
use crate::common::{Capture, gather, parallel, reference, skeletons};
use proptest::prelude::*;
use ringtap_engine::Watch;
use ringtap_flow::FlowRecord;
use ringtap_monitor::Report;
use ringtap_ring::Kind as Ring;

use world::{World, world};

/// The report of a run and all its records, sorted.
fn monitored(plan: &Plan, capture: &Capture) -> (Report, Vec<FlowRecord>) {
    let (outputs, records) = gather(plan.arrangement.workers, |record| record.clone());
    let outcome = ringtap_monitor::run(plan, capture.open(), outputs, &Watch::new()).unwrap();
    assert_eq!(outcome.run.ledger.residual(), 0, "{:?}", outcome.run.ledger);
    let mut records = records.lock().unwrap().clone();
    records.sort();
    (outcome.run.report, records)
}

fn agrees(world: &World) {
    let capture = Capture::Bytes(world.file());
    let plan = reference(world.request.clone());
    let expected = naive::report(&plan, &capture);
    same(&monitored(&plan, &capture), &expected);
    // No other test combines late packets, marks and shards as densely.
    for skeleton in skeletons() {
        let plan = parallel(world.request.clone(), skeleton, (2, 3), Ring::default(), (64, 8));
        same(&monitored(&plan, &capture), &expected);
    }
}

/// Compares part by part first, so that a difference is readable.
fn same((ours, our_records): &(Report, Vec<FlowRecord>), expected: &(Report, Vec<FlowRecord>)) {
    let (report, records) = expected;
    assert_eq!((ours.packets, ours.octets), (report.packets, report.octets));
    assert_eq!(ours.protocols, report.protocols);
    assert_eq!(ours.conversations, report.conversations);
    assert_eq!(ours.sections.scans, report.sections.scans);
    assert_eq!(ours.sections.udp_scans, report.sections.udp_scans);
    assert_eq!(our_records, records);
    assert_eq!(ours.flows, report.flows);
    assert_eq!(ours.intervals, report.intervals);
    let talkers = |report: &Report| report.sections.talkers.clone().unwrap();
    assert_eq!(talkers(ours).by_octets, talkers(report).by_octets);
    assert_eq!(ours, report);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn report_and_records_equal_those_of_the_oracle(world in world()) {
        agrees(&world);
    }
}

#[test]
fn the_generated_worlds_cover_all_cases() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut reached = [0; 17];
    for _ in 0..100 {
        let world = world().new_tree(&mut runner).unwrap().current();
        let plan = reference(world.request.clone());
        let (report, records) = naive::report(&plan, &Capture::Bytes(world.file()));
        let (scans, flows) = (report.sections.scans.unwrap(), report.flows.unwrap());
        let udp = report.sections.udp_scans.unwrap();
        let facts = [
            !scans.vertical.is_empty(),
            scans.vertical.iter().any(|scan| scan.sample.len() == 10 && scan.ports > 10),
            scans.horizontal.iter().any(|scan| scan.sample.len() == 10 && scan.targets > 10),
            flows.end_reasons["idle"] > 0,
            flows.end_reasons["active"] > 0,
            flows.end_reasons["end_detected"] > 0,
            report.packets.fragments > 0 && report.packets.truncated > 0,
            report.intervals.is_some_and(|intervals| intervals.len() > 3),
            report.packets.non_ip > 0 && report.packets.ipv6 > 0,
            records.iter().any(|record| record.packets[0] > 3 && record.packets[1] > 3),
            records.iter().any(|record| record.path.tunnel.is_some()),
            records.iter().any(|record| record.reverse_path.is_some()),
            records.iter().any(|record| record.packets[1] > 0 && record.reverse_path.is_none()),
            report.packets.inner > 0 && records.iter().any(|record| record.key.protocol == 47),
            udp.vertical.iter().any(|scan| scan.ports > 1),
            udp.horizontal.iter().any(|scan| scan.targets > 1),
            udp.vertical.iter().any(|scan| scan.ports < scan.sample.len() as u64),
        ];
        for (count, fact) in reached.iter_mut().zip(facts) {
            *count += u32::from(fact);
        }
    }
    assert!(reached.iter().all(|&count| count >= 3), "{reached:?}");
}
