//! Property tests: for any input in any order, all designs send the same packets as a single forwarder.

use std::collections::HashMap;

use proptest::prelude::{
    ProptestConfig, Strategy as _, prop, prop_assert_eq, prop_oneof, proptest,
};
use ringtap_ndn::forwarder::{FaceId, Forwarder, Settings, Strategy};
use ringtap_ndn::packets::{Headers, NackReason, PitToken};

use crate::designs;
use crate::support::{
    A, APP, B, Design, MS, Outgoing, RADIO, UP, UP2, collect, data_with, faces, interest, name,
};

/// A step of the input.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Interest {
        from: FaceId,
        name: &'static str,
        nonce: u32,
        flags: u8,
        lifetime_ms: u64,
        hops: u8,
    },
    /// A Data with the PIT token of an earlier sent Interest, if there was one; `token` counts back
    /// from the last.
    Data {
        from: FaceId,
        name: &'static str,
        freshness_ms: u64,
        token: usize,
    },
    /// A Nack for an earlier sent Interest; `back` counts back from the last.
    Nack {
        back: usize,
        reason: NackReason,
    },
    /// Milliseconds that pass.
    Wait(u64),
}

const NAMES: [&str; 10] =
    ["/a", "/a/b", "/a/b/c", "/b", "/b/x", "/c/1", "/c/2", "/d", "/localhop/a", "/localhost/a"];

/// Steps for forwarders with several workers. An Interest without a lifetime ends when its entry is
/// next used, by any packet of its shard; so its end is not the same for all numbers of shards.
pub(crate) fn lasting_steps() -> impl proptest::strategy::Strategy<Value = Vec<Step>> {
    steps().prop_map(|mut steps| {
        for step in &mut steps {
            if let Step::Interest { lifetime_ms, .. } = step {
                *lifetime_ms = (*lifetime_ms).max(1);
            }
        }
        steps
    })
}

pub(crate) fn steps() -> impl proptest::strategy::Strategy<Value = Vec<Step>> {
    let face = || prop::sample::select(vec![A, B, UP, UP2, APP, RADIO]);
    let name = || prop::sample::select(NAMES.to_vec());
    let reason = prop::sample::select(vec![NackReason::Congestion, NackReason::NoRoute]);
    let interest =
        (face(), name(), 0..40u32, 0..4u8, prop::sample::select(vec![0, 5, 50, 4000]), 0..4u8)
            .prop_map(|(from, name, nonce, flags, lifetime_ms, hops)| Step::Interest {
                from,
                name,
                nonce,
                flags,
                lifetime_ms,
                hops,
            });
    let data = (face(), name(), prop::sample::select(vec![0, 20, 10_000]), 0..6usize).prop_map(
        |(from, name, freshness_ms, token)| Step::Data { from, name, freshness_ms, token },
    );
    let nack = (0..4usize, reason).prop_map(|(back, reason)| Step::Nack { back, reason });
    let wait = prop::sample::select(vec![1, 3, 10, 100, 7_000]).prop_map(Step::Wait);
    prop::collection::vec(prop_oneof![6 => interest, 4 => data, 1 => nack, 2 => wait], 1..120)
}

/// A forwarder of any design: takes a received packet, returns the packets that it sends.
pub(crate) type Take<'a> = Box<dyn FnMut(u64, FaceId, &Headers, &[u8]) -> Vec<Outgoing> + 'a>;

pub(crate) fn settings() -> Settings {
    // No table may become full: the designs differ in when that happens.
    Settings { pit_capacity: 2048, cs_bytes: 4 << 20, dead_nonces: 1 << 14, ..Settings::default() }
}

/// Configures a forwarder of any design with the same faces, routes and strategies.
pub(crate) fn configured<D: Design + ?Sized>(mut forwarder: Box<D>) -> Box<D> {
    faces().into_iter().for_each(|(id, face)| forwarder.set_face(id, face));
    let mut none = |_: FaceId, _: &Headers, _: &[u8]| ();
    for (prefix, face, cost) in
        [("/", UP, 10), ("/", UP2, 20), ("/b", B, 1), ("/c", A, 1), ("/c", UP, 2), ("/c", RADIO, 3)]
    {
        forwarder.add_route(0, &name(prefix).as_name(), face, cost, &mut none);
    }
    forwarder.set_strategy(&name("/c").as_name(), Strategy::Multicast);
    forwarder
}

/// The reference.
pub(crate) fn single<'a>(settings: Settings) -> Take<'a> {
    of(Box::new(Forwarder::new(settings)))
}

/// A forwarder of a design.
pub(crate) fn of<'a, D: Design + ?Sized + 'a>(forwarder: Box<D>) -> Take<'a> {
    let mut forwarder = configured(forwarder);
    Box::new(move |now, from, headers, wire| {
        collect(|out| forwarder.take(now, from, headers, wire, out))
    })
}

/// The packets that are sent in each step. PIT tokens differ between designs, so they are
/// renumbered in order.
pub(crate) fn run(steps: &[Step], mut take: Take<'_>) -> Vec<Vec<Outgoing>> {
    let mut now = 1_700_000_000_000 * MS;
    let mut sent: Vec<Outgoing> = Vec::new();
    let mut numbers: HashMap<PitToken, u64> = HashMap::new();
    let mut all = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        let with_token = |headers: Headers| Headers {
            token: PitToken::new(&at.to_be_bytes()).unwrap(),
            ..headers
        };
        let mut outgoing = match step {
            Step::Interest { from, name, nonce, flags, lifetime_ms, hops } => {
                let mut request = interest(name).nonce(*nonce).lifetime(*lifetime_ms);
                (request.can_be_prefix, request.must_be_fresh) = (flags & 1 > 0, flags & 2 > 0);
                request.hop_limit = (*hops < 3).then_some(*hops);
                take(now, *from, &with_token(Headers::default()), &request.wire())
            }
            Step::Data { from, name, freshness_ms, token } => {
                let back = sent.len().checked_sub(1 + token).map(|at| sent[at].headers.token);
                let headers = Headers { token: back.unwrap_or_default(), ..Headers::default() };
                take(now, *from, &headers, &data_with(name, Some(*freshness_ms), &at.to_be_bytes()))
            }
            Step::Nack { back, reason } => match sent.len().checked_sub(1 + back) {
                Some(at) => {
                    let Outgoing { face, wire, .. } = sent[at].clone();
                    take(now, face, &Headers { nack: Some(*reason), ..Headers::default() }, &wire)
                }
                None => Vec::new(),
            },
            Step::Wait(ms) => {
                now += ms * MS;
                Vec::new()
            }
        };
        for packet in &mut outgoing {
            if packet.text().starts_with("Interest") {
                sent.push(packet.clone());
                let next = numbers.len() as u64;
                let number = *numbers.entry(packet.headers.token).or_insert(next);
                packet.headers.token = PitToken::new(&number.to_be_bytes()).unwrap();
            }
        }
        all.push(outgoing);
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn all_designs_send_the_same_packets(steps in lasting_steps()) {
        let settings = settings();
        let reference = run(&steps, single(settings.clone()));
        let settings = Settings { dispatch_components: 1, ..settings };
        for (what, design) in designs::of(&settings, &[1, 2, 3, 4, 5, 6, 7]) {
            prop_assert_eq!(&run(&steps, of(design)), &reference, "{}", what);
        }
    }

    /// Shards divide the share of a face, and a worker removes expired entries only when it gets a
    /// packet. So single workers refuse the same Interests as the reference.
    #[test]
    fn a_share_of_the_pit_is_the_same_in_all_designs(steps in lasting_steps(), share in 1..6_usize) {
        let settings = Settings { pit_per_face: Some(share), ..settings() };
        let reference = run(&steps, single(settings.clone()));
        for (what, design) in designs::of(&settings, &[1]) {
            prop_assert_eq!(&run(&steps, of(design)), &reference, "{}", what);
        }
    }

    /// A share that no face reaches has no effect, for any number of parts.
    #[test]
    fn a_share_that_is_not_reached_changes_nothing(steps in lasting_steps()) {
        let reference = run(&steps, single(settings()));
        let settings = Settings { pit_per_face: Some(1_000), dispatch_components: 1, ..settings() };
        for (what, design) in designs::of(&settings, &[2, 3, 5, 7]) {
            prop_assert_eq!(&run(&steps, of(design)), &reference, "{}", what);
        }
    }
}
