//! Tests of commands of neighbours over UDP: refused without a key, executed with one; also those of
//! python-ndn.

use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use ringtap_base::now_ns;
use ringtap_ndn::faces::Settings;
use ringtap_ndn::packets::management::{ControlParameters, ControlResponse, NewCommand};
use ringtap_ndn::packets::signature::{SignatureType, Signer, VerifyingKey};
use ringtap_ndn::packets::{
    Data, Headers, LpPacket, NameBuf, NewData, NewInterest, Packet, write_lp,
};
use ringtap_ndn::relay::{Anchor, ForwardPlan, Module, TrustSettings};

use crate::relay::client::Client;
use crate::relay::support::{Background, Ringtap, until};
use crate::signatures::{signer, verifying_key};

/// The longest wait for a packet.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A neighbour of a relay.
struct Neighbour(UdpSocket);

impl Neighbour {
    fn of(ringtap: &Ringtap) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(TIMEOUT)).unwrap();
        socket.connect(ringtap.udp).unwrap();
        Self(socket)
    }

    fn send(&self, wire: &[u8]) {
        self.0.send(wire).unwrap();
    }

    /// Headers and payload of the next packet.
    fn receive(&self) -> (Headers, Vec<u8>) {
        let mut bytes = [0; 9_000];
        let len = self.0.recv(&mut bytes).unwrap();
        let packet = LpPacket::read(&bytes[..len]).unwrap();
        (packet.headers, packet.payload.unwrap().to_vec())
    }

    /// Sends a command; returns code and text of the response.
    fn command(&self, wire: &[u8]) -> (u64, String) {
        self.send(wire);
        let (_, data) = self.receive();
        let response = ControlResponse::read(Data::read(&data).unwrap().content).unwrap();
        (response.code, response.text)
    }

    /// Sends an Interest.
    fn request(&self, text: &str, nonce: u32) {
        let (name, mut wire): (NameBuf, _) = (text.parse().unwrap(), Vec::new());
        NewInterest::new(name.as_name(), nonce).write(&mut wire);
        self.send(&wire);
    }
}

fn anchor(key: VerifyingKey, prefix: &str) -> TrustSettings {
    let anchor = Anchor {
        name: "/example/KEY".parse().unwrap(),
        key,
        allow: vec![Module::Rib],
        prefix: prefix.parse().unwrap(),
        valid_ms: (0, u64::MAX),
    };
    TrustSettings { anchors: vec![anchor], sign_local: false }
}

/// A registration or its removal; signed by its digest without a signer.
fn rib(scope: &str, verb: &str, prefix: &str, signer: Option<&Signer>) -> Vec<u8> {
    rib_of(scope, verb, (prefix, None), signer)
}

/// As [`rib`], with the origin of the route.
fn rib_of(
    scope: &str,
    verb: &str,
    (prefix, origin): (&str, Option<u64>),
    signer: Option<&Signer>,
) -> Vec<u8> {
    let name = Some(prefix.parse().unwrap());
    let parameters = ControlParameters { name, origin, ..Default::default() };
    let (parameters, time_ms) = (&parameters, now_ns() / 1_000_000);
    // Times of one key must grow, by milliseconds.
    while now_ns() / 1_000_000 == time_ms {
        std::thread::yield_now();
    }
    let new = NewCommand {
        application: "nfd",
        scope,
        module: "rib",
        verb,
        parameters,
        nonce: now_ns() as u32,
        time_ms: now_ns() / 1_000_000,
    };
    let mut wire = Vec::new();
    match signer {
        Some(signer) => new.sign(signer, &mut wire).unwrap(),
        None => new.write(&mut wire),
    }
    wire
}

#[test]
fn without_an_anchor_commands_of_neighbours_are_refused_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let ringtap = Ringtap::start(folder.path(), &[]);
    let neighbour = Neighbour::of(&ringtap);
    let key = signer(SignatureType::Ed25519, "/example/KEY/1");
    for signer in [None, Some(&key)] {
        let wire = rib("localhop", "register", "/a", signer);
        let (code, text) = neighbour.command(&wire);
        assert_eq!((code, text.as_str()), (403, "no [[anchor]] for the key of this command"));
    }
    // Queries are for local programs.
    neighbour.request("/localhop/nfd/rib/list", 1);
    assert_eq!(Data::read(&neighbour.receive().1).unwrap().content[2..5], [0x66, 2, 1]);
    // The scope of /localhost is this machine: dropped, without a response.
    neighbour.send(&rib("localhost", "register", "/a", Some(&key)));
    neighbour.send(b"\x64\x00");
    assert_eq!(neighbour.command(&rib("localhop", "unregister", "/a", None)).0, 403);
    let report = ringtap.end();
    assert_eq!(report.refused_commands(), [("not-allowed", 1), ("no-anchor", 3)], "{report:?}");
    assert_eq!((report.routes, report.managed()), (0, 4));
    assert!(report.dropped().contains(&("scope", 1)), "{:?}", report.dropped());
    let json = report.to_json("test");
    assert_eq!(json["management"]["refused"]["no-anchor"], 3, "{json}");
}

#[test]
fn a_signed_registration_adds_a_route_to_the_sender() {
    for of in [SignatureType::Hmac, SignatureType::Ecdsa, SignatureType::Ed25519] {
        let folder = tempfile::tempdir().unwrap();
        let trust = anchor(verifying_key(of), "/example");
        let ringtap = Ringtap::trusting(folder.path(), &[], trust);
        let (producer, consumer) = (Neighbour::of(&ringtap), Neighbour::of(&ringtap));
        let signer = signer(of, "/example/KEY/producer");
        let registration = rib("localhop", "register", "/example/a", Some(&signer));
        assert_eq!(producer.command(&registration), (200, "OK".into()));
        consumer.request("/example/a/x", 1);
        let (headers, wire) = producer.receive();
        let Ok(Packet::Interest(interest)) = Packet::read(&wire) else { panic!("{wire:x?}") };
        assert_eq!(interest.name.to_string(), "/example/a/x");
        let (mut data, mut answer) = (Vec::new(), Vec::new());
        NewData { name: interest.name, freshness_ms: None, content: b"there" }.write(&mut data);
        write_lp(&Headers { token: headers.token, ..Headers::NONE }, &data, &mut answer);
        producer.send(&answer);
        assert_eq!(Data::read(&consumer.receive().1).unwrap().content, b"there");

        let changed = {
            let mut wire = rib("localhop", "register", "/example/b", Some(&signer));
            let end = wire.len() - 1;
            wire[end] ^= 1;
            wire
        };
        // A changed signature changes the digest of the parameters, too.
        assert_eq!(producer.command(&changed).0, 400);
        let elsewhere = rib("localhop", "register", "/other", Some(&signer));
        assert_eq!(producer.command(&elsewhere).0, 403);
        assert_eq!(consumer.command(&registration).0, 403, "a replay");
        let removal = rib("localhop", "unregister", "/example/a", Some(&signer));
        assert_eq!(producer.command(&removal), (200, "OK".into()));
        let report = ringtap.end();
        assert_eq!(report.refused_commands(), [("replay", 1), ("prefix", 1)], "{report:?}");
        assert_eq!(report.routes, 0);
    }
}

#[test]
fn the_routes_of_a_neighbour_are_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let ringtap =
        Ringtap::trusting(folder.path(), &[], anchor(VerifyingKey::digest().unwrap(), "/"));
    let neighbour = Neighbour::of(&ringtap);
    for number in 0..1_024 {
        let wire = rib("localhop", "register", &format!("/r/{number}"), None);
        assert_eq!(neighbour.command(&wire).0, 200, "{number}");
    }
    for (route, code) in
        [(("/r/1024", None), 403), (("/r/7", Some(1)), 403), (("/r/7", Some(0)), 200)]
    {
        assert_eq!(neighbour.command(&rib_of("localhop", "register", route, None)).0, code);
    }
    assert_eq!(neighbour.command(&rib("localhop", "unregister", "/r/9", None)).0, 200);
    assert_eq!(neighbour.command(&rib("localhop", "register", "/r/1024", None)).0, 200);
    let report = ringtap.end();
    assert_eq!((report.refused_commands(), report.routes), (vec![("routes-full", 2)], 1_024));
}

#[test]
fn a_neighbour_with_a_route_is_evicted_after_all_others() {
    let folder = tempfile::tempdir().unwrap();
    let plan = ForwardPlan {
        trust: anchor(VerifyingKey::digest().unwrap(), "/"),
        faces: Settings { on_demand_max: Some(4), ..Settings::default() },
        ..ForwardPlan::default()
    };
    let ringtap = Ringtap::with(folder.path(), plan);
    let of_digest = |verb: &str| rib("localhop", verb, "/r", None);
    let producer = Neighbour::of(&ringtap);
    assert_eq!(producer.command(&of_digest("register")).0, 200);
    let others: Vec<_> = (0..20).map(|_| Neighbour::of(&ringtap)).collect();
    let send = |nonce: u32, other: &Neighbour| {
        other.request("/none", nonce);
        // A Nack: the face exists.
        assert!(other.receive().0.nack.is_some());
    };
    (1..).zip(&others).for_each(|(nonce, other)| send(nonce, other));
    others[19].request("/r/x", 100);
    assert!(matches!(Packet::read(&producer.receive().1), Ok(Packet::Interest(_))));
    // Without a route it is a sender like others.
    assert_eq!(producer.command(&of_digest("register")).0, 200);
    assert_eq!(producer.command(&of_digest("unregister")).0, 200);
    let evicted = |ringtap: &Ringtap| Client::unix(&ringtap.socket).status().evicted_faces;
    assert_eq!(evicted(&ringtap), 17);
    (101..).zip(&others[..4]).for_each(|(nonce, other)| send(nonce, other));
    let report = ringtap.end();
    let at = producer.0.local_addr().unwrap().to_string();
    assert_eq!((report.evicted, report.routes), (21, 0));
    assert!(!report.faces.iter().any(|face| face.remote.contains(&at)));
}

/// A Python with python-ndn, an independent implementation.
fn python() -> Option<PathBuf> {
    let python = "../../target/test-tools/venv/bin/python";
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).join(python);
    let has = |python: &PathBuf| {
        let found = Command::new(python).args(["-c", "import ndn.appv2"]).output();
        found.is_ok_and(|output| output.status.success())
    };
    let found = Some(python).filter(has);
    if found.is_none() {
        eprintln!("SKIPPED: no python-ndn for Python; scripts/setup-test.sh fetches it");
    }
    found
}

/// Registers a prefix over UDP, prints the code of the response, and answers Interests. The key is
/// that of the vectors. `old` is a command in the older format, which is signed by digest.
const PRODUCER: &str = "
import asyncio, sys
from ndn import app, appv2, encoding, security, utils
from ndn.app_support import nfd_mgmt
from ndn.security import KeychainDigest
from ndn.transport.udp_face import UdpFace

KEY, SECRET = '/example/KEY/k1', bytes(range(32))

class Remote(UdpFace):
    def isLocalFace(self):
        return False  # It takes 127.0.0.1 for a local program.

class Hmac(security.HmacSha256Signer):
    def write_signature_info(self, info):
        super().write_signature_info(info)
        info.signature_time, info.signature_nonce = utils.timestamp(), utils.gen_nonce_64()

def code(reply):
    # parse_response fails for responses without parameters, such as errors.
    return nfd_mgmt.ControlResponse.parse(encoding.parse_and_check_tl(memoryview(reply), 0x65)).status_code

async def pass_all(name, sig, context):
    return appv2.ValidResult.PASS

port, how = int(sys.argv[1]), sys.argv[2]
if how == 'old':
    node = app.NDNApp(face=Remote('127.0.0.1', port), keychain=KeychainDigest())
    async def main():
        def answer(name, param, app_param):
            node.put_data(name, content=b'python', freshness_period=1000)
        node.set_interest_filter('/example/py', answer)
        _, _, reply = await node.express_interest(nfd_mgmt.make_command('rib', 'register', node.face, name='/example/py'))
        print(code(reply), flush=True)
else:
    node = appv2.NDNApp(face=Remote('127.0.0.1', port))
    async def main():
        def answer(name, app_param, reply, context):
            reply(node.make_data(name, b'python', signer=security.DigestSha256Signer(), freshness_period=1000))
        node.attach_handler('/example/py', answer)
        signer = Hmac(KEY, SECRET) if how == 'hmac' else security.DigestSha256Signer(for_interest=True)
        command = nfd_mgmt.make_command_v2('rib', 'register', node.face, name='/example/py')
        _, reply, _ = await node.express(command, pass_all, app_param=b'', signer=signer)
        print(code(reply), flush=True)
node.run_forever(after_start=main())
";

#[test]
fn python_ndn_registers_over_udp_with_an_anchor_and_not_without() {
    let Some(python) = python() else { return };
    for (how, of) in [
        ("hmac", SignatureType::Hmac),
        ("digest", SignatureType::Digest),
        ("old", SignatureType::Digest),
    ] {
        for accepted in [true, false] {
            let folder = tempfile::tempdir().unwrap();
            let trust = match accepted {
                true => anchor(verifying_key(of), "/example"),
                false => TrustSettings::default(),
            };
            let ringtap = Ringtap::trusting(folder.path(), &[], trust);
            let log = folder.path().join("producer.log");
            let mut command = Command::new(&python);
            command.args(["-c", PRODUCER, &ringtap.udp.port().to_string(), how]);
            command.env("HOME", folder.path()).current_dir(folder.path());
            let _producer = Background::start(&mut command, &log);
            let read = || std::fs::read_to_string(&log).unwrap_or_default();
            until("the registration is answered", || {
                if read().contains('\n') { Ok(()) } else { Err(read()) }
            });
            assert_eq!(read(), if accepted { "200\n" } else { "403\n" }, "{how}");
            if accepted {
                let consumer = Neighbour::of(&ringtap);
                consumer.request("/example/py/x", 1);
                assert_eq!(Data::read(&consumer.receive().1).unwrap().content, b"python");
            }
            let report = ringtap.end();
            let expected = if accepted { vec![] } else { vec![("no-anchor", 1)] };
            assert_eq!(report.refused_commands(), expected, "{how}");
        }
    }
}
