//! Tests of the content store against a model that stores everything, and against hostile names.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::forwarder::tables::NameKey;
use crate::packets::{NameBuf, NewData, NewInterest};

const KEY: u64 = 1;

/// A content store, its names' key, and a buffer for results.
struct Store {
    content: ContentStore,
    limit: usize,
    prefixes: Prefixes,
    out: Vec<u8>,
}

impl Store {
    fn new(limit: usize) -> Self {
        let content = ContentStore::new(limit);
        Self { content, limit, prefixes: Prefixes::new(), out: Vec::new() }
    }

    fn put(&mut self, now_ns: u64, wire: &[u8]) {
        let data = Data::read(wire).unwrap();
        assert!(self.prefixes.set(&NameKey::from_seed(KEY), &data.name));
        self.content.put(now_ns, &data, &self.prefixes);
        assert!(self.content.bytes() <= self.limit);
    }

    /// The Data that the store returns.
    fn look_up(
        &mut self,
        now_ns: u64,
        name: &NameBuf,
        prefix: bool,
        fresh: bool,
    ) -> Option<Vec<u8>> {
        let mut wire = Vec::new();
        NewInterest {
            can_be_prefix: prefix,
            must_be_fresh: fresh,
            ..NewInterest::new(name.as_name(), 1)
        }
        .write(&mut wire);
        let interest = Interest::read(&wire).unwrap();
        assert!(self.prefixes.set(&NameKey::from_seed(KEY), &interest.name));
        let Self { content, prefixes, out, .. } = self;
        content.look_up(now_ns, &interest, prefixes, out).then(|| out.clone())
    }

    /// Checks the tree, the queues and the number of used blocks.
    fn check(&self) {
        let ContentStore { blocks, queues, names, len, .. } = &self.content;
        let (mut used, mut data) = (0, 0);
        for (at, node) in blocks.nodes() {
            used += node.blocks();
            data += usize::from(node.has_data());
            assert!(node.has_data() || node.first_child != NONE, "an unused node");
            assert!(names.candidates(node.hash).any(|other| other == at));
            if let Some(freshest) = blocks.get(node.freshest) {
                let (mut below, mut depth) = (node.freshest, freshest.components);
                assert!(freshest.has_data());
                while depth > node.components {
                    assert_eq!(blocks[below].freshest, node.freshest);
                    (below, depth) = (blocks[below].parent, depth - 1);
                }
                assert_eq!(below, at, "a Data below the node");
            }
        }
        assert_eq!((used, data), (blocks.used(), *len));
        assert_eq!(queues.check(blocks), *len);
    }
}

fn data(name: &NameBuf, freshness_ms: u64, size: usize) -> Vec<u8> {
    let mut wire = Vec::new();
    let content = vec![7; size];
    NewData { name: name.as_name(), freshness_ms: Some(freshness_ms), content: &content }
        .write(&mut wire);
    wire
}

/// A name of these components.
fn name(components: &[u8]) -> NameBuf {
    let mut name = NameBuf::default();
    components.iter().for_each(|&component| name.push(&[b'c'; 40][..usize::from(component)]));
    name
}

#[derive(Clone, Debug)]
enum Step {
    Put { name: Vec<u8>, freshness_ms: u64, size: usize },
    LookUp { name: Vec<u8>, prefix: bool, fresh: bool },
    Digest { name: Vec<u8>, right: bool },
    Wait { ms: u64 },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let name = || {
        prop_oneof![
            prop::collection::vec(0..4u8, 1..4),
            prop::collection::vec(0..40u8, 1..8),
            (1..64usize).prop_map(|depth| vec![2; depth]),
        ]
    };
    let put = (name(), prop_oneof![Just(0), 1..100u64], prop_oneof![0..200usize, 0..8_000usize])
        .prop_map(|(name, freshness_ms, size)| Step::Put { name, freshness_ms, size });
    let look_up = (name(), any::<bool>(), any::<bool>())
        .prop_map(|(name, prefix, fresh)| Step::LookUp { name, prefix, fresh });
    let digest = (name(), any::<bool>()).prop_map(|(name, right)| Step::Digest { name, right });
    let wait = (0..60u64).prop_map(|ms| Step::Wait { ms });
    prop::collection::vec(prop_oneof![4 => put, 4 => look_up, 1 => digest, 1 => wait], 1..150)
}

/// Whether an Interest for `asked` can be satisfied by a Data of this name.
fn names_match(asked: &NameBuf, name: &NameBuf, prefix: bool) -> bool {
    asked == name || prefix && asked.as_name().is_prefix_of(&name.as_name())
}

proptest! {
    #[test]
    fn all_found_data_are_valid_and_the_bound_holds(
        steps in steps(), limit in prop_oneof![0..3_000usize, 3_000..40_000usize, Just(8 << 20)],
    ) {
        let mut store = Store::new(limit);
        // By name: the latest Data, and the end of its freshness.
        let mut model: BTreeMap<NameBuf, (Vec<u8>, u64)> = BTreeMap::new();
        let mut now_ns = 1_000_000;
        for step in steps {
            match step {
                Step::Wait { ms } => now_ns += ms * 1_000_000,
                Step::Put { name: components, freshness_ms, size } => {
                    let (name, before) = (name(&components), store.content.evicted());
                    let wire = data(&name, freshness_ms, size);
                    let fits = components.len() + Blocks::chunks_of(wire.len());
                    store.put(now_ns, &wire);
                    if fits <= store.content.blocks.capacity() {
                        let until_ns = if freshness_ms == 0 { 0 } else { now_ns + freshness_ms * 1_000_000 };
                        model.insert(name.clone(), (wire.clone(), until_ns));
                        prop_assert_eq!(store.look_up(now_ns, &name, false, false), Some(wire));
                    } else {
                        // The older Data of this name, if any, stays.
                        prop_assert_eq!(store.content.evicted(), before);
                    }
                }
                Step::LookUp { name: components, prefix, fresh } => {
                    let asked = name(&components);
                    let valid = |(name, (_, until_ns)): &(&NameBuf, &(Vec<u8>, u64))| {
                        names_match(&asked, name, prefix) && (!fresh || *until_ns > now_ns)
                    };
                    let mut expected = model.iter().filter(valid);
                    match store.look_up(now_ns, &asked, prefix, fresh) {
                        Some(found) => prop_assert!(expected.any(|(_, (wire, _))| *wire == found)),
                        // A walk visits only a part of a large tree.
                        None if limit == 8 << 20 && !prefix => prop_assert_eq!(expected.count(), 0),
                        None => {}
                    }
                }
                Step::Digest { name: components, right } => {
                    let mut asked = name(&components);
                    let stored = model.get(&asked).map(|(wire, _)| wire.clone());
                    let mut digest = stored.as_ref().map_or([0; 32], |wire| Data::read(wire).unwrap().digest());
                    digest[31] ^= u8::from(!right);
                    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
                    asked = format!("{asked}/sha256digest={hex}").parse().unwrap();
                    match store.look_up(now_ns, &asked, false, false) {
                        Some(found) => prop_assert_eq!((Some(found), right), (stored, true)),
                        None if limit == 8 << 20 => prop_assert!(stored.is_none() || !right),
                        None => {}
                    }
                }
            }
            store.check();
        }
    }
}

#[test]
fn tiny_data_fill_the_store_to_its_bound() {
    let mut store = Store::new(1 << 20);
    for number in 0..50_000_u32 {
        let mut name = NameBuf::default();
        name.push(&number.to_be_bytes());
        store.put(0, &data(&name, 0, 0));
    }
    store.check();
    assert!(store.content.bytes() > (1 << 20) - 1_000, "{}", store.content.bytes());
    assert!(store.content.evicted() > 40_000);
}

#[test]
fn names_of_64_components_take_their_part_of_the_bound() {
    let mut store = Store::new(1 << 20);
    let mut name = NameBuf::default();
    for number in 0..3_000_u32 {
        name.truncate(0);
        // All different from the first component on, or all of one prefix of 63 components.
        let first = if number % 2 == 0 { number } else { 1 };
        name.push(&first.to_be_bytes());
        (0..62_u8).for_each(|component| name.push(&[component]));
        name.push(&number.to_be_bytes());
        store.put(0, &data(&name, 0, 10));
        assert!(store.look_up(0, &name, false, false).is_some());
        let mut top = NameBuf::default();
        top.push(&first.to_be_bytes());
        assert!(store.look_up(0, &top, true, false).is_some(), "64 nodes are visited");
    }
    store.check();
}

#[test]
fn a_fresh_data_is_found_below_a_prefix_of_a_million_stale_children() {
    let mut store = Store::new(512 << 20);
    let mut name: NameBuf = "/a".parse().unwrap();
    let top = name.clone();
    let len = name.as_bytes().len();
    let mut put = |number: u32, freshness_ms: u64| {
        name.truncate(len);
        name.push(&number.to_be_bytes());
        let wire = data(&name, freshness_ms, 0);
        store.put(0, &wire);
        wire
    };
    put(0, 5);
    let fresh = put(1, 1_000);
    let mut last = Vec::new();
    (2..1_000_000).for_each(|number| last = put(number, u64::from(number % 3)));
    assert_eq!(store.content.len(), 1_000_000);
    assert_eq!(store.look_up(10_000_000, &top, true, true), Some(fresh));
    assert_eq!(store.look_up(10_000_000, &top, true, false), Some(last));
    assert_eq!(store.look_up(1_000_000_000, &top, true, true), None);
}

#[test]
fn an_eviction_moves_a_bounded_number_of_data() {
    let mut store = Store::new(1 << 20);
    let names: Vec<NameBuf> = (0..10_000).map(|n| format!("/{n}").parse().unwrap()).collect();
    let (first, others) = names.split_at(2_000);
    let in_main = |store: &Store| {
        let is_in_main = |node: &Node| node.has_data() && node.queue == Queue::Main;
        store.content.blocks.nodes().filter(|(_, node)| is_in_main(node)).count()
    };
    // All Data are used as often as the counter holds, so all may move to the main queue.
    for name in first {
        store.put(0, &data(name, 0, 10));
        (0..3).for_each(|_| assert!(store.look_up(0, name, false, false).is_some()));
    }
    let mut others = others.iter();
    while store.content.evicted() == 0 {
        assert_eq!(in_main(&store), 0);
        store.put(0, &data(others.next().unwrap(), 0, 10));
    }
    let moved = in_main(&store) as u64;
    assert!((32..=64 * store.content.evicted()).contains(&moved), "{moved}");
    // After enough evictions, the used Data are in the main queue, and a scan does not evict them.
    others.for_each(|name| store.put(0, &data(name, 0, 10)));
    store.check();
    let found = first.iter().filter(|name| store.look_up(0, name, false, false).is_some()).count();
    assert!(found > 1_900, "{found}");
}
