//! Property tests of shards and bursts: for any input in any order, they send the same packets as a single forwarder.

use std::collections::{BTreeMap, VecDeque};

use crate::designs;
use crate::steps::{configured, lasting_steps, of, run, settings, single, steps};
use crate::support::{A, B, MS, Outgoing, UP, collect, data_with, interest};
use proptest::prelude::{ProptestConfig, prop, prop_assert_eq, proptest};
use proptest::strategy::{Strategy as _, ValueTree as _};
use ringtap_base::SplitMix;
use ringtap_ndn::forwarder::{Dispatch, FaceId, Forwarder, Notice, Parallel, Settings};
use ringtap_ndn::packets::{Headers, Packet};

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    /// Short prefixes are known in all shards. Without content stores, because only one shard looks
    /// for a short prefix in its store.
    #[test]
    fn any_number_of_hashed_components_sends_the_same_packets(steps in lasting_steps(), components in 2..5_usize) {
        let settings = Settings { cs_bytes: 0, dispatch_components: components, ..settings() };
        let reference = run(&steps, single(settings.clone()));
        for (what, design) in designs::of(&settings, &[1, 2, 3, 4, 5, 6, 7]) {
            prop_assert_eq!(&run(&steps, of(design)), &reference, "{}", what);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_burst_sends_the_same_packets_as_single_calls(
        steps in steps(),
        most in 1..70_usize,
        share in prop::option::of(1..6_usize),
    ) {
        let settings = Settings { pit_per_face: share, ..settings() };
        let (mut received, mut outgoing) = (Vec::new(), Vec::new());
        let mut one_by_one = single(settings.clone());
        run(&steps, Box::new(|now, from, headers, wire| {
            received.push((now, from, *headers, wire.to_vec()));
            // The following steps use the packets that were sent.
            let sent_now = one_by_one(now, from, headers, wire);
            outgoing.extend_from_slice(&sent_now);
            sent_now
        }));
        let mut forwarder = configured(Box::new(Forwarder::new(settings)));
        let together = collect(|out| {
            for at_a_time in received.chunk_by(|a, b| a.0 == b.0) {
                for burst in at_a_time.chunks(most) {
                    let burst: Vec<_> = burst.iter().map(|(_, f, h, w)| (*f, h, &w[..])).collect();
                    forwarder.burst(at_a_time[0].0, &burst, &mut |f, h: &Headers, w: &[u8]| out(f, h, w));
                }
            }
        });
        prop_assert_eq!(together, outgoing);
    }
}

/// A received packet: its time, face, headers and bytes.
#[derive(Clone)]
struct Received {
    now_ns: u64,
    from: FaceId,
    headers: Headers,
    wire: Vec<u8>,
}

/// A message on its way to a worker.
enum Message {
    Packet(Received),
    Notice(Notice),
}

/// Workers with their queues, as in the relay. A seed decides who runs next.
struct Schedule {
    workers: Vec<Forwarder>,
    dispatch: Dispatch,
    queues: Vec<VecDeque<Message>>,
    /// Notices that the main thread has not collected.
    notices: Vec<(usize, Notice)>,
    sent: Vec<Outgoing>,
    /// The names of a Data or a Nack that may not be handled yet.
    answered: Option<String>,
    random: SplitMix,
}

impl Schedule {
    fn new(settings: &Settings, workers: usize, seed: u64) -> Self {
        let parallel = *configured(Box::new(Parallel::new(settings, workers)));
        Self {
            dispatch: parallel.dispatch().clone(),
            workers: parallel.into_workers(),
            queues: (0..workers).map(|_| VecDeque::new()).collect(),
            notices: Vec::new(),
            sent: Vec::new(),
            answered: None,
            random: SplitMix::new(seed),
        }
    }

    /// Passes a packet to its worker, after the collected notices.
    fn dispatch(&mut self, packet: Received) {
        // An answer comes after the Interests before it: one that is handled later begins an entry of its own.
        let family = family(&packet.wire);
        // Two Data at the same time may both answer a short prefix, and an Interest at the same time
        // may come before or after.
        if self.answered.as_ref() == Some(&family) {
            self.run_to_end();
            self.answered = None;
        }
        if !is_interest(&packet.headers, &packet.wire) {
            if self.answered.replace(family).is_some() {
                self.run_to_end();
            }
            for worker in 0..self.workers.len() {
                while self.queues[worker].iter().any(Message::is_interest) {
                    self.run_one(worker);
                }
            }
        }
        self.collect();
        let worker = self.dispatch.worker_of(packet.from, &packet.wire);
        self.queues[worker].push_back(Message::Packet(packet));
    }

    /// Some workers handle some messages.
    fn run_some(&mut self) {
        for _ in 0..self.random.below(6) {
            let worker = self.random.below(self.workers.len() as u64) as usize;
            self.run_one(worker);
        }
    }

    /// All workers handle all messages and the notices that result.
    fn run_to_end(&mut self) {
        loop {
            (0..self.workers.len()).for_each(|worker| while self.run_one(worker) {});
            if self.notices.is_empty() {
                return;
            }
            self.collect();
        }
    }

    /// Passes notices on to the other workers.
    fn collect(&mut self) {
        for (worker, notice) in std::mem::take(&mut self.notices) {
            for other in (0..self.workers.len()).filter(|&other| other != worker) {
                self.queues[other].push_back(Message::Notice(notice.clone()));
            }
        }
    }

    fn run_one(&mut self, worker: usize) -> bool {
        match self.queues[worker].pop_front() {
            None => return false,
            Some(message) => {
                let forwarder = &mut self.workers[worker];
                let sent = collect(|out| {
                    let mut out = |f, h: &Headers, w: &[u8]| out(f, h, w);
                    match message {
                        Message::Notice(notice) => forwarder.notice(&notice, &mut out),
                        Message::Packet(packet) => {
                            let Received { now_ns, from, headers, wire } = packet;
                            forwarder.take(now_ns, from, &headers, &wire, &mut out);
                        }
                    }
                });
                self.sent.extend(sent);
                let notices = forwarder.take_notices();
                self.notices.extend(notices.into_iter().map(|notice| (worker, notice)));
            }
        }
        true
    }
}

impl Message {
    fn is_interest(&self) -> bool {
        matches!(self, Self::Packet(packet) if is_interest(&packet.headers, &packet.wire))
    }
}

/// The first component of a packet's name.
fn family(wire: &[u8]) -> String {
    let name = Packet::read(wire).unwrap().name().to_string();
    name.split('/').nth(1).unwrap_or_default().to_owned()
}

fn is_interest(headers: &Headers, wire: &[u8]) -> bool {
    headers.nack.is_none() && wire.first() == Some(&5)
}

/// The short forms of sent packets by face and name, in order.
fn by_face_and_name(sent: &[Outgoing]) -> BTreeMap<(FaceId, String), Vec<String>> {
    let mut all = BTreeMap::<_, Vec<_>>::new();
    for outgoing in sent {
        let text = outgoing.text();
        let name = text.rsplit_once(' ').unwrap().1.to_owned();
        all.entry((outgoing.face, name)).or_default().push(text);
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    /// Workers run at different speeds. The packets of each face and name are the same, in the same
    /// order.
    #[test]
    fn every_schedule_of_workers_sends_the_same_packets(
        steps in lasting_steps(),
        workers in 2..6_usize,
        components in 1..4_usize,
        seed: u64,
    ) {
        let settings = Settings { cs_bytes: 0, dispatch_components: components, ..settings() };
        let (mut received, mut expected) = (Vec::new(), Vec::new());
        let mut reference = single(settings.clone());
        run(&steps, Box::new(|now, from, headers, wire| {
            let packet = Received { now_ns: now, from, headers: *headers, wire: wire.to_vec() };
            let sent = reference(now, from, headers, wire);
            received.push(packet);
            expected.extend_from_slice(&sent);
            sent
        }));
        let mut schedule = Schedule::new(&settings, workers, seed);
        let mut last_ns = 0;
        for packet in received {
            // Messages wait for less than a millisecond.
            if std::mem::replace(&mut last_ns, packet.now_ns) != packet.now_ns {
                schedule.run_to_end();
            }
            schedule.run_some();
            schedule.dispatch(packet);
        }
        schedule.run_to_end();
        prop_assert_eq!(by_face_and_name(&schedule.sent), by_face_and_name(&expected));
    }
}

/// Two shards, a name /N of the first for a short prefix, and a name /N/M of the second.
fn two_shards(settings: &Settings) -> ([Forwarder; 2], String, String) {
    let parallel = *configured(Box::new(Parallel::new(settings, 2)));
    let dispatch = parallel.dispatch().clone();
    let of_shard = |shard: usize, prefix: &str| {
        let names = (0..).map(|number| format!("{prefix}/{number}"));
        let mut names = names.filter(|text| dispatch.worker_of(A, &interest(text).wire()) == shard);
        names.next().unwrap()
    };
    let short = of_shard(0, "");
    let full = of_shard(1, &short);
    (<[_; 2]>::try_from(parallel.into_workers()).unwrap(), short, full)
}

fn takes(shard: &mut Forwarder, now_ns: u64, from: FaceId, wire: &[u8]) -> Vec<Outgoing> {
    collect(|out| {
        let mut out = |f, h: &Headers, w: &[u8]| out(f, h, w);
        shard.take(now_ns, from, &Headers::default(), wire, &mut out);
    })
}

fn notify(from: &mut Forwarder, to: &mut Forwarder) -> Vec<Outgoing> {
    let notices = from.take_notices();
    collect(|out| {
        let mut out = |f, h: &Headers, w: &[u8]| out(f, h, w);
        notices.iter().for_each(|notice| to.notice(notice, &mut out));
    })
}

#[test]
fn a_face_that_joins_a_short_prefix_late_is_answered_by_its_shard() {
    let ([mut owner, mut other], short, full) = two_shards(&settings());
    takes(&mut owner, MS, A, &interest(&short).prefix().wire());
    notify(&mut owner, &mut other);
    let sent = takes(&mut other, 2 * MS, UP, &data_with(&full, None, b"x"));
    assert_eq!(sent.iter().map(|data| data.face).collect::<Vec<_>>(), [A]);
    // The Interest of B is handled before the notice of the Data.
    takes(&mut owner, 2 * MS, B, &interest(&short).prefix().nonce(2).wire());
    let late = notify(&mut other, &mut owner);
    assert_eq!(late.iter().map(|data| data.face).collect::<Vec<_>>(), [B]);
    assert_eq!((owner.pending(), other.pending()), (0, 0));
    assert_eq!(owner.counters().satisfied + other.counters().satisfied, 1);
}

#[test]
fn a_notice_for_a_removed_face_has_no_effect() {
    for is_reused in [false, true] {
        let settings = Settings { pit_capacity: 8, ..settings() };
        let ([mut owner, mut other], short, full) = two_shards(&settings);
        takes(&mut owner, MS, A, &interest(&short).prefix().wire());
        let notices = owner.take_notices();
        other.remove_face(A);
        if is_reused {
            other.set_face(A, ringtap_ndn::forwarder::Face::NEIGHBOUR);
        }
        let mut none = |_: FaceId, _: &Headers, _: &[u8]| ();
        notices.iter().for_each(|notice| other.notice(notice, &mut none));
        assert!(takes(&mut other, 2 * MS, UP, &data_with(&full, None, b"x")).is_empty());
        // No shadow remains that needs room.
        for number in 0..4 {
            let text = format!("{full}/{number}");
            assert_eq!(takes(&mut other, 3 * MS, B, &interest(&text).wire()).len(), 1);
        }
    }
}

#[test]
fn a_short_prefix_counts_once_for_its_face() {
    let mut parallel = *configured(Box::new(Parallel::new(&settings(), 3)));
    let mut none = |_: FaceId, _: &Headers, _: &[u8]| ();
    parallel.take(MS, A, &Headers::default(), &interest("/s").prefix().wire(), &mut none);
    assert_eq!((parallel.pending(), parallel.face_use(A).pending), (1, 1));
    parallel.remove_face(A);
    parallel.advance(10_000 * MS);
    assert_eq!((parallel.pending(), parallel.face_use(A).pending), (0, 0));
}

#[test]
fn the_generated_steps_cause_all_kinds_of_packets() {
    // The properties are only useful if the generated steps cause all kinds of packets.
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..50 {
        let steps = steps().new_tree(&mut runner).unwrap().current();
        for outgoing in run(&steps, single(settings())).into_iter().flatten() {
            seen.insert(outgoing.text().rsplit_once(' ').unwrap().0.to_owned());
        }
    }
    let expected = ["Data", "Interest", "Nack Congestion", "Nack Duplicate", "Nack NoRoute"];
    assert_eq!(seen.iter().map(String::as_str).collect::<Vec<_>>(), expected);
}
