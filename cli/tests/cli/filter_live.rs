//! `filter` between two interfaces, and the ways to change its rules while it runs.
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

use crate::common::{ringtap, said};
use crate::net::{Beside, Left, Net, Right, Within, frames};
use ringtap_testkit::{send_all, take};

/// A filter from right to out.
struct Between {
    net: Net,
    folder: TempDir,
    filter: Beside,
}

impl Between {
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
        let filter = Beside::start(command, "control: ");
        Some(Self { net, folder, filter })
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    /// What the filter said, and the exit code.
    fn ctl(&self, words: &[&str]) -> (String, String, i32) {
        said(ringtap().args(["filter", "ctl"]).arg(self.socket()).args(words))
    }

    fn changed(&self, words: &[&str]) -> String {
        let (out, errors, code) = self.ctl(words);
        assert_eq!(code, 0, "{words:?}: {errors}");
        out
    }

    /// Packets that it has judged.
    fn received(&self) -> u32 {
        let status: Value = serde_json::from_str(&self.changed(&["status"])).unwrap();
        status["packets"]["received"].as_u64().unwrap() as u32
    }

    /// Where what passes arrives.
    fn far(&self) -> Vec<Receiver> {
        let options = Options { outgoing: false, ..Options::default() };
        self.net.inside(Left, || open("far", &options).unwrap())
    }

    fn send(&self, frames: &[Vec<u8>]) {
        send_all(&mut self.net.sender(&SendOptions::default()), frames);
    }

    fn end(self) -> (Value, i32) {
        self.filter.interrupt();
        let (report, errors, code) = self.filter.end();
        let report = serde_json::from_slice(&report);
        (report.unwrap_or_else(|error| panic!("{error}: {errors}")), code)
    }
}

/// A datagram from 10.0.0.HOST to 10.0.1.1 with a number in it.
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

/// Host and number of a frame that arrived.
fn read(frame: &[u8]) -> (u8, u32) {
    (frame[29], u32::from_be_bytes(frame[42..46].try_into().unwrap()))
}

#[test]
fn what_the_rules_allow_arrives_in_order_and_the_rest_is_in_the_drops() {
    for capture in ["af-packet", "af-xdp"] {
        let folder = tempfile::tempdir().unwrap();
        let drops = folder.path().join("drops.pcap");
        let flags = ["--capture", capture, "--drops", drops.to_str().unwrap()];
        let Some(between) = Between::start(1, "allow from 10.0.0.0/25\nban 10.0.0.7\n", &flags)
        else {
            return;
        };
        let mut far = between.far();
        let sent: Vec<_> = (0..3_000).map(|n| frame([1, 7, 200][n as usize % 3], n)).collect();
        let mut arp = vec![0xff; 12];
        arp.extend([8, 6]);
        arp.resize(60, 0);
        between.send(&sent);
        between.send(&[arp.clone()]);
        let arrived: Vec<_> = take(&mut far, 1_001).into_iter().map(|(_, data, _)| data).collect();
        let mut expected: Vec<_> = sent.iter().filter(|one| read(one).0 == 1).cloned().collect();
        expected.push(arp);
        assert!(arrived == expected, "{capture}: {}", arrived.len());
        let (report, code) = between.end();
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
fn both_ways_each_direction_is_judged_and_nothing_goes_round() {
    for capture in ["af-packet", "af-xdp"] {
        let rules = "allow from 10.0.0.1\nallow from 10.0.0.2\nban 10.0.0.7\n";
        let flags = ["--capture", capture, "--both-ways"];
        let Some(between) = Between::start(1, rules, &flags) else { return };
        let options = Options { outgoing: false, ..Options::default() };
        let mut near = between.net.inside(Left, || open("left", &options).unwrap());
        let mut far = between.far();
        let mut from_far = between.net.inside(Left, || {
            ringtap_io::live::Sender::open("far", &SendOptions::default()).unwrap()
        });
        let there: Vec<_> = (0..600).map(|n| frame([1, 7, 200][n as usize % 3], n)).collect();
        let back: Vec<_> = (0..900).map(|n| frame([7, 2, 200][n as usize % 3], n)).collect();
        between.send(&there);
        send_all(&mut from_far, &back);
        let arrived = |receivers: &mut Vec<Receiver>, atleast| -> Vec<Vec<u8>> {
            take(receivers, atleast).into_iter().map(|(_, data, _)| data).collect()
        };
        let allowed = |sent: &[Vec<u8>], host| -> Vec<Vec<u8>> {
            sent.iter().filter(|one| read(one).0 == host).cloned().collect()
        };
        assert!(arrived(&mut far, 200) == allowed(&there, 1), "{capture}");
        assert!(arrived(&mut near, 300) == allowed(&back, 2), "{capture}");
        let (report, code) = between.end();
        assert_eq!((code, &report["ledger"]["residual"]), (0, &Value::from(0)), "{report}");
        let packets = &report["packets"];
        assert_eq!([&packets["received"], &packets["passed"]], [1_500, 500], "{report}");
    }
}

/// Set in the end, also when the test fails: else its threads would go on.
struct Set<'a>(&'a AtomicBool);

impl Drop for Set<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[test]
fn once_a_ban_is_acknowledged_not_one_packet_passes() {
    for (queues, capture) in [(1, "af-packet"), (2, "af-packet"), (2, "af-xdp")] {
        let number = queues.to_string();
        let flags = ["--capture", capture, "--queues", &number];
        let Some(between) = Between::start(queues, "default allow\n", &flags) else { return };
        let mut far = between.far();
        // Host 9 may send (0), is being banned (1), is banned, as was acknowledged (2), is allowed again just now (3), and
        // so on.
        let (epoch, sent, done) = (AtomicU32::new(0), AtomicU32::new(0), AtomicBool::new(false));
        let mut sender = between.net.sender(&SendOptions::default());
        let arrived = thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::SeqCst) {
                    let epoch = epoch.load(Ordering::SeqCst);
                    // Several hosts, so that all queues have some.
                    let burst: Vec<_> = [9, 1, 9, 2, 9, 3].map(|host| frame(host, epoch)).into();
                    send_all(&mut sender, &burst);
                    sent.fetch_add(1, Ordering::SeqCst);
                    thread::sleep(Duration::from_micros(100));
                }
            });
            let receiver = scope.spawn(|| {
                let mut arrived = Vec::new();
                loop {
                    let last = done.load(Ordering::SeqCst);
                    let came = take(&mut far, 200);
                    arrived.extend(came.iter().map(|(_, data, _)| read(data)));
                    if last && came.len() < 200 {
                        return arrived;
                    }
                }
            });
            let all_sent = Set(&done);
            for turn in 0..20 {
                // So much is sent in each epoch.
                let before = sent.load(Ordering::SeqCst);
                while sent.load(Ordering::SeqCst) < before + 20 {
                    thread::sleep(Duration::from_millis(1));
                }
                let words = [["ban", "10.0.0.9"], ["unban", "10.0.0.9"]][turn % 2];
                epoch.fetch_add(1, Ordering::SeqCst);
                // What was sent while the ban stood is judged before it is taken back.
                let before = sent.load(Ordering::SeqCst) + 1;
                while sent.load(Ordering::SeqCst) < before || between.received() < before * 6 {
                    thread::sleep(Duration::from_millis(1));
                }
                let done = ["1 banned, 0 already banned", "1 unbanned, 0 not banned"][turn % 2];
                let answer = format!("revision {}\n{done}\n", turn + 2);
                assert_eq!(between.changed(&words), answer);
                epoch.fetch_add(1, Ordering::SeqCst);
            }
            drop(all_sent);
            receiver.join().unwrap()
        });
        let late = arrived.iter().filter(|(host, epoch)| *host == 9 && epoch % 4 == 2).count();
        assert_eq!(late, 0, "{capture}, {queues} queues, of {}", arrived.len());
        for epoch in (0..40).step_by(2) {
            let passed = |from: u8| arrived.contains(&(from, epoch));
            assert!(passed(1) && passed(3), "{capture}: epoch {epoch} of those not banned");
            assert_eq!(passed(9), epoch % 4 == 0, "{capture}: epoch {epoch}");
        }
        let (report, code) = between.end();
        assert_eq!((code, &report["ledger"]["residual"]), (0, &Value::from(0)), "{report}");
    }
}

/// AF_XDP keeps frames in its ring while the link is down.
#[test]
fn once_a_ban_is_acknowledged_not_one_packet_leaves_a_link_that_was_down() {
    for send in ["af-packet", "af-xdp"] {
        let Some(between) = Between::start(1, "default allow\n", &["--send", send]) else { return };
        let mut far = between.far();
        between.send(&[frame(9, 0)]);
        assert_eq!(take(&mut far, 1).len(), 1, "{send}: before");
        between.net.ip(Right, "link set out down");
        let waiting: Vec<_> = (1..=100).map(|number| frame(9, number)).collect();
        between.send(&waiting);
        while between.received() < 101 {
            thread::sleep(Duration::from_millis(1));
        }
        assert!(between.changed(&["ban", "10.0.0.9"]).starts_with("revision 2\n"));
        between.net.ip(Right, "link set out up");
        let mut arrived = Vec::new();
        let mut sent = 0;
        // What still waited would leave before these.
        while arrived.is_empty() && sent < 20 {
            sent += 1;
            between.send(&[frame(1, sent)]);
            arrived = take(&mut far, 1);
        }
        arrived.extend(take(&mut far, usize::MAX));
        let banned = arrived.iter().filter(|(_, data, _)| read(data).0 == 9).count();
        assert_eq!(banned, 0, "{send}: of {}", arrived.len());
        assert!(!arrived.is_empty(), "{send}: the link stays dead");
        let (report, code) = between.end();
        assert_eq!((code, &report["ledger"]["residual"]), (0, &Value::from(0)), "{report}");
        let stages = report["ledger"]["stages"].as_array().unwrap();
        let output = stages.iter().find(|stage| stage["stage"] == "output").unwrap();
        let reason = if send == "af-xdp" { "superseded" } else { "output_down" };
        assert_eq!(output["dropped"][reason], 100, "{send}: {report}");
    }
}

#[test]
fn a_control_packet_in_the_queue_takes_effect_at_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("key");
    fs::write(&key, "a key that nobody knows\n").unwrap();
    let key = key.to_str().unwrap();
    let flags = ["--control-port", "7777", "--control-key", key];
    let Some(between) = Between::start(1, "default allow\n", &flags) else { return };
    // What the command sends, taken from the loopback interface.
    let sealed = |words: &[&str]| {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let to = format!("udp:{}", socket.local_addr().unwrap());
        let (_, errors, code) =
            said(ringtap().args(["filter", "ctl", &to, "--key", key]).args(words));
        assert_eq!(code, 0, "{errors}");
        let mut payload = vec![0; 2_000];
        socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let len = socket.recv(&mut payload).unwrap();
        datagram(50, 7777, &payload[..len])
    };
    let (ban, unban) = (sealed(&["ban", "10.0.0.9"]), sealed(&["unban", "10.0.0.9"]));
    let mut far = between.far();
    let mut stream: Vec<_> = (0..100).map(|n| frame(9, n)).collect();
    stream.push(ban.clone());
    stream.extend((100..200).map(|n| frame(9, n)));
    stream.push(unban);
    stream.extend((200..300).map(|n| frame(9, n)));
    // Recorded and played again it changes nothing: it is a packet like any other.
    stream.push(ban.clone());
    stream.extend((300..400).map(|n| frame(9, n)));
    between.send(&stream);
    let arrived: Vec<_> = take(&mut far, 301).into_iter().map(|(_, data, _)| data).collect();
    let expected = (0..100).chain(200..300).map(|n| frame(9, n)).chain([ban]);
    let expected: Vec<_> = expected.chain((300..400).map(|n| frame(9, n))).collect();
    assert!(arrived == expected, "{}", arrived.len());
    let (report, _) = between.end();
    let control = &report["control"];
    assert_eq!([&control["made"], &control["refused"], &control["forged"]], [2, 0, 1], "{report}");
    assert_eq!(report["packets"]["dropped"]["control"], 2);
}

#[test]
fn rules_are_changed_listed_dumped_and_restored_while_it_runs() {
    let Some(between) = Between::start(1, "allow from 10.0.0.0/24\n", &[]) else { return };
    assert_eq!(fs::metadata(between.socket()).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(between.changed(&["add", "deny", "to", "10.0.1.0/24"]), "revision 2\n");
    let banned = between.changed(&["ban", "10.0.0.7", "10.0.0.8"]);
    assert_eq!(banned, "revision 3\n2 banned, 0 already banned\n");
    let explain = |between: &Between| between.changed(&["explain", "10.0.0.7", "10.0.2.1"]);
    assert_eq!(explain(&between), "dropped: 10.0.0.7 banned at revision 3\n");
    let dump = between.changed(&["dump"]);
    let file = between.folder.path().join("dump.txt");
    fs::write(&file, &dump).unwrap();
    // All or nothing, with the line.
    let both = between.folder.path().join("both.txt");
    fs::write(&both, "default allow\nremove allow from 10.0.0.9\n").unwrap();
    let (_, errors, code) = between.ctl(&["apply", both.to_str().unwrap()]);
    let why = "line 2: there is no \"allow from 10.0.0.9 to any\"";
    assert!(code == 1 && errors.contains(why), "{errors}");
    let dry = between.changed(&["--dry-run", "unban", "10.0.0.7"]);
    assert!(dry.starts_with("revision 4 would have 2 rules, 1 bans"), "{dry}");
    fs::write(&both, "default allow\n").unwrap();
    assert_eq!(between.changed(&["replace", both.to_str().unwrap()]), "revision 4\n");
    assert!(explain(&between).starts_with("accepted: "));
    let restored = between.changed(&["apply", file.to_str().unwrap()]);
    assert_eq!(restored, "revision 5\n2 banned, 0 already banned\n");
    between.send(&[frame(1, 0), frame(7, 0)]);
    let mut status = Value::Null;
    while status["packets"]["received"] != 2 {
        status = serde_json::from_str(&between.changed(&["status"])).unwrap();
    }
    assert_eq!(status["rules"]["revision"], 5);
    let list = between.changed(&["list"]);
    assert!(list.starts_with("revision 5, default deny\n"), "{list}");
    assert!(list.contains("of revision 5: deny from any to 10.0.1.0/24; packets: 1\n"), "{list}");
    assert!(list.contains("ban of revision 5: 10.0.0.7\n"), "{list}");
    assert!(list.ends_with("packets: 1 by bans, 0 by no rule\n"), "{list}");
    let socket = between.socket();
    let (report, code) = between.end();
    assert_eq!((code, &report["rules"]["revision"]), (0, &Value::from(5)));
    assert!(!socket.exists());
}

#[test]
fn nonsense_at_the_socket_is_an_error_and_nothing_else() {
    let Some(between) = Between::start(1, "default deny\n", &[]) else { return };
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
        let mut stream = UnixStream::connect(between.socket()).unwrap();
        // It may have heard enough before all is said.
        let _ = stream.write_all(bytes);
        drop(stream);
    }
    let banned = |answer: &str| answer.ends_with("\n1 banned, 0 already banned\n");
    assert!(banned(&between.changed(&["ban", "10.0.0.1"])));
    // Somebody who keeps silent does not keep others out for ever.
    let _silent = UnixStream::connect(between.socket()).unwrap();
    assert!(banned(&between.changed(&["ban", "10.0.0.2"])));
    // A second filter does not take the socket away.
    let socket = format!("unix:{}", between.socket().display());
    let flags = ["filter", "-i", "right", "-o", "out", "--control", &socket];
    let (_, errors, code) = between.net.run(Right, &flags);
    assert!(code == 1 && errors.contains("another one listens"), "{errors}");
    let last = between.changed(&["ban", "10.0.0.3"]);
    assert!(last.starts_with("revision 4\n") && banned(&last), "{last}");
}

#[test]
fn to_ban_twice_and_to_unban_what_is_not_banned_succeeds_and_says_so() {
    let Some(between) = Between::start(1, "default allow\nban 10.0.0.1\nban 10.0.0.1\n", &[])
    else {
        return;
    };
    let changed = |words: &[&str]| between.changed(words);
    assert_eq!(changed(&["ban", "10.0.0.1"]), "revision 2\n0 banned, 1 already banned\n");
    assert_eq!(changed(&["unban", "10.0.0.2"]), "revision 3\n0 unbanned, 1 not banned\n");
    let dry = changed(&["--dry-run", "ban", "10.0.0.1", "10.0.0.2"]);
    assert!(dry.starts_with("revision 4 would have 0 rules, 2 bans, "), "{dry}");
    assert!(dry.ends_with("\n1 banned, 1 already banned\n"), "{dry}");
    // A list with many lines twice, some of them banned before.
    let list = between.folder.path().join("list.txt");
    let lines: String = (0..20_000_u32)
        .map(|n| n % 10_000)
        .map(|n| format!("ban 10.0.{}.{}\n", n / 256, n % 256))
        .collect();
    fs::write(&list, lines).unwrap();
    let said = changed(&["apply", list.to_str().unwrap()]);
    assert_eq!(said, "revision 4\n9999 banned, 10001 already banned\n");
    let said = changed(&["apply", list.to_str().unwrap()]);
    assert_eq!(said, "revision 5\n0 banned, 20000 already banned\n");
    let said = changed(&["unban", "10.0.0.1", "10.0.0.1"]);
    assert_eq!(said, "revision 6\n1 unbanned, 1 not banned\n");
    assert!(changed(&["explain", "10.0.0.1", "10.9.9.9"]).starts_with("accepted: "));
    assert_eq!(
        changed(&["explain", "10.0.0.2", "10.9.9.9"]),
        "dropped: 10.0.0.2 banned at revision 4\n"
    );
    let (report, code) = between.end();
    assert_eq!((code, &report["rules"]["bans"]), (0, &Value::from(9_999)), "{report}");
}

/// Clients that say nothing, say a byte now and then, or do not read, keep no other waiting.
#[test]
fn slow_clients_of_the_control_socket_hold_up_nobody() {
    let Some(between) = Between::start(1, "allow from 10.0.0.0/25\n", &[]) else { return };
    let connect = || UnixStream::connect(between.socket()).unwrap();
    let mut clients: Vec<_> = (0..200).map(|_| connect()).collect();
    assert!(between.changed(&["list"]).contains("allow from 10.0.0.0/25"));
    for (at, client) in clients.iter_mut().enumerate() {
        let words: &[u8] = [&b"apply 100\nba"[..], b"dump 0\n", b"apply 500000000\nban"][at % 3];
        // It may have lost its place.
        let _ = client.write_all(words);
    }
    assert!(between.changed(&["ban", "10.0.0.9"]).contains("revision"));
    // One that sends a byte now and then is told that it is late, or closed, though it never pauses for long.
    let mut slow = connect();
    slow.write_all(b"apply 100000\n").unwrap();
    let mut bytes = 0;
    while slow.write_all(b"#").is_ok() {
        thread::sleep(Duration::from_millis(100));
        bytes += 1;
        assert!(bytes < 600, "a question may take without end");
        if bytes % 10 == 0 {
            assert!(between.changed(&["dump"]).contains("ban 10.0.0.9"));
        }
    }
    let (_, code) = between.end();
    assert_eq!(code, 0);
}

/// Of drops that cannot be written the filter goes on, says so, and leaves no cut capture.
#[test]
fn drops_that_do_not_fit_the_disk_are_a_failure_and_leave_no_file() {
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
    let filter = Beside::start(command, "control: ");
    let sent: Vec<_> = (0..6_000).map(|n| frame(1, n)).collect();
    send_all(&mut net.sender(&SendOptions::default()), &sent);
    let socket = folder.path().join("socket");
    let received = || {
        let (out, errors, code) =
            said(ringtap().args(["filter", "ctl"]).arg(&socket).arg("status"));
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
