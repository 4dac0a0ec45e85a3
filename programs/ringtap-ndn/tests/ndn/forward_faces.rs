//! Tests of `ringtap-ndn forward` with neighbours over TCP and WebSocket, and of `forward ctl PATH
//! events`.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
#[cfg(feature = "websocket")]
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command};
use std::time::Duration;

use ringtap_ndn::packets::management::{FaceEvent, FaceEventKind};
use ringtap_ndn::packets::{Data, Element, Interest, LpPacket, NameBuf, NewData, NewInterest};

use crate::common::PROGRAM;
use crate::forward::Running;
use ringtap_testkit::Background;

/// The longest wait for a packet.
const TIMEOUT: Duration = Duration::from_secs(5);

fn interest(text: &str, lifetime_ms: u64) -> Vec<u8> {
    let (name, mut wire): (NameBuf, _) = (text.parse().unwrap(), Vec::new());
    let new = NewInterest::new(name.as_name(), 7);
    let (can_be_prefix, must_be_fresh) = (true, true);
    let lifetime_ms = Some(lifetime_ms);
    NewInterest { can_be_prefix, must_be_fresh, lifetime_ms, ..new }.write(&mut wire);
    wire
}

/// The next packet of a stream, which sends one at a time.
fn packet(stream: &mut impl Read) -> Vec<u8> {
    let mut bytes = Vec::new();
    while Element::only(&bytes).is_err() {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        bytes.push(byte[0]);
    }
    LpPacket::read(&bytes).unwrap().payload.unwrap().to_vec()
}

/// A running `ctl events`, and its output.
fn events(running: &Running, flags: &[&str]) -> (Background, BufReader<ChildStdout>) {
    let mut command = Command::new(PROGRAM);
    command.args(["forward", "ctl"]).arg(running.socket()).arg("events").args(flags);
    let mut process = Background::without_words(command);
    let lines = BufReader::new(process.child.stdout.take().unwrap());
    (process, lines)
}

fn line(lines: &mut impl BufRead) -> String {
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    line
}

#[test]
fn interests_are_forwarded_between_neighbours_over_tcp() {
    let producer = TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let running = Running::start(&format!(
        "[tcp]\nlisten = \"{listen}\"\n[[route]]\nprefix = \"/far\"\nto = \"tcp://{}\"\n",
        producer.local_addr().unwrap()
    ));
    let (mut producer, _) = producer.accept().unwrap();
    let mut consumer = TcpStream::connect(listen).unwrap();
    for stream in [&consumer, &producer] {
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    }
    consumer.write_all(&interest("/far/a", 4_000)).unwrap();
    let wire = packet(&mut producer);
    let requested = Interest::read(&wire).unwrap();
    assert_eq!(requested.name.to_string(), "/far/a");
    let mut wire = Vec::new();
    NewData { name: requested.name, freshness_ms: None, content: b"there" }.write(&mut wire);
    producer.write_all(&wire).unwrap();
    assert_eq!(Data::read(&packet(&mut consumer)).unwrap().content, b"there");
    let faces = running.reply(&["faces"]);
    assert!(faces.contains(&format!("tcp4://{}", consumer.local_addr().unwrap())), "{faces}");
    // A command creates a face, too.
    let added = running.reply(&["register", "/b", &format!("tcp://{listen}")]);
    assert!(added.contains("/b is routed to face"), "{added}");
    // Commands are for local programs; a neighbour over TCP is not one, whatever its address.
    consumer.write_all(&interest("/localhost/nfd/faces/list", 4_000)).unwrap();
    consumer.write_all(&interest("/nowhere", 4_000)).unwrap();
    assert_eq!(Interest::read(&packet(&mut consumer)).unwrap().name.to_string(), "/nowhere");
    let report = running.end();
    assert_eq!(report["packets"]["dropped"]["scope"], 1, "{report}");
}

#[test]
fn events_of_faces_are_printed_as_they_happen() {
    let running = Running::start("");
    let (printing, mut lines) = events(&running, &["--count", "4"]);
    // The connection of the command itself.
    let own = line(&mut lines);
    assert!(own.starts_with("created ") && own.contains(" fd://1 from unix://"), "{own}");
    let neighbour = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    neighbour.send_to(&interest("/a", 4_000), running.udp).unwrap();
    let created = line(&mut lines);
    let remote = format!(" udp4://{} from udp4://{}", neighbour.local_addr().unwrap(), running.udp);
    assert!(created.starts_with("created ") && created.contains(&remote), "{created}");
    assert!(created.ends_with(", on demand\n"), "{created}");
    drop(UnixStream::connect(running.socket()).unwrap());
    assert!(line(&mut lines).contains(" fd://2 "));
    assert!(line(&mut lines).starts_with("destroyed "));
    let (_, errors, code) = printing.end();
    assert_eq!((errors.as_str(), code), ("", 0));
    // Without a count, an interrupt ends it.
    let (printing, mut lines) = events(&running, &[]);
    assert!(line(&mut lines).contains(" fd://3 "));
    printing.interrupt();
    assert_eq!(printing.end().2, 0);
    running.end();
}

#[test]
fn requests_that_wait_for_an_event_are_accounted_for() {
    let running = Running::start("");
    let mut program = UnixStream::connect(running.socket()).unwrap();
    program.set_read_timeout(Some(TIMEOUT)).unwrap();
    program.write_all(&interest(FaceEvent::PREFIX, 4_000)).unwrap();
    let wire = packet(&mut program);
    let data = Data::read(&wire).unwrap();
    let event = FaceEvent::read(data.content).unwrap();
    assert_eq!((event.kind, event.uri.as_str()), (FaceEventKind::Created, "fd://1"));
    let number = FaceEvent::number(&data.name).unwrap();
    let name = |number| FaceEvent::name(number).to_string();
    // The next event and one after it; the third request has expired when its event happens.
    program.write_all(&interest(&name(number + 1), 60_000)).unwrap();
    program.write_all(&interest(&name(number + 9), 60_000)).unwrap();
    program.write_all(&interest(&name(number + 2), 0)).unwrap();
    running.reply(&["status"]);
    let wire = packet(&mut program);
    let data = Data::read(&wire).unwrap();
    assert_eq!(FaceEvent::number(&data.name), Some(number + 1));
    let report = running.end();
    let management = &report["management"];
    assert_eq!([&management["waiting"], &management["unanswered"]], [1, 1], "{report}");
}

#[test]
fn a_command_joins_a_multicast_group() {
    let running = Running::start("");
    let (_, errors, code) = running.ctl(&["register", "/m", "udp://224.0.23.170"]);
    assert!(code == 1 && errors.contains("creating a face to udp://224.0.23.170"), "{errors}");
    running.reply(&["register", "/m", "udp://224.0.23.170/lo"]);
    let faces = running.reply(&["faces"]);
    assert!(faces.contains("udp4://224.0.23.170:56363 on lo"), "{faces}");
    // Now the group is known without its interface, too.
    running.reply(&["register", "/n", "udp://224.0.23.170"]);
    running.reply(&["unregister", "/m", "udp://224.0.23.170/lo"]);
    let routes = running.reply(&["routes"]);
    assert!(routes.contains("/n ") && !routes.contains("/m "), "{routes}");
    running.end();
}

/// python-ndn, an independent implementation, follows the notifications.
#[test]
fn python_ndn_reads_the_events() {
    const SCRIPT: &str = "
import sys
from ndn import appv2, encoding, security
from ndn.app_support.nfd_mgmt import FaceEventNotification
from ndn.transport.stream_face import UnixFace

async def check(name, sig, context):
    good = await security.sha256_digest_checker(name, sig)
    return appv2.ValidResult.PASS if good else appv2.ValidResult.FAIL

app = appv2.NDNApp(face=UnixFace(sys.argv[1]))
async def main():
    name, flags = '/localhost/nfd/faces/events', {'can_be_prefix': True, 'must_be_fresh': True}
    for _ in range(3):
        name, content, _ = await app.express(name, check, lifetime=20000, **flags)
        event = FaceEventNotification.parse(content).event
        uri, kind = event.uri.split(':')[0], event.face_event_kind.name
        print(encoding.Component.get_type(name[-1]), kind, uri, event.face_persistency.name, flush=True)
        number = encoding.Component.to_number(name[-1])
        name = name[:-1] + [encoding.Component.from_sequence_num(number + 1)]
        flags = {}
    app.shutdown()
app.run_forever(after_start=main())
";
    let Some(python) = crate::tools::python() else { return };
    let running = Running::start("");
    let mut command = Command::new("timeout");
    command.arg("30").arg(python).args(["-c", SCRIPT]).arg(running.socket());
    let mut following = Background::without_words(command);
    let mut lines = BufReader::new(following.child.stdout.take().unwrap());
    assert_eq!(line(&mut lines), "58 CREATED fd ON_DEMAND\n");
    running.reply(&["register", "/a", "udp://127.0.0.1:9"]);
    // The connection of the command, and the face that it creates.
    assert_eq!(line(&mut lines), "58 CREATED fd ON_DEMAND\n");
    assert_eq!(line(&mut lines), "58 CREATED udp4 PERSISTENT\n");
    let (_, errors, code) = following.end();
    assert_eq!(code, 0, "{errors}");
    running.end();
}

/// The folder of NDNts. Prints a `SKIPPED` line if it is missing.
#[cfg(feature = "websocket")]
fn ndnts() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/test-tools/ndnts");
    if folder.join("complete").exists() {
        return folder.canonicalize().ok();
    }
    eprintln!("SKIPPED: NDNts is not installed (scripts/setup-test.sh fetches it, with npm)");
    None
}

/// NDNts, an implementation in JavaScript, serves and fetches through the forwarder.
#[cfg(feature = "websocket")]
#[test]
fn programs_of_ndnts_exchange_data_over_websocket() {
    let Some(ndnts) = ndnts() else { return };
    let listen = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let running = Running::start(&format!(
        "[websocket]\nlisten = \"{listen}\"\n[tables]\ncontent-store = 0\n"
    ));
    // Node.js finds packages in the folders above the script.
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("ndnts.mjs");
    std::fs::write(&script, include_str!("ndnts.mjs")).unwrap();
    let modules = ndnts.join("node_modules");
    std::os::unix::fs::symlink(modules, folder.path().join("node_modules")).unwrap();
    let node = |words: &[&str]| {
        let mut command = Command::new("node");
        command.arg(&script).arg(format!("ws://{listen}/")).args(words);
        command
    };
    let mut serving = Background::without_words(node(&["serve", "/far"]));
    let mut lines = BufReader::new(serving.child.stdout.take().unwrap());
    assert_eq!(line(&mut lines), "serving\n");
    let faces = running.reply(&["faces"]);
    let row = faces.lines().find(|row| row.contains("wsclient://127.0.0.1:")).expect(&faces);
    let face = row.split_whitespace().next().unwrap();
    running.reply(&["register", "/far", face]);
    let output = node(&["fetch", "/far", "50"]).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "50 of 50 Data are right\n", "{errors}");
    // A neighbour over UDP fetches from it, too.
    let neighbour = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    neighbour.set_read_timeout(Some(TIMEOUT)).unwrap();
    neighbour.send_to(&interest("/far/udp", 4_000), running.udp).unwrap();
    let mut bytes = [0; 9_500];
    let len = neighbour.recv(&mut bytes).unwrap();
    let packet = LpPacket::read(&bytes[..len]).unwrap().payload.unwrap();
    assert_eq!(Data::read(packet).unwrap().content.len(), 8_000);
    let report = running.end();
    assert_eq!(report["packets"]["data_out"], 51, "{report}");
    assert_eq!(report["links"]["dropped"], serde_json::json!({}), "{report}");
}
