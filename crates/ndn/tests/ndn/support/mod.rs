//! A forwarder with faces for tests, and short forms of packets.
#![allow(dead_code, reason = "each test file uses a part of it")]

pub(crate) mod design;

use std::collections::HashMap;

use ringtap_ndn::forwarder::{
    Counters, Drop, Face, FaceId, FaceUse, Forwarder, LinkKind, Settings, Strategy,
};
use ringtap_ndn::packets::{
    Data, Headers, Interest, NackReason, Name, NameBuf, NewData, NewInterest, Packet, PitToken,
};

pub(crate) use design::Design;

use crate::designs;

pub(crate) const MS: u64 = 1_000_000;

/// Faces: downstream neighbours, upstream neighbours, local programs, a shared medium, an ad hoc
/// link.
pub(crate) const A: FaceId = FaceId(1);
pub(crate) const B: FaceId = FaceId(2);
pub(crate) const C: FaceId = FaceId(3);
pub(crate) const UP: FaceId = FaceId(4);
pub(crate) const UP2: FaceId = FaceId(5);
pub(crate) const APP: FaceId = FaceId(6);
pub(crate) const APP2: FaceId = FaceId(7);
pub(crate) const SHARED: FaceId = FaceId(8);
pub(crate) const RADIO: FaceId = FaceId(9);

pub(crate) fn faces() -> [(FaceId, Face); 9] {
    let shared = Face { local: false, link: LinkKind::MultiAccess };
    let radio = Face { local: false, link: LinkKind::AdHoc };
    let near = Face::NEIGHBOUR;
    [
        (A, near),
        (B, near),
        (C, near),
        (UP, near),
        (UP2, near),
        (APP, Face::LOCAL),
        (APP2, Face::LOCAL),
        (SHARED, shared),
        (RADIO, radio),
    ]
}

pub(crate) fn name(text: &str) -> NameBuf {
    text.parse().unwrap()
}

/// An Interest to write.
#[derive(Clone, Debug)]
pub(crate) struct TestInterest {
    pub(crate) name: NameBuf,
    pub(crate) nonce: Option<u32>,
    pub(crate) can_be_prefix: bool,
    pub(crate) must_be_fresh: bool,
    pub(crate) lifetime_ms: Option<u64>,
    pub(crate) hop_limit: Option<u8>,
    pub(crate) hint: Vec<NameBuf>,
}

/// An Interest for a name, with nonce 1.
pub(crate) fn interest(text: &str) -> TestInterest {
    TestInterest {
        name: name(text),
        nonce: Some(1),
        can_be_prefix: false,
        must_be_fresh: false,
        lifetime_ms: None,
        hop_limit: None,
        hint: Vec::new(),
    }
}

impl TestInterest {
    pub(crate) fn nonce(self, nonce: u32) -> Self {
        Self { nonce: Some(nonce), ..self }
    }
    pub(crate) fn prefix(self) -> Self {
        Self { can_be_prefix: true, ..self }
    }
    pub(crate) fn fresh(self) -> Self {
        Self { must_be_fresh: true, ..self }
    }
    pub(crate) fn lifetime(self, ms: u64) -> Self {
        Self { lifetime_ms: Some(ms), ..self }
    }
    pub(crate) fn hops(self, hops: u8) -> Self {
        Self { hop_limit: Some(hops), ..self }
    }
    pub(crate) fn hint(mut self, text: &str) -> Self {
        self.hint.push(name(text));
        self
    }
    pub(crate) fn wire(&self) -> Vec<u8> {
        let hint: Vec<_> = self.hint.iter().map(NameBuf::as_name).collect();
        let mut wire = Vec::new();
        NewInterest {
            name: self.name.as_name(),
            can_be_prefix: self.can_be_prefix,
            must_be_fresh: self.must_be_fresh,
            hint: &hint,
            nonce: self.nonce,
            lifetime_ms: self.lifetime_ms,
            hop_limit: self.hop_limit,
        }
        .write(&mut wire);
        wire
    }
}

pub(crate) fn data_with(text: &str, freshness_ms: Option<u64>, content: &[u8]) -> Vec<u8> {
    let mut wire = Vec::new();
    NewData { name: name(text).as_name(), freshness_ms, content }.write(&mut wire);
    wire
}

pub(crate) fn data(text: &str) -> Vec<u8> {
    data_with(text, None, b"content")
}

/// Headers with a PIT token.
pub(crate) fn token(bytes: &[u8]) -> Headers {
    Headers { token: PitToken::new(bytes).unwrap(), ..Headers::default() }
}

/// A packet that was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Outgoing {
    pub(crate) face: FaceId,
    pub(crate) headers: Headers,
    pub(crate) wire: Vec<u8>,
}

impl Outgoing {
    pub(crate) fn interest(&self) -> Interest<'_> {
        match Packet::read(&self.wire).unwrap() {
            Packet::Interest(interest) => interest,
            Packet::Data(_) => panic!("a Data"),
        }
    }
    pub(crate) fn data(&self) -> Data<'_> {
        Data::read(&self.wire).unwrap()
    }
    /// Short form: `Interest /a`, `Data /a`, `Nack NoRoute /a`.
    pub(crate) fn text(&self) -> String {
        match (Packet::read(&self.wire).unwrap(), self.headers.nack) {
            (Packet::Interest(interest), Some(reason)) => {
                format!("Nack {reason:?} {}", interest.name)
            }
            (Packet::Interest(interest), None) => format!("Interest {}", interest.name),
            (Packet::Data(data), _) => format!("Data {}", data.name),
        }
    }
}

/// A forwarder and others that must act alike.
pub(crate) struct Alike {
    reference: Forwarder,
    others: Vec<Other>,
}

/// A forwarder that is compared with the reference.
struct Other {
    what: String,
    forwarder: Box<dyn Design>,
    /// Its tokens, by those of the reference.
    tokens: HashMap<PitToken, PitToken>,
}

impl Alike {
    fn new(settings: &Settings, is_compared: bool) -> Self {
        let designs = if is_compared { designs::of(settings, &[2, 3]) } else { Vec::new() };
        let other = |(what, forwarder)| Other { what, forwarder, tokens: HashMap::new() };
        let others = designs.into_iter().map(other).collect();
        Self { reference: Forwarder::new(settings.clone()), others }
    }

    pub(crate) fn set_face(&mut self, id: FaceId, face: Face) {
        self.reference.set_face(id, face);
        self.others.iter_mut().for_each(|other| other.forwarder.set_face(id, face));
    }

    pub(crate) fn remove_face(&mut self, id: FaceId) -> bool {
        let had_routes = self.reference.remove_face(id);
        for other in &mut self.others {
            assert_eq!(other.forwarder.remove_face(id), had_routes, "{}", other.what);
        }
        had_routes
    }

    pub(crate) fn add_route(
        &mut self,
        now_ns: u64,
        prefix: &str,
        face: FaceId,
        cost: u64,
    ) -> Vec<Outgoing> {
        let prefix = name(prefix);
        let prefix = prefix.as_name();
        let expected = collect(|mut out| {
            self.reference.add_route(now_ns, &prefix, face, cost, &mut out).unwrap();
        });
        for other in &mut self.others {
            let sent = collect(|out| other.forwarder.add_route(now_ns, &prefix, face, cost, out));
            other.compare(&expected, sent);
        }
        expected
    }

    pub(crate) fn remove_route(&mut self, prefix: &Name<'_>, face: FaceId) -> bool {
        let removed = self.reference.remove_route(prefix, face);
        for other in &mut self.others {
            assert_eq!(other.forwarder.remove_route(prefix, face), removed, "{}", other.what);
        }
        removed
    }

    pub(crate) fn set_strategy(&mut self, prefix: &Name<'_>, strategy: Strategy) {
        self.reference.set_strategy(prefix, strategy).unwrap();
        for other in &mut self.others {
            other.forwarder.set_strategy(prefix, strategy);
        }
    }

    pub(crate) fn advance(&mut self, now_ns: u64) {
        self.reference.advance(now_ns);
        self.others.iter_mut().for_each(|other| other.forwarder.advance(now_ns));
    }

    pub(crate) fn take(
        &mut self,
        now_ns: u64,
        from: FaceId,
        headers: &Headers,
        wire: &[u8],
    ) -> Vec<Outgoing> {
        let expected =
            collect(|mut out| self.reference.take(now_ns, from, headers, wire, &mut out));
        for other in &mut self.others {
            let token = other.tokens.get(&headers.token).copied().unwrap_or(headers.token);
            let headers = Headers { token, ..*headers };
            let sent = collect(|out| other.forwarder.take(now_ns, from, &headers, wire, out));
            other.compare(&expected, sent);
            assert_eq!(other.forwarder.pending(), self.reference.pending(), "{}", other.what);
        }
        expected
    }

    pub(crate) fn pending(&self) -> usize {
        self.reference.pending()
    }

    pub(crate) fn stored(&self) -> usize {
        self.reference.stored()
    }

    pub(crate) fn stored_bytes(&self) -> usize {
        self.reference.stored_bytes()
    }

    /// Use of the tables by a face, which is equal for all. Tables with locks by bucket do not count
    /// pending Interests by face unless there is a limit.
    pub(crate) fn face_use(&self, face: FaceId) -> FaceUse {
        let usage = self.reference.face_use(face);
        for other in &self.others {
            let found = other.forwarder.face_use(face);
            let pending = if found.pending == 0 { 0 } else { usage.pending };
            assert_eq!(found, FaceUse { pending, ..usage }, "{}", other.what);
        }
        usage
    }

    /// The counters, which are equal for all.
    pub(crate) fn counters(&self) -> Counters {
        let counters = self.reference.counters();
        for other in &self.others {
            assert_eq!(other.forwarder.counters(), counters, "{}", other.what);
        }
        counters
    }
}

impl Other {
    /// Compares sent packets with those of the reference. Tokens differ.
    fn compare(&mut self, expected: &[Outgoing], mut sent: Vec<Outgoing>) {
        for (expected, sent) in expected.iter().zip(&mut sent) {
            if expected.text().starts_with("Interest") {
                self.tokens.insert(expected.headers.token, sent.headers.token);
                sent.headers.token = expected.headers.token;
            }
        }
        assert_eq!(sent, expected, "{}", self.what);
    }
}

/// The packets that `act` sends.
pub(crate) fn collect(act: impl FnOnce(&mut dyn FnMut(FaceId, &Headers, &[u8]))) -> Vec<Outgoing> {
    let mut outgoing = Vec::new();
    act(&mut |face, headers: &Headers, wire: &[u8]| {
        outgoing.push(Outgoing { face, headers: *headers, wire: wire.to_vec() });
    });
    outgoing
}

/// A forwarder with a default route to UP, and its current time.
pub(crate) struct Node {
    pub(crate) forwarder: Alike,
    pub(crate) now_ms: u64,
}

impl Node {
    pub(crate) fn new() -> Self {
        Self::with(Settings {
            pit_capacity: 1000,
            cs_bytes: 1 << 20,
            dead_nonces: 1000,
            ..Settings::default()
        })
    }

    /// A forwarder that is compared with other designs.
    pub(crate) fn with(settings: Settings) -> Self {
        Self::of(&settings, true)
    }

    /// A forwarder whose tables become full, which happens at other times in other designs.
    pub(crate) fn alone(settings: Settings) -> Self {
        Self::of(&settings, false)
    }

    fn of(settings: &Settings, is_compared: bool) -> Self {
        // Short prefixes are found in one content store only.
        let settings = Settings { dispatch_components: 1, ..settings.clone() };
        let mut node = Self { forwarder: Alike::new(&settings, is_compared), now_ms: 1_000_000 };
        faces().into_iter().for_each(|(id, face)| node.forwarder.set_face(id, face));
        node.route("/", UP, 10);
        node
    }

    pub(crate) fn route(&mut self, prefix: &str, face: FaceId, cost: u64) -> Vec<Outgoing> {
        self.forwarder.add_route(self.now_ms * MS, prefix, face, cost)
    }

    pub(crate) fn multicast(&mut self, prefix: &str) {
        self.forwarder.set_strategy(&name(prefix).as_name(), Strategy::Multicast);
    }

    pub(crate) fn wait(&mut self, ms: u64) {
        self.now_ms += ms;
        self.forwarder.advance(self.now_ms * MS);
    }

    pub(crate) fn take(&mut self, from: FaceId, headers: Headers, wire: &[u8]) -> Vec<Outgoing> {
        self.forwarder.take(self.now_ms * MS, from, &headers, wire)
    }

    /// Handles an Interest without headers; returns the packets sent.
    pub(crate) fn interest(&mut self, from: FaceId, interest: TestInterest) -> Vec<Outgoing> {
        self.take(from, Headers::default(), &interest.wire())
    }

    /// Handles a Data without headers; returns the packets sent.
    pub(crate) fn data(&mut self, from: FaceId, text: &str) -> Vec<Outgoing> {
        self.take(from, Headers::default(), &data(text))
    }

    /// Handles a Nack for a sent Interest; returns the packets sent.
    pub(crate) fn nack(
        &mut self,
        from: FaceId,
        reason: NackReason,
        sent: &Outgoing,
    ) -> Vec<Outgoing> {
        self.take(from, Headers { nack: Some(reason), ..Headers::default() }, &sent.wire)
    }

    pub(crate) fn counters(&self) -> Counters {
        self.forwarder.counters()
    }

    pub(crate) fn dropped(&self, reason: Drop) -> u64 {
        self.counters().dropped(reason)
    }
}

/// The faces and short forms of packets.
pub(crate) fn texts(outgoing: &[Outgoing]) -> Vec<(FaceId, String)> {
    outgoing.iter().map(|outgoing| (outgoing.face, outgoing.text())).collect()
}

/// The face and short form of one packet, as [`texts`] returns them.
pub(crate) fn one(face: FaceId, text: &str) -> Vec<(FaceId, String)> {
    vec![(face, text.into())]
}

/// The faces on which packets were sent.
pub(crate) trait Faces {
    fn faces(&self) -> Vec<FaceId>;
}

impl Faces for Vec<Outgoing> {
    fn faces(&self) -> Vec<FaceId> {
        self.iter().map(|outgoing| outgoing.face).collect()
    }
}
