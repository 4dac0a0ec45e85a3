//! Requirements of RFC 7011, 5103 and 3954 that no other test proves. docs/CONFORMANCE.md names the tests of all.

use std::collections::{BTreeMap, BTreeSet};

use ringtap_export::encode::{Encoder, Ipfix, NetFlow9, Progress, UDP_LIMIT};
use ringtap_export::{RecordTotals, Sampling};

use crate::collectors::records;
use crate::common::{answered, encode, needed};
use crate::facts::{Element, Reader, layouts};

/// The enterprise number of reverse elements.
const REVERSE: u32 = 29_305;

/// A template: the number of its scope fields, and its fields with their lengths.
#[derive(PartialEq)]
struct Template {
    scopes: u16,
    fields: Vec<(Element, u16)>,
}

type Templates = BTreeMap<u16, Template>;

/// Reads the sets of a message; each must consist of whole records, and nothing else.
fn read(message: &[u8], templates: &mut Templates) {
    assert_eq!(message[2..4], (message.len() as u16).to_be_bytes());
    let mut sets = Reader(&message[16..]);
    while !sets.0.is_empty() {
        let (number, len) = (sets.half(), sets.half());
        let mut set = Reader(sets.take(usize::from(len) - 4));
        assert!(!set.0.is_empty(), "a set without records");
        while !set.0.is_empty() {
            match number {
                2 | 3 => {
                    let (id, count) = (set.half(), set.half());
                    let scopes = if number == 3 { set.half() } else { 0 };
                    let fields = (0..count).map(|_| set.specifier()).collect();
                    let template = Template { scopes, fields };
                    assert!(id >= 256 && count > 0, "{id}: {count} fields");
                    assert!(scopes <= count && (number == 2 || scopes > 0), "{id}: {scopes}");
                    let known = templates.insert(id, template);
                    assert!(known.is_none_or(|known| known == templates[&id]), "{id} changed");
                }
                256.. => {
                    let fields = &templates[&number].fields;
                    fields.iter().for_each(|(_, len)| _ = set.value(*len));
                }
                _ => panic!("set {number} is reserved"),
            }
        }
    }
}

/// The templates that records of all kinds need, and those of options; of runs with statistics of packets or without.
fn templates(statistics: bool) -> Templates {
    let mut all = Templates::new();
    for sampling in [Sampling::Random(100), Sampling::Systematic(100)] {
        let encoder = Ipfix::new(7, 1, UDP_LIMIT).with_ingress(true).with_parts(true);
        let encoder = encoder.with_statistics(statistics).with_entropy(statistics);
        let encoded = encode(&mut encoder.sampled(Some(sampling)), &records());
        assert!(encoded.refused.is_empty());
        encoded.messages.iter().for_each(|message| read(message, &mut all));
    }
    all
}

#[test]
fn a_set_has_records_of_one_kind_and_no_padding() {
    let all = templates(false);
    // Each layout of facts, 64 templates without facts, those of answered flows with two paths, and those of options.
    let with_facts = all.keys().filter(|id| **id >= 512).map(|id| id >> 8);
    assert_eq!(with_facts.collect::<BTreeSet<_>>(), (2..11).collect());
    assert_eq!(all.keys().filter(|id| **id < 320).count(), 64);
    assert_eq!(all.keys().filter(|id| (384..512).contains(*id)).count(), 24);
    assert_eq!(all.values().filter(|template| template.scopes > 0).count(), 6);
}

#[test]
fn addresses_times_and_fractions_have_all_octets_of_their_types() {
    let lengths = BTreeMap::from([
        // IPv4, IPv6 and Ethernet addresses.
        (8, 4),
        (12, 4),
        (27, 16),
        (28, 16),
        (56, 6),
        (80, 6),
        // Milliseconds.
        (152, 8),
        (153, 8),
        // A probability, float64.
        (311, 8),
    ]);
    let mut seen = BTreeSet::new();
    for template in templates(false).values().chain(templates(true).values()) {
        for ((enterprise, id), len) in &template.fields {
            if let Some(full) = lengths.get(id).filter(|_| [0, REVERSE].contains(enterprise)) {
                assert_eq!(len, full, "{id}");
                seen.insert(*id);
            }
        }
    }
    assert!(seen.iter().eq(lengths.keys()), "{seen:?}");
}

#[test]
fn reverse_elements_repeat_forward_ones_that_have_a_direction() {
    // The key: the reverse direction has the same, exchanged.
    let key = [4, 7, 8, 11, 12, 27, 28];
    // Identifiers of the whole flow or process, padding, and the method by which the direction was found.
    let of_both = [137, 145, 148, 149, 210, 239];
    // The configuration and the counters of processes.
    let of_processes = [40, 41, 42, 130, 131, 163, 164, 165, 166, 167, 168, 173];
    let more = 211..=217;
    let without: BTreeSet<u16> =
        [&key[..], &of_both, &of_processes].concat().into_iter().chain(more).collect();
    let mut biflows = 0;
    for Template { fields, .. } in templates(false).values().chain(templates(true).values()) {
        let reverse: Vec<_> = fields.iter().filter(|((pen, _), _)| *pen == REVERSE).collect();
        for ((_, id), len) in &reverse {
            assert!(!without.contains(id), "{id} has no direction");
            assert!(fields.contains(&((0, *id), *len)), "{id}");
        }
        biflows += usize::from(!reverse.is_empty());
        assert_eq!(reverse.is_empty(), !fields.contains(&((0, 239), 1)), "biflowDirection");
    }
    assert!(biflows > 32);
}

#[test]
fn times_never_decrease_and_templates_are_not_newer_than_their_data() {
    let mut main = Ipfix::new(7, 1, UDP_LIMIT);
    let mut sent = main.announcement();
    // Messages of several workers: each record is a minute older than the one before, and has another template.
    for (record, minutes) in layouts(&answered()).iter_mut().zip(0..) {
        record.last_ns -= minutes * 60_000_000_000;
        record.first_ns = record.last_ns;
        let mut worker = Ipfix::new(7, 1, UDP_LIMIT);
        worker.add(record, &mut RecordTotals::default()).unwrap();
        let sealed = worker.seal().unwrap();
        let (mut message, flows) = (sealed.bytes.to_vec(), sealed.flows);
        main.learn(&message);
        sent.extend(main.missing(&needed(&worker), 2));
        main.stamp(&mut message, flows);
        sent.push(message);
    }
    sent.extend(main.statistics(&Progress::default()));
    sent.extend(main.farewell());
    let time = |message: &Vec<u8>| u32::from_be_bytes(message[4..8].try_into().unwrap());
    assert!(sent.iter().map(time).is_sorted());
    // Withdrawals are templates without fields.
    let (withdrawals, before) = sent.split_last().unwrap();
    assert_eq!(withdrawals[16..18], [0, 2]);
    let mut known = Templates::new();
    before.iter().for_each(|message| read(message, &mut known));
    assert!(known.len() > 64 + 6);
}

#[test]
fn netflow9_templates_have_own_numbers_which_do_not_change() {
    let mut encoder = NetFlow9::new(7, UDP_LIMIT).sampled(Some(Sampling::Random(9)));
    let mut announced = || {
        let mut all = BTreeMap::new();
        for message in encoder.announcement() {
            let mut sets = Reader(&message[20..]);
            while !sets.0.is_empty() {
                let (number, len) = (sets.half(), sets.half());
                let mut set = Reader(sets.take(usize::from(len) - 4));
                while number == 0 && set.0.len() >= 4 {
                    let (id, count) = (set.half(), set.half());
                    let fields = set.take(4 * usize::from(count)).to_vec();
                    assert!(id >= 256 && all.insert(id, fields).is_none(), "{id}");
                }
            }
        }
        all
    };
    let first = announced();
    assert!(first.len() > 16 && first == announced());
}
