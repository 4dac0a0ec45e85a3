//! A forwarder with faces for tests, and short forms of packets.
#![allow(dead_code, reason = "each test file uses a part of it")]

use ringtap_ndn::forwarder::{
    Counters, Drop, Face, FaceId, Forwarder, LinkKind, Settings, Strategy,
};
use ringtap_ndn::packets::{
    Data, Headers, Interest, NackReason, NameBuf, NewData, NewInterest, Packet, PitToken,
};

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

/// A forwarder with a default route to UP, and its current time.
pub(crate) struct Node {
    pub(crate) forwarder: Forwarder,
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

    pub(crate) fn with(settings: Settings) -> Self {
        let mut node = Self { forwarder: Forwarder::new(settings), now_ms: 1_000_000 };
        faces().into_iter().for_each(|(id, face)| node.forwarder.set_face(id, face));
        node.route("/", UP, 10);
        node
    }

    pub(crate) fn route(&mut self, prefix: &str, face: FaceId, cost: u64) -> Vec<Outgoing> {
        let mut outgoing = Vec::new();
        let mut out = |face, headers: &Headers, wire: &[u8]| {
            outgoing.push(Outgoing { face, headers: *headers, wire: wire.to_vec() });
        };
        self.forwarder
            .add_route(self.now_ms * MS, &name(prefix).as_name(), face, cost, &mut out)
            .unwrap();
        outgoing
    }

    pub(crate) fn multicast(&mut self, prefix: &str) {
        self.forwarder.set_strategy(&name(prefix).as_name(), Strategy::Multicast).unwrap();
    }

    pub(crate) fn wait(&mut self, ms: u64) {
        self.now_ms += ms;
        self.forwarder.advance(self.now_ms * MS);
    }

    pub(crate) fn take(&mut self, from: FaceId, headers: Headers, wire: &[u8]) -> Vec<Outgoing> {
        let mut outgoing = Vec::new();
        let mut out = |face, headers: &Headers, wire: &[u8]| {
            outgoing.push(Outgoing { face, headers: *headers, wire: wire.to_vec() });
        };
        self.forwarder.take(self.now_ms * MS, from, &headers, wire, &mut out);
        outgoing
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
