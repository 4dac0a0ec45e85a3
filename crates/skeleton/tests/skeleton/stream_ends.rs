//! How streams end: in order, early, by a stop request, by errors and panics; and that nothing is
//! leaked or dropped twice.

use std::ops::ControlFlow::{Break, Continue};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};
use std::task::Poll;
use std::time::Duration;

use ringtap_base::Usage;
use ringtap_ring::Kind;
use ringtap_skeleton::stream::{Divided, Network, Options, Outlet, Policy, Stream};
use ringtap_skeleton::{RunError, Wait};

/// Counts its live instances.
struct Token<'a>(u64, &'a AtomicI64);

impl<'a> Token<'a> {
    fn new(number: u64, alive: &'a AtomicI64) -> Self {
        alive.fetch_add(1, Relaxed);
        Self(number, alive)
    }
}

impl Drop for Token<'_> {
    fn drop(&mut self) {
        self.1.fetch_sub(1, Relaxed);
    }
}

fn tokens(alive: &AtomicI64) -> Stream<'_, Token<'_>> {
    Stream::from_iter((0u64..).map(move |number| Token::new(number, alive)))
}

/// Endless streams through every skeleton, to a configurable sink.
fn skeletons<'a>(
    alive: &'a AtomicI64,
    sink: impl Fn(Stream<'a, Token<'a>>) -> Network<'a, ()>,
) -> Vec<Network<'a, ()>> {
    let same = |_: usize| |token: Token<'a>| token;
    let thirds = move |token: Token<'a>| {
        if token.0.is_multiple_of(1_000_000) {
            let part = |n| Token::new(token.0 + n, token.1);
            Divided::Split([part(1), part(2), part(3)])
        } else {
            Divided::Solved(token)
        }
    };
    let last = |parts: &mut dyn Iterator<Item = Token<'a>>| parts.last().expect("three");
    vec![
        sink(tokens(alive)),
        sink(tokens(alive).map(|token| token)),
        sink(tokens(alive).farm(3, Policy::OnDemand, same)),
        sink(tokens(alive).farm_ordered(3, Policy::RoundRobin, same)),
        sink(tokens(alive).farm_of(2, Policy::by_key(|t: &Token| t.0), move |_, tokens| {
            tokens.farm(2, Policy::RoundRobin, same)
        })),
        sink(tokens(alive).stage(|token, out: &mut Outlet<Token<'a>>| {
            // More than any ring holds here: some wait in the stage.
            (0..20).for_each(|n| out.send(Token::new(token.0 + n, token.1)));
        })),
        sink(tokens(alive).divide_and_conquer(3, thirds, last)),
    ]
}

/// Runs and simulates all, and counts what is left.
fn each(
    sink: impl for<'a> Fn(Stream<'a, Token<'a>>) -> Network<'a, ()>,
    check: impl Fn(Result<(), RunError>),
) {
    for ring in Kind::ALL {
        for capacity in [1, 16] {
            let options = Options { ring, capacity, batch: 4, ..Options::default() };
            let alive = AtomicI64::new(0);
            for network in skeletons(&alive, &sink) {
                check(network.run(&options).map(|run| run.result));
                assert_eq!(alive.load(Relaxed), 0, "{options:?}");
            }
            for (seed, network) in (0..).zip(skeletons(&alive, &sink)) {
                check(network.simulate(&options, seed).map(|run| run.result));
                assert_eq!(alive.load(Relaxed), 0, "simulated {options:?}");
            }
        }
    }
}

fn after(count: u64) -> impl FnMut() -> bool + Send {
    let mut seen = 0;
    move || {
        seen += 1;
        seen == count
    }
}

#[test]
fn a_sink_that_has_enough_ends_the_run() {
    each(
        |stream| {
            let mut last = after(100);
            stream.for_each(move |_| if last() { Break(()) } else { Continue(()) })
        },
        |result| result.unwrap(),
    );
}

#[test]
fn an_error_ends_the_run_with_the_nodes_name() {
    each(
        |stream| {
            let mut last = after(100);
            stream.for_each(move |_| if last() { Err("enough of this") } else { Ok(()) })
        },
        |result| match result.unwrap_err() {
            RunError::Failed { node, error } => {
                assert!(node.starts_with("for_each"), "{node}");
                assert_eq!(error.to_string(), "enough of this");
            }
            other => panic!("{other}"),
        },
    );
}

#[test]
fn a_panic_ends_the_run_with_the_nodes_name() {
    each(
        |stream| {
            let mut last = after(100);
            stream.for_each(move |_| assert!(!last(), "this one is too much"))
        },
        |result| match result.unwrap_err() {
            RunError::Panicked { node, message } => {
                assert!(node.starts_with("for_each"), "{node}");
                assert_eq!(message, "this one is too much");
            }
            other => panic!("{other}"),
        },
    );
}

#[test]
fn a_panic_in_a_worker_names_the_worker() {
    let names = |network: Network<'_, Vec<u64>>| match network.run(&Options::default()) {
        Err(RunError::Panicked { node, .. }) => node,
        other => panic!("{other:?}"),
    };
    let fail = |x: u64| if x == 777 { panic!("requested panic") } else { x };
    let farm = Stream::from_iter(0..).farm(2, Policy::RoundRobin, move |_| fail).collect();
    assert_eq!(names(farm), "farm 1 worker 1: map 1");
    let tree = Stream::from_iter([1_000]).divide_and_conquer(
        2,
        move |x| if x < 700 { Divided::Solved(x) } else { Divided::Split([fail(x) - 1]) },
        |parts| parts.sum(),
    );
    assert!(names(tree.collect()).starts_with("divide and conquer 1 worker"));
}

#[test]
fn the_first_error_is_the_one_reported() {
    let run = Stream::from_iter(["1", "x", "y"])
        .try_map(str::parse::<i8>)
        .try_map(|n| if n > 100 { Err("too large") } else { Ok(n) })
        .collect()
        .run(&Options { cores: 1, ..Options::default() });
    let error = run.unwrap_err();
    assert_eq!(error.to_string(), "map 1 failed: invalid digit found in string");
}

#[test]
fn items_in_flight_are_handled_after_a_stop() {
    let stop = AtomicBool::new(false);
    let made = AtomicU64::new(0);
    let source = std::iter::repeat_with(|| made.fetch_add(1, Relaxed));
    let stop_at_500 = |n| {
        if n == 500 {
            stop.store(true, Relaxed);
        }
        n
    };
    let run = Stream::from_iter(source)
        .farm_ordered(2, Policy::OnDemand, |_| stop_at_500)
        .collect()
        .run(&Options { stop: Some(&stop), ..Options::default() })
        .unwrap();
    assert!(run.result.len() > 500);
    assert_eq!(run.result, (0..made.load(Relaxed)).collect::<Vec<_>>());
}

#[test]
fn a_worker_that_has_enough_leaves_the_others_theirs() {
    for policy in [Policy::RoundRobin, Policy::OnDemand, Policy::by_key(|&x| x)] {
        let handled = AtomicU64::new(0);
        Stream::from_iter(0..10_000u64)
            .farm_for_each(3, policy, |worker| {
                let handled = &handled;
                move |_| {
                    handled.fetch_add(1, Relaxed);
                    if worker == 0 { Break(()) } else { Continue(()) }
                }
            })
            .run(&Options { capacity: 8, ..Options::default() })
            .unwrap();
        // Items in flight to the first worker are dropped, as are those of its keys.
        assert!(handled.load(Relaxed) > 5_000);
    }
}

#[test]
fn items_held_by_a_stage_leave_at_the_end() {
    /// Everything, backwards.
    #[derive(Default)]
    struct Reverse(Vec<u64>);
    impl ringtap_skeleton::stream::Stage for Reverse {
        type In = u64;
        type Out = u64;
        fn on_item(&mut self, x: u64, _: &mut Outlet<u64>) -> ringtap_skeleton::stream::Flow {
            self.0.push(x);
            Ok(if x == 999 { Break(()) } else { Continue(()) })
        }
        fn on_end(&mut self, out: &mut Outlet<u64>) -> ringtap_skeleton::stream::Flow {
            self.0.drain(..).rev().for_each(|x| out.send(x));
            Ok(Continue(()))
        }
    }
    for source in [0..500u64, 0..u64::MAX] {
        let until = source.end.min(1_000);
        let options = Options { capacity: 3, ..Options::default() };
        let run = Stream::from_iter(source).add_stage(Reverse::default()).collect().run(&options);
        assert_eq!(run.unwrap().result, (0..until).rev().collect::<Vec<_>>());
    }
}

/// A source that has an item every few milliseconds: the other threads sleep, each item arrives,
/// and little CPU time is spent.
#[test]
fn waiting_for_a_slow_source_costs_next_to_nothing() {
    let mut items = 0;
    let source = move || {
        items += 1;
        std::thread::sleep(Duration::from_millis(5));
        Poll::Ready((items <= 60).then_some(items))
    };
    let before = Usage::now();
    let run = Stream::from_poll(source)
        .farm_ordered(2, Policy::OnDemand, |_| |x: u64| x * 2)
        .collect()
        .run(&Options { wait: Wait::Park, cores: 4, ..Options::default() })
        .unwrap();
    let after = Usage::now();
    assert_eq!(run.result, (1..=60).map(|x| x * 2).collect::<Vec<_>>());
    // Other tests run in this process at the same time, so the nodes' own counters are used.
    assert!(run.nodes.iter().all(|node| node.steps < 60 * 3_000), "{:#?}", run.nodes);
    assert!(after.wall_s - before.wall_s >= 0.3);
}

#[test]
fn a_source_without_items_is_polled_again() {
    let mut polls = 0u64;
    let source = move || {
        polls += 1;
        match polls {
            n if n > 3_000 => Poll::Ready(None),
            n if n % 3 == 0 => Poll::Ready(Some(n)),
            _ => Poll::Pending,
        }
    };
    for wait in [Wait::Spin, Wait::Yield, Wait::Park] {
        let options = Options { wait, cores: 2, ..Options::default() };
        let run = Stream::from_poll(source).map(|x| x / 3).collect().run(&options);
        assert_eq!(run.unwrap().result, (1..=1_000).collect::<Vec<_>>());
    }
}
