//! Every skeleton of streams, as a network over the numbers 0 to n − 1, with the answer that
//! plain iterators give. A new skeleton is a line in `all`.

use ringtap_ring::Kind;
use ringtap_skeleton::stream::{Divided, Network, Options, Policy, Stream};

/// A network whose result is a list; `sorted` if its order is arbitrary.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) network: Network<'static, Vec<u64>>,
    pub(crate) expected: Vec<u64>,
}

pub(crate) fn f(x: u64) -> u64 {
    (x ^ 0x5bd1_e995).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17)
}

fn sorted(network: Network<'static, Vec<u64>>) -> Network<'static, Vec<u64>> {
    network.map(|mut list| {
        list.sort_unstable();
        list
    })
}

/// By worker, then in order: all items of a key met the same worker, in order.
fn keys_stay_together(parts: Vec<Vec<u64>>) -> Vec<u64> {
    let key = |x: &u64| x % 5;
    for part in &parts {
        for wanted in 0..5 {
            assert!(part.iter().filter(|x| key(x) == wanted).is_sorted(), "order within a key");
            let elsewhere = |other: &&Vec<u64>| {
                !std::ptr::eq(*other, part) && other.iter().any(|x| key(x) == wanted)
            };
            let here = part.iter().any(|x| key(x) == wanted);
            assert!(!here || !parts.iter().any(|other| elsewhere(&other)), "a key in two workers");
        }
    }
    parts.concat()
}

fn policies() -> [Policy<'static, u64>; 3] {
    [Policy::RoundRobin, Policy::OnDemand, Policy::by_key(|x| x % 5)]
}

/// Sums of ranges by halving them.
fn halves(range: (u64, u64)) -> Divided<u64, [(u64, u64); 2]> {
    let (from, to) = range;
    if to - from <= 3 {
        return Divided::Solved((from..to).map(f).fold(0, u64::wrapping_add));
    }
    let middle = from + (to - from) / 3;
    Divided::Split([(from, middle), (middle, to)])
}

pub(crate) fn all(n: u64, workers: usize) -> Vec<Case> {
    let source = || Stream::from_iter(0..n);
    let mapped: Vec<u64> = (0..n).map(f).collect();
    let mut unordered = mapped.clone();
    unordered.sort_unstable();
    let numbers: Vec<u64> = (0..n).collect();
    let mut cases = Vec::new();
    let mut case = |name, network, expected: &[u64]| {
        cases.push(Case { name, network, expected: expected.to_vec() });
    };

    case("pipeline", source().map(|x| x + 1).map(|x| f(x - 1)).collect(), &mapped);
    let expand = |x, out: &mut ringtap_skeleton::stream::Outlet<u64>| {
        (0..x % 4).for_each(|copy| out.send(x * 4 + copy));
    };
    let expanded: Vec<u64> =
        (0..n).flat_map(|x| (0..x % 4).map(move |copy| f(x * 4 + copy))).collect();
    case("stage", source().stage(expand).map(f).collect(), &expanded);
    for policy in policies() {
        let farm = source().farm(workers, policy, |_| f).collect();
        case("farm", sorted(farm), &unordered);
    }
    for policy in policies() {
        let farm = source().farm_ordered(workers, policy, |_| f).collect();
        case("ordered farm", farm, &mapped);
    }
    for policy in policies() {
        let lists = source().farm_fold(
            workers,
            policy,
            |_| Vec::new(),
            |mut list: Vec<u64>, x| {
                list.push(f(x));
                list
            },
        );
        case("farm without collector", sorted(lists.map(|lists| lists.concat())), &unordered);
    }
    let keyed = source().farm_fold(
        workers,
        Policy::by_key(|x| x % 5),
        |_| Vec::new(),
        |mut list: Vec<u64>, x| {
            list.push(x);
            list
        },
    );
    case("farm by key", sorted(keyed.map(keys_stay_together)), &numbers);
    let nested = source().farm_of(workers, Policy::OnDemand, move |_, outer| {
        outer.map(|x| x + 1).farm_of(2, Policy::RoundRobin, |_, middle| {
            middle.farm_ordered(2, Policy::OnDemand, |_| |x| x - 1).map(f)
        })
    });
    case("farms in farms", sorted(nested.collect()), &unordered);
    let nothing_inside = source().farm_of(workers, Policy::OnDemand, |_, items| items);
    case("farm of nothing", sorted(nothing_inside.collect()), &numbers);
    let trees =
        source()
            .map(|x| (x * 10, x * 10 + x % 40))
            .divide_and_conquer(workers, halves, |parts| parts.fold(0, u64::wrapping_add));
    let mut sums: Vec<u64> =
        (0..n).map(|x| (x * 10..x * 10 + x % 40).map(f).fold(0, u64::wrapping_add)).collect();
    sums.sort_unstable();
    case("divide and conquer", sorted(trees.collect()), &sums);
    cases
}

pub(crate) fn options(ring: Kind, capacity: usize, batch: usize) -> Options<'static> {
    Options { ring, capacity, batch, ..Options::default() }
}
