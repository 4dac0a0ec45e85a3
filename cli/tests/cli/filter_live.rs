//! Tests of `filter` between two interfaces, and of changes to its rules during the run.
//!
//! ```text
//!  namespace a: left ─── right :namespace b: filter ─ out ─── far :namespace a
//! ```

use std::fs;
use std::io::Write;
use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use ringtap_io::live::{Options, Receiver, SendOptions, open};
use serde_json::Value;
use tempfile::TempDir;

use crate::common::{output_of, ringtap};
use crate::net::{Background, Left, Net, NetCommands, Right, frames};
use ringtap_testkit::{send_all, take};

/// A running filter from `right` to `out`.
struct LiveFilter {
    net: Net,
    folder: TempDir,
    process: Background,
}

impl LiveFilter {
    fn start(queues: u32, rules: &str, flags: &[&str]) -> Option<Self> {
        let net = Net::new(queues)?;
        net.add_output();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rules.txt");
        fs::write(&path, rules).unwrap();
        let socket = format!("unix:{}", folder.path().join("socket").display());
        let base = ["filter", "-i", "right", "-o", "out", "--report", "json", "--duration", "300s"];
        let own = ["--control", &socket, "--rules", path.to_str().unwrap()];
        let command = net.ringtap(Right, &[&base[..], &own, flags].concat());
        let process = Background::start(command, "control: ");
        Some(Self { net, folder, process })
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    /// Runs `filter ctl` and returns stdout, stderr and the exit code.
    fn ctl(&self, words: &[&str]) -> (String, String, i32) {
        output_of(ringtap().args(["filter", "ctl"]).arg(self.socket()).args(words))
    }

    /// The reply to a `ctl` command that succeeds.
    fn reply(&self, words: &[&str]) -> String {
        let (out, errors, code) = self.ctl(words);
        assert_eq!(code, 0, "{words:?}: {errors}");
        out
    }

    /// The number of packets that the filter has received.
    fn received(&self) -> u32 {
        let status: Value = serde_json::from_str(&self.reply(&["status"])).unwrap();
        status["packets"]["received"].as_u64().unwrap() as u32
    }

    /// Receivers of the packets that pass.
    fn far(&self) -> Vec<Receiver> {
        let options = Options { outgoing: false, ..Options::default() };
        self.net.inside(Left, || open("far", &options).unwrap())
    }

    fn send(&self, frames: &[Vec<u8>]) {
        send_all(&mut self.net.sender(&SendOptions::default()), frames);
    }

    fn end(self) -> (Value, i32) {
        self.process.interrupt();
        let (report, errors, code) = self.process.end();
        let report = serde_json::from_slice(&report);
        (report.unwrap_or_else(|error| panic!("{error}: {errors}")), code)
    }
}

/// All methods to receive and to send.
const METHODS: [(&str, &str); 4] = [
    ("af-packet", "af-packet"),
    ("af-packet", "af-xdp"),
    ("af-xdp", "af-packet"),
    ("af-xdp", "af-xdp"),
];

/// A datagram from 10.0.0.`host` to 10.0.1.1 with `number` as payload.
fn frame(host: u8, number: u32) -> Vec<u8> {
    datagram(host, 53, &number.to_be_bytes())
}

fn datagram(host: u8, port: u16, payload: &[u8]) -> Vec<u8> {
    let len = payload.len() as u16;
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0];
    frame.extend((28 + len).to_be_bytes());
    frame.extend([0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, host, 10, 0, 1, 1, 3, host]);
    frame.extend(port.to_be_bytes());
    frame.extend((8 + len).to_be_bytes());
    frame.extend([0, 0]);
    frame.extend(payload);
    frame.resize(frame.len().max(60), 0);
    frame
}

/// Host and number of a received frame.
fn read(frame: &[u8]) -> (u8, u32) {
    (frame[29], u32::from_be_bytes(frame[42..46].try_into().unwrap()))
}

#[test]
fn allowed_packets_arrive_in_order_and_the_others_are_in_the_drops() {
    for (capture, send) in METHODS {
        let folder = tempfile::tempdir().unwrap();
        let drops = folder.path().join("drops.pcap");
        let flags = ["--capture", capture, "--send", send, "--drops", drops.to_str().unwrap()];
        let Some(filter) = LiveFilter::start(1, "allow from 10.0.0.0/25\nban 10.0.0.7\n", &flags)
        else {
            return;
        };
        let mut far = filter.far();
        let sent: Vec<_> = (0..3_000).map(|n| frame([1, 7, 200][n as usize % 3], n)).collect();
        let mut arp = vec![0xff; 12];
        arp.extend([8, 6]);
        arp.resize(60, 0);
        filter.send(&sent);
        filter.send(&[arp.clone()]);
        let arrived: Vec<_> = take(&mut far, 1_001).into_iter().map(|(_, data, _)| data).collect();
        let mut expected: Vec<_> = sent.iter().filter(|one| read(one).0 == 1).cloned().collect();
        expected.push(arp);
        assert!(arrived == expected, "{capture}: {}", arrived.len());
        let (report, code) = filter.end();
        assert_eq!(code, 0);
        let packets = &report["packets"];
        assert_eq!([&packets["received"], &packets["passed"]], [3_001, 1_001], "{report}");
        assert_eq!([&packets["dropped"]["banned"], &packets["dropped"]["default"]], [1_000, 1_000]);
        assert_eq!(report["ledger"]["residual"], 0);
        let dropped = frames(&fs::read(&drops).unwrap());
        assert!(dropped.iter().eq(sent.iter().filter(|one| read(one).0 != 1)), "{capture}");
    }
}

#[test]
fn with_both_ways_each_direction_is_filtered_and_no_packet_returns() {
    for (capture, send) in METHODS {
        let rules = "allow from 10.0.0.1\nallow from 10.0.0.2\nban 10.0.0.7\n";
        let flags = ["--capture", capture, "--send", send, "--both-ways"];
        let Some(filter) = LiveFilter::start(1, rules, &flags) else { return };
        let options = Options { outgoing: false, ..Options::default() };
        let mut near = filter.net.inside(Left, || open("left", &options).unwrap());
        let mut far = filter.far();
        let mut from_far = filter.net.inside(Left, || {
            ringtap_io::live::Sender::open("far", &SendOptions::default()).unwrap()
        });
        let there: Vec<_> = (0..600).map(|n| frame([1, 7, 200][n as usize % 3], n)).collect();
        let back: Vec<_> = (0..900).map(|n| frame([7, 2, 200][n as usize % 3], n)).collect();
        filter.send(&there);
        send_all(&mut from_far, &back);
        let arrived = |receivers: &mut Vec<Receiver>, count| -> Vec<Vec<u8>> {
            take(receivers, count).into_iter().map(|(_, data, _)| data).collect()
        };
        let allowed = |sent: &[Vec<u8>], host| -> Vec<Vec<u8>> {
            sent.iter().filter(|one| read(one).0 == host).cloned().collect()
        };
        assert!(arrived(&mut far, 200) == allowed(&there, 1), "{capture} {send}");
        assert!(arrived(&mut near, 300) == allowed(&back, 2), "{capture} {send}");
        let (report, code) = filter.end();
        assert_eq!((code, &report["ledger"]["residual"]), (0, &Value::from(0)), "{report}");
        let packets = &report["packets"];
        assert_eq!([&packets["received"], &packets["passed"]], [1_500, 500], "{report}");
    }
}

/// Sets the flag on drop, also when the test panics: otherwise its threads would not end.
struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[test]
fn after_the_reply_to_a_ban_no_packet_passes() {
    for (queues, capture) in [(1, "af-packet"), (2, "af-packet"), (2, "af-xdp")] {
        let number = queues.to_string();
        let flags = ["--capture", capture, "--queues", &number];
        let Some(filter) = LiveFilter::start(queues, "default allow\n", &flags) else { return };
        let mut far = filter.far();
        // Phases modulo 4: host 9 may send (0), its ban is requested (1), its ban is acknowledged
        // (2), its unban is requested (3).
        let (phase, sent, done) = (AtomicU32::new(0), AtomicU32::new(0), AtomicBool::new(false));
        let mut sender = filter.net.sender(&SendOptions::default());
        let arrived = thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::SeqCst) {
                    let phase = phase.load(Ordering::SeqCst);
                    // Several hosts, so that each queue receives packets.
                    let burst: Vec<_> = [9, 1, 9, 2, 9, 3].map(|host| frame(host, phase)).into();
                    send_all(&mut sender, &burst);
                    sent.fetch_add(1, Ordering::SeqCst);
                    thread::sleep(Duration::from_micros(100));
                }
            });
            let receiver = scope.spawn(|| {
                let mut arrived = Vec::new();
                loop {
                    let last = done.load(Ordering::SeqCst);
                    let batch = take(&mut far, 200);
                    arrived.extend(batch.iter().map(|(_, data, _)| read(data)));
                    if last && batch.len() < 200 {
                        return arrived;
                    }
                }
            });
            let all_sent = SetOnDrop(&done);
            for turn in 0..20 {
                // At least 20 bursts in each phase.
                let before = sent.load(Ordering::SeqCst);
                while sent.load(Ordering::SeqCst) < before + 20 {
                    thread::sleep(Duration::from_millis(1));
                }
                let words = [["ban", "10.0.0.9"], ["unban", "10.0.0.9"]][turn % 2];
                phase.fetch_add(1, Ordering::SeqCst);
                // The filter has received all packets that were sent under the ban before the ban
                // is removed.
                let before = sent.load(Ordering::SeqCst) + 1;
                while sent.load(Ordering::SeqCst) < before || filter.received() < before * 6 {
                    thread::sleep(Duration::from_millis(1));
                }
                let done = ["1 banned, 0 already banned", "1 unbanned, 0 not banned"][turn % 2];
                let answer = format!("revision {}\n{done}\n", turn + 2);
                assert_eq!(filter.reply(&words), answer);
                phase.fetch_add(1, Ordering::SeqCst);
            }
            drop(all_sent);
            receiver.join().unwrap()
        });
        let late = arrived.iter().filter(|(host, phase)| *host == 9 && phase % 4 == 2).count();
        assert_eq!(late, 0, "{capture}, {queues} queues, of {}", arrived.len());
        for phase in (0..40).step_by(2) {
            let passed = |from: u8| arrived.contains(&(from, phase));
            assert!(passed(1) && passed(3), "{capture}: phase {phase} of those not banned");
            assert_eq!(passed(9), phase % 4 == 0, "{capture}: phase {phase}");
        }
        let (report, code) = filter.end();
        assert_eq!((code, &report["ledger"]["residual"]), (0, &Value::from(0)), "{report}");
    }
}

#[test]
fn changes_of_both_interfaces_are_reported_and_the_filter_goes_on() {
    let Some(mut filter) = LiveFilter::start(1, "", &["--default", "allow"]) else { return };
    for (end, name) in [(Right, "right"), (Right, "out")] {
        filter.net.ip(end, &format!("link set {name} down"));
        filter.process.wait_for(&format!("warning: {name} is down"));
        filter.net.ip(end, &format!("link set {name} up"));
        filter.process.wait_for(&format!("warning: {name} is up"));
        filter.net.ip(end, &format!("link set {name} mtu 1400"));
        filter.process.wait_for(&format!("warning: the MTU of {name} is 1400 now"));
    }
    let mut far = filter.far();
    filter.net.wait_until_up(Left, "left");
    filter.send(&(0..20).map(|number| frame(1, number)).collect::<Vec<_>>());
    assert_eq!(take(&mut far, 20).len(), 20);
    let (report, code) = filter.end();
    assert_eq!((code, &report["packets"]["passed"]), (0, &Value::from(20)));
}

/// While the link is down, AF_XDP keeps frames in its ring.
#[test]
fn after_the_reply_to_a_ban_no_packet_leaves_a_link_that_was_down() {
    let one_way = |send| (send, vec!["--send", send]);
    let both_ways = vec!["--capture", "af-xdp", "--send", "af-xdp", "--both-ways"];
    let both = [one_way("af-packet"), one_way("af-xdp"), ("af-xdp", both_ways)];
    for (send, flags) in both {
        let Some(filter) = LiveFilter::start(1, "default allow\n", &flags) else {
            return;
        };
        let mut far = filter.far();
        filter.send(&[frame(9, 0)]);
        assert_eq!(take(&mut far, 1).len(), 1, "{send}: before");
        filter.net.ip(Right, "link set out down");
        let waiting: Vec<_> = (1..=100).map(|number| frame(9, number)).collect();
        filter.send(&waiting);
        while filter.received() < 101 {
            thread::sleep(Duration::from_millis(1));
        }
        assert!(filter.reply(&["ban", "10.0.0.9"]).starts_with("revision 2\n"));
        filter.net.ip(Right, "link set out up");
        let mut arrived = Vec::new();
        let mut sent = 0;
        // Frames that still waited would leave before these.
        while arrived.is_empty() && sent < 20 {
            sent += 1;
            filter.send(&[frame(1, sent)]);
            arrived = take(&mut far, 1);
        }
        arrived.extend(take(&mut far, usize::MAX));
        let banned = arrived.iter().filter(|(_, data, _)| read(data).0 == 9).count();
        assert_eq!(banned, 0, "{send}: of {}", arrived.len());
        assert!(!arrived.is_empty(), "{send}: no frame leaves after the link is up");
        let (report, code) = filter.end();
        assert_eq!((code, &report["ledger"]["residual"]), (0, &Value::from(0)), "{report}");
        let stages = report["ledger"]["stages"].as_array().unwrap();
        let output = stages.iter().find(|stage| stage["stage"] == "output").unwrap();
        let reason = if send == "af-xdp" { "superseded" } else { "output_down" };
        assert_eq!(output["dropped"][reason], 100, "{send}: {report}");
    }
}

#[test]
fn a_control_packet_takes_effect_at_its_position_in_the_stream() {
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("key");
    fs::write(&key, "a secret key for the test\n").unwrap();
    let key = key.to_str().unwrap();
    let flags = ["--control-port", "7777", "--control-key", key];
    let Some(filter) = LiveFilter::start(1, "default allow\n", &flags) else { return };
    // A control packet: the payload that `filter ctl` sends to a socket of the test.
    let control_packet = |words: &[&str]| {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let to = format!("udp:{}", socket.local_addr().unwrap());
        let (_, errors, code) =
            output_of(ringtap().args(["filter", "ctl", &to, "--key", key]).args(words));
        assert_eq!(code, 0, "{errors}");
        let mut payload = vec![0; 2_000];
        socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let len = socket.recv(&mut payload).unwrap();
        datagram(50, 7777, &payload[..len])
    };
    let (ban, unban) =
        (control_packet(&["ban", "10.0.0.9"]), control_packet(&["unban", "10.0.0.9"]));
    let mut far = filter.far();
    let mut stream: Vec<_> = (0..100).map(|n| frame(9, n)).collect();
    stream.push(ban.clone());
    stream.extend((100..200).map(|n| frame(9, n)));
    stream.push(unban);
    stream.extend((200..300).map(|n| frame(9, n)));
    // A replayed control packet changes no rules and is forwarded like other packets.
    stream.push(ban.clone());
    stream.extend((300..400).map(|n| frame(9, n)));
    filter.send(&stream);
    let arrived: Vec<_> = take(&mut far, 301).into_iter().map(|(_, data, _)| data).collect();
    let expected = (0..100).chain(200..300).map(|n| frame(9, n)).chain([ban]);
    let expected: Vec<_> = expected.chain((300..400).map(|n| frame(9, n))).collect();
    assert!(arrived == expected, "{}", arrived.len());
    let (report, _) = filter.end();
    let control = &report["control"];
    assert_eq!([&control["made"], &control["refused"], &control["forged"]], [2, 0, 1], "{report}");
    assert_eq!(report["packets"]["dropped"]["control"], 2);
}

#[test]
fn rules_are_changed_listed_dumped_and_restored_while_it_runs() {
    let Some(filter) = LiveFilter::start(1, "allow from 10.0.0.0/24\n", &[]) else { return };
    assert_eq!(fs::metadata(filter.socket()).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(filter.reply(&["add", "deny", "to", "10.0.1.0/24"]), "revision 2\n");
    let banned = filter.reply(&["ban", "10.0.0.7", "10.0.0.8"]);
    assert_eq!(banned, "revision 3\n2 banned, 0 already banned\n");
    let explain = |filter: &LiveFilter| filter.reply(&["explain", "10.0.0.7", "10.0.2.1"]);
    assert_eq!(explain(&filter), "dropped: 10.0.0.7 banned at revision 3\n");
    let dump = filter.reply(&["dump"]);
    let file = filter.folder.path().join("dump.txt");
    fs::write(&file, &dump).unwrap();
    // An error in one line rejects the whole file.
    let both = filter.folder.path().join("both.txt");
    fs::write(&both, "default allow\nremove allow from 10.0.0.9\n").unwrap();
    let (_, errors, code) = filter.ctl(&["apply", both.to_str().unwrap()]);
    let expected = "line 2: no such rule \"allow from 10.0.0.9 to any\"";
    assert!(code == 1 && errors.contains(expected), "{errors}");
    let dry = filter.reply(&["--dry-run", "unban", "10.0.0.7"]);
    assert!(dry.starts_with("revision 4 would have 2 rules, 1 bans"), "{dry}");
    fs::write(&both, "default allow\n").unwrap();
    assert_eq!(filter.reply(&["replace", both.to_str().unwrap()]), "revision 4\n");
    assert!(explain(&filter).starts_with("accepted: "));
    let restored = filter.reply(&["apply", file.to_str().unwrap()]);
    assert_eq!(restored, "revision 5\n2 banned, 0 already banned\n");
    filter.send(&[frame(1, 0), frame(7, 0)]);
    let mut status = Value::Null;
    while status["packets"]["received"] != 2 {
        status = serde_json::from_str(&filter.reply(&["status"])).unwrap();
    }
    assert_eq!(status["rules"]["revision"], 5);
    let list = filter.reply(&["list"]);
    assert!(list.starts_with("revision 5, default deny\n"), "{list}");
    assert!(list.contains("of revision 5: deny from any to 10.0.1.0/24; packets: 1\n"), "{list}");
    assert!(list.contains("ban of revision 5: 10.0.0.7\n"), "{list}");
    assert!(list.ends_with("packets: 1 by bans, 0 by no rule\n"), "{list}");
    let socket = filter.socket();
    let (report, code) = filter.end();
    assert_eq!((code, &report["rules"]["revision"]), (0, &Value::from(5)));
    assert!(!socket.exists());
}

#[test]
fn malformed_requests_at_the_control_socket_change_nothing() {
    let Some(filter) = LiveFilter::start(1, "default deny\n", &[]) else { return };
    for bytes in [
        &b""[..],
        b"\n",
        b"apply\n",
        b"apply 99999999999999\n",
        b"apply 5\n\xff\xfe\xfd\xfc\xfb",
        b"GET / HTTP/1.1\r\nHost: filter\r\n\r\n",
        b"reboot 0\n",
        &[b'a'; 100_000],
    ] {
        let mut stream = UnixStream::connect(filter.socket()).unwrap();
        // The filter may close the connection before it has read everything.
        let _ = stream.write_all(bytes);
        drop(stream);
    }
    let banned = |answer: &str| answer.ends_with("\n1 banned, 0 already banned\n");
    assert!(banned(&filter.reply(&["ban", "10.0.0.1"])));
    // A client that sends nothing does not block others.
    let _silent = UnixStream::connect(filter.socket()).unwrap();
    assert!(banned(&filter.reply(&["ban", "10.0.0.2"])));
    // A second filter cannot take over the socket.
    let socket = format!("unix:{}", filter.socket().display());
    let flags = ["filter", "-i", "right", "-o", "out", "--control", &socket];
    let (_, errors, code) = filter.net.run(Right, &flags);
    assert!(code == 1 && errors.contains("another process listens"), "{errors}");
    let last = filter.reply(&["ban", "10.0.0.3"]);
    assert!(last.starts_with("revision 4\n") && banned(&last), "{last}");
}

#[test]
fn a_repeated_ban_and_an_unban_without_a_ban_succeed_and_are_counted() {
    let Some(filter) = LiveFilter::start(1, "default allow\nban 10.0.0.1\nban 10.0.0.1\n", &[])
    else {
        return;
    };
    let reply = |words: &[&str]| filter.reply(words);
    assert_eq!(reply(&["ban", "10.0.0.1"]), "revision 2\n0 banned, 1 already banned\n");
    assert_eq!(reply(&["unban", "10.0.0.2"]), "revision 3\n0 unbanned, 1 not banned\n");
    let dry = reply(&["--dry-run", "ban", "10.0.0.1", "10.0.0.2"]);
    assert!(dry.starts_with("revision 4 would have 0 rules, 2 bans, "), "{dry}");
    assert!(dry.ends_with("\n1 banned, 1 already banned\n"), "{dry}");
    // A list with each line twice; some addresses are banned before.
    let list = filter.folder.path().join("list.txt");
    let lines: String = (0..20_000_u32)
        .map(|n| n % 10_000)
        .map(|n| format!("ban 10.0.{}.{}\n", n / 256, n % 256))
        .collect();
    fs::write(&list, lines).unwrap();
    let answer = reply(&["apply", list.to_str().unwrap()]);
    assert_eq!(answer, "revision 4\n9999 banned, 10001 already banned\n");
    let answer = reply(&["apply", list.to_str().unwrap()]);
    assert_eq!(answer, "revision 5\n0 banned, 20000 already banned\n");
    let answer = reply(&["unban", "10.0.0.1", "10.0.0.1"]);
    assert_eq!(answer, "revision 6\n1 unbanned, 1 not banned\n");
    assert!(reply(&["explain", "10.0.0.1", "10.9.9.9"]).starts_with("accepted: "));
    assert_eq!(
        reply(&["explain", "10.0.0.2", "10.9.9.9"]),
        "dropped: 10.0.0.2 banned at revision 4\n"
    );
    let (report, code) = filter.end();
    assert_eq!((code, &report["rules"]["bans"]), (0, &Value::from(9_999)), "{report}");
}

/// A client that sends nothing, sends slowly or does not read its reply does not delay the others.
#[test]
fn slow_clients_of_the_control_socket_do_not_delay_others() {
    let Some(filter) = LiveFilter::start(1, "allow from 10.0.0.0/25\n", &[]) else { return };
    let connect = || UnixStream::connect(filter.socket()).unwrap();
    let mut clients: Vec<_> = (0..200).map(|_| connect()).collect();
    assert!(filter.reply(&["list"]).contains("allow from 10.0.0.0/25"));
    for (at, client) in clients.iter_mut().enumerate() {
        let words: &[u8] = [&b"apply 100\nba"[..], b"dump 0\n", b"apply 500000000\nban"][at % 3];
        // The filter may have closed its connection.
        let _ = client.write_all(words);
    }
    assert!(filter.reply(&["ban", "10.0.0.9"]).contains("revision"));
    // A client that sends a byte at a time gets a timeout error or is closed, although it never
    // pauses for long.
    let mut slow = connect();
    slow.write_all(b"apply 100000\n").unwrap();
    let mut bytes = 0;
    while slow.write_all(b"#").is_ok() {
        thread::sleep(Duration::from_millis(100));
        bytes += 1;
        assert!(bytes < 600, "a slow request never times out");
        if bytes % 10 == 0 {
            assert!(filter.reply(&["dump"]).contains("ban 10.0.0.9"));
        }
    }
    let (_, code) = filter.end();
    assert_eq!(code, 0);
}

/// If drops cannot be written, the filter continues, reports the error and leaves no incomplete
/// capture.
#[test]
fn drops_that_do_not_fit_the_disk_are_an_error_and_leave_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let Some(net) = Net::new(1) else { return };
    net.add_output();
    let script = "mount -t tmpfs -o size=64k tmpfs . && cd \"$PWD\" || exit 77
                  \"$@\" & echo $! > ../pid; wait $!; code=$?; ls -A > ../left; exit $code";
    let disk = folder.path().join("disk");
    fs::create_dir(&disk).unwrap();
    let mut command = net.program(Right, "sh");
    command.args(["-c", script, "sh", env!("CARGO_BIN_EXE_ringtap"), "filter", "-i", "right"]);
    command.args(["-o", "out", "--default", "deny", "--drops", "drops.pcap", "--report", "json"]);
    command.args(["--duration", "300s", "--control", "unix:../socket"]).current_dir(&disk);
    let filter = Background::start(command, "control: ");
    let sent: Vec<_> = (0..6_000).map(|n| frame(1, n)).collect();
    send_all(&mut net.sender(&SendOptions::default()), &sent);
    let socket = folder.path().join("socket");
    let received = || {
        let (out, errors, code) =
            output_of(ringtap().args(["filter", "ctl"]).arg(&socket).arg("status"));
        assert_eq!(code, 0, "{errors}");
        let status: Value = serde_json::from_str(&out).unwrap();
        status["packets"]["received"].as_u64().unwrap()
    };
    while received() < 6_000 {
        thread::sleep(Duration::from_millis(10));
    }
    let pid = fs::read_to_string(folder.path().join("pid")).unwrap().trim().parse().unwrap();
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let (report, errors, code) = filter.end();
    let report: Value = serde_json::from_slice(&report).unwrap_or_else(|_| panic!("{errors}"));
    assert!(code == 1 && errors.contains("No space left on device"), "{code}: {errors}");
    assert_eq!(report["packets"]["received"], 6_000);
    assert_eq!(fs::read_to_string(folder.path().join("left")).unwrap(), "");
}
