//! Producers and consumers that disconnect and return while Interests are pending.
//!
//! ```text
//!  3 consumers ─▶ relay ─▶ 2 producers of 24 prefixes       Unix sockets and UDP
//! ```
//!
//! Every Interest has one outcome, and the counters of the consumers, of the producers and of the
//! relay agree. No result depends on time: an Interest without an answer counts as timed out when
//! the relay has nothing pending any more.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use ringtap_ndn::faces::Lost;
use ringtap_ndn::forwarder::Drop;
use ringtap_ndn::packets::management::ControlParameters;
use ringtap_ndn::packets::{Data, Headers, Interest, NackReason, NameBuf, NewData, NewInterest};
use ringtap_ndn::relay::ForwardReport;

use crate::relay::client::Client;
use crate::relay::support::{Ringtap, plans, until};
use crate::support::name;

const PREFIXES: u64 = 24;
const STEPS: u32 = 6_000;
const LIFETIME_MS: u64 = 1_500;

/// Repeatable random numbers (splitmix64).
struct Random(u64);

impl Random {
    /// A number below `end`.
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % end
    }

    /// True once in `count` calls on average.
    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }
}

/// How a client connects.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Unix,
    Udp,
}

/// The outcomes of the Interests of all consumers.
#[derive(Debug, Default)]
struct Outcomes {
    sent: u64,
    satisfied: u64,
    nacked: u64,
    timed_out: u64,
    /// The consumer disconnected before an answer.
    abandoned: u64,
}

struct Consumer {
    kind: Kind,
    client: Client,
    pending: HashSet<NameBuf>,
}

/// What the producers did with the Interests that they received.
#[derive(Debug, Default)]
struct Answers {
    data: u64,
    nacks: u64,
    ignored: u64,
}

struct Producer {
    kind: Kind,
    /// `None`: disconnected.
    client: Option<Client>,
    /// The face of a UDP producer.
    face: Option<u64>,
}

/// A relay with its clients, and a program that controls it.
struct Run {
    random: Random,
    socket: PathBuf,
    udp: SocketAddr,
    control: Client,
    consumers: Vec<Consumer>,
    producers: Vec<Producer>,
    outcomes: Outcomes,
    answers: Answers,
}

impl Run {
    fn new(relay: &Ringtap, seed: u64) -> Self {
        let mut run = Self {
            random: Random(seed),
            socket: relay.socket.clone(),
            udp: relay.udp,
            control: Client::unix(&relay.socket),
            consumers: Vec::new(),
            producers: Vec::new(),
            outcomes: Outcomes::default(),
            answers: Answers::default(),
        };
        for kind in [Kind::Unix, Kind::Udp, Kind::Unix] {
            let client = run.connect(kind);
            run.consumers.push(Consumer { kind, client, pending: HashSet::new() });
        }
        for kind in [Kind::Unix, Kind::Udp] {
            run.producers.push(Producer { kind, client: None, face: None });
        }
        run
    }

    fn connect(&self, kind: Kind) -> Client {
        match kind {
            Kind::Unix => Client::unix(&self.socket),
            Kind::Udp => Client::udp(self.udp),
        }
    }

    /// The prefixes of a producer: every third is of both.
    fn prefixes(at: usize) -> impl Iterator<Item = String> {
        let is_its = move |number: &u64| number.is_multiple_of(3) || number % 2 == at as u64;
        (0..PREFIXES).filter(is_its).map(|number| format!("/p/{number}"))
    }

    /// Connects a producer and registers its prefixes.
    fn produce(&mut self, at: usize) {
        let mut client = self.connect(self.producers[at].kind);
        let mut face = None;
        match self.producers[at].kind {
            Kind::Unix => Self::prefixes(at).for_each(|prefix| client.register(&prefix)),
            Kind::Udp => {
                let uri = Some(format!("udp4://{}", client.address()));
                let parameters = ControlParameters { uri, ..ControlParameters::default() };
                let response = self.control.command("faces", "create", &parameters);
                face = response.parameters.unwrap().face;
                for prefix in Self::prefixes(at) {
                    let name = Some(name(&prefix));
                    let parameters = ControlParameters { name, face, ..Default::default() };
                    assert_eq!(self.control.command("rib", "register", &parameters).code, 200);
                }
            }
        }
        self.producers[at] = Producer { client: Some(client), face, ..self.producers[at] };
    }

    /// Disconnects a producer. The face of one over UDP is closed by a command.
    fn stop_producing(&mut self, at: usize) {
        let producer = &mut self.producers[at];
        let Some(mut client) = producer.client.take() else { return };
        let others = self.producers[1 - at].client.is_some();
        let kind = self.producers[at].kind;
        let face = self.producers[at].face.take();
        if kind == Kind::Unix {
            // The relay reads a stream in order: it has received all answers.
            client.status();
        }
        drop(client);
        if let Some(face) = face {
            let parameters = ControlParameters { face: Some(face), ..Default::default() };
            assert_eq!(self.control.command("faces", "destroy", &parameters).code, 200);
        }
        let expected = if others { Self::prefixes(1 - at).count() } else { 0 };
        until("the routes of the closed face are removed", || {
            let routes = self.control.routes();
            let count: usize = routes.iter().map(|entry| entry.routes.len()).sum();
            if count == expected { Ok(()) } else { Err(format!("{routes:?}")) }
        });
    }

    /// Sends an Interest of a random consumer for a new name.
    fn consume(&mut self, step: u32) {
        let at = self.random.below(self.consumers.len() as u64) as usize;
        let name = name(&format!("/p/{}/{step}", self.random.below(PREFIXES)));
        let mut interest = NewInterest::new(name.as_name(), step);
        interest.lifetime_ms = Some(LIFETIME_MS);
        let mut wire = Vec::new();
        interest.write(&mut wire);
        let consumer = &mut self.consumers[at];
        consumer.client.send(&Headers::NONE, &wire);
        consumer.pending.insert(name);
        self.outcomes.sent += 1;
    }

    /// Replaces a consumer by a new one with another face.
    fn reconnect(&mut self, at: usize) {
        self.receive(at);
        if self.consumers[at].kind == Kind::Unix {
            // The relay has received all its Interests.
            self.consumers[at].client.status();
        }
        let client = self.connect(self.consumers[at].kind);
        let consumer = &mut self.consumers[at];
        self.outcomes.abandoned += consumer.pending.len() as u64;
        *consumer = Consumer { kind: consumer.kind, client, pending: HashSet::new() };
    }

    /// Reads what has arrived at a consumer.
    fn receive(&mut self, at: usize) {
        let Consumer { client, pending, .. } = &mut self.consumers[at];
        while let Some((headers, packet)) = client.receive(Duration::ZERO) {
            let (name, count) = match headers.nack {
                Some(_) => (Interest::read(&packet).unwrap().name, &mut self.outcomes.nacked),
                None => (Data::read(&packet).unwrap().name, &mut self.outcomes.satisfied),
            };
            assert!(pending.remove(&NameBuf::of(name)), "{name}: not pending");
            *count += 1;
        }
    }

    /// Handles what has arrived at the producers: they answer most Interests, and some with a Nack.
    fn answer(&mut self) {
        let Self { random, producers, answers, .. } = self;
        for client in producers.iter_mut().filter_map(|producer| producer.client.as_mut()) {
            while let Some((headers, packet)) = client.receive(Duration::ZERO) {
                let interest = Interest::read(&packet).unwrap();
                let token = Headers { token: headers.token, ..Headers::NONE };
                // Nacks between forwarders happen, too.
                if headers.nack.is_some() || random.one_in(40) {
                    answers.ignored += 1;
                } else if random.one_in(40) {
                    answers.nacks += 1;
                    let nack = Some(NackReason::Congestion);
                    client.send(&Headers { nack, ..token }, &packet);
                } else {
                    answers.data += 1;
                    let mut data = Vec::new();
                    NewData { name: interest.name, freshness_ms: None, content: b"content" }
                        .write(&mut data);
                    client.send(&token, &data);
                }
            }
        }
    }

    fn poll(&mut self) {
        self.answer();
        (0..self.consumers.len()).for_each(|at| self.receive(at));
    }

    fn steps(&mut self) {
        (0..self.producers.len()).for_each(|at| self.produce(at));
        for step in 0..STEPS {
            self.consume(step);
            if step % 4 == 0 {
                self.poll();
            }
            let at = self.random.below(2) as usize;
            match self.producers[at].client {
                Some(_) if self.random.one_in(250) => self.stop_producing(at),
                None if self.random.one_in(50) => self.produce(at),
                _ => {}
            }
            if self.random.one_in(250) {
                let at = self.random.below(3) as usize;
                self.reconnect(at);
            }
        }
    }

    /// Waits until nothing is pending; then Interests without an answer are timed out.
    fn settle(&mut self) {
        until("nothing is pending", || {
            self.poll();
            match self.control.status().pit_entries {
                0 => Ok(()),
                pending => Err(format!("{pending} pending")),
            }
        });
        self.poll();
        let left = self.consumers.iter().map(|consumer| consumer.pending.len() as u64);
        self.outcomes.timed_out = left.sum();
        (0..self.producers.len()).for_each(|at| self.stop_producing(at));
        assert_eq!(self.control.routes(), []);
    }

    /// Compares the counters of the clients with the relay's.
    fn check(&self, report: &ForwardReport) {
        let Outcomes { sent, satisfied, nacked, timed_out, abandoned } = self.outcomes;
        let counts = report.forwarder;
        let context = format!("{:?} {:?} {:?}", self.outcomes, self.answers, report.dropped());
        assert_eq!(sent, satisfied + nacked + timed_out + abandoned, "{context}");
        assert!(satisfied > 1000 && nacked > 0 && abandoned > 0, "{context}");
        // Nothing was lost on the way to the relay.
        assert_eq!((counts.interests_in, report.kernel_drops), (sent, 0), "{context}");
        // Answers in the queue of a producer whose face is closed are lost.
        let lost = report.links.lost(Lost::NoFace);
        let answered = self.answers.data + self.answers.nacks;
        assert_eq!(counts.data_in + counts.nacks_in + lost, answered, "{context}");
        assert!(counts.data_in <= self.answers.data, "{context}");
        // Each Interest has one PIT entry, which has one end.
        assert_eq!(counts.satisfied + counts.unsatisfied, sent, "{context}");
        let unsolicited = counts.dropped(Drop::Unsolicited);
        assert_eq!(counts.satisfied + unsolicited, counts.data_in, "{context}");
        // Answers that the consumers did not receive were for those that disconnected.
        let missing = counts.data_out + counts.nacks_out - satisfied - nacked;
        assert!(counts.data_out >= satisfied && counts.nacks_out >= nacked, "{context}");
        assert!(missing <= abandoned, "{context}");
        // Interests that no producer received were under way to one that disconnected.
        let received = self.answers.data + self.answers.nacks + self.answers.ignored;
        assert!(counts.interests_out >= received, "{context}");
        let expected =
            ["no-route", "unsolicited", "stray-nack", "gone", "refused", "disconnected", "no-face"];
        let other = |(reason, _): &(&str, u64)| !expected.contains(reason);
        assert!(!report.dropped().iter().any(other), "{context}");
        assert_eq!(report.links.lost(Lost::Congested), 0, "{context}");
        assert_eq!((report.pending, report.routes), (0, 0), "{context}");
    }
}

#[test]
fn every_interest_has_one_outcome_while_faces_close_and_return() {
    let mut timed_out = 0;
    for plan in plans() {
        for seed in [1, 2] {
            let folder = tempfile::tempdir().unwrap();
            let relay = Ringtap::with(folder.path(), plan.clone());
            let mut run = Run::new(&relay, seed);
            run.steps();
            run.settle();
            run.check(&relay.end());
            timed_out += run.outcomes.timed_out;
        }
    }
    assert!(timed_out > 0, "every kind of outcome occurs");
}
