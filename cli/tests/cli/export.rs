//! Tests of export to real collectors on loopback: nfcapd, nfacctd, openssl, tshark and ipfixDump.
//! Their counts must equal those of the report.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::{TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ringtap_export::sums::Sum;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::arrived::sum;
use crate::common::{have, office, output_of, real_folder, ringtap};
use crate::signals::Waiting;

/// The bundled capture, and captures of `shared/traces` or generated ones in their place.
fn captures() -> Vec<PathBuf> {
    let names = [
        "o001-example.pcap",
        "o003-1kxun.pcap",
        "o004-gnutella.pcap",
        "o006-sanitized4k.pcap",
        "o009-fragtest.pcap",
        "o010-vlan.pcap",
        "o011-QinQpacket.pcap",
        "o013-mixed-vlan-mpls.pcap",
        "o015-gre-within-gre.pcap",
        "o017-vxlan.pcap",
        "o020-ipv6_in_gtp.pcap",
        "o022-6in4tunnel.pcap",
        "o025-raw_ip.pcap",
        "o035-ipv6-hbh-routing0.pcap",
        "o041-synscan.pcap",
        "o048-icmpv4-ping.pcap",
        "o049-sctp-www.pcap",
        "o050-combined.pcap",
    ];
    let mut all = vec![office()];
    if let Some(folder) = real_folder() {
        all.extend(names.map(|name| folder.join(name)));
    } else {
        eprintln!("SKIPPED: no folder of real captures next to the project (shared/traces)");
        all.extend(GENERATED.iter().cloned());
    }
    all
}

/// Captures that take the place of real ones.
static GENERATED: LazyLock<Vec<PathBuf>> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let profiles = ["w1", "w2", "w3", "mix", "scans", "steady", "flood"];
    let make = |(seed, profile): (u64, &&str)| {
        let path = folder.join(format!("{profile}-{seed}-{}.pcap", std::process::id()));
        let mut command = ringtap();
        command.args(["generate", "--packets", "3k", "--flows", "300", "--profile", profile]);
        command.args(["--seed", &seed.to_string(), "-w"]).arg(&path).assert().success();
        path
    };
    (1..=2).flat_map(|seed| profiles.iter().map(move |profile| (seed, profile))).map(make).collect()
});

pub(crate) fn free_port() -> u16 {
    UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Waits up to a minute for a condition.
pub(crate) fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    for _ in 0..3_000 {
        if condition() {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("timed out: {what}");
}

/// Whether a UDP socket of this machine is bound to the port.
fn is_bound(port: u16) -> bool {
    let table = fs::read_to_string("/proc/net/udp").unwrap();
    table.lines().any(|line| line.contains(&format!(":{port:04X} 00000000:0000")))
}

/// Whether the socket at the port has unread datagrams.
fn has_unread(port: u16) -> bool {
    let table = fs::read_to_string("/proc/net/udp").unwrap();
    let empty = format!(":{port:04X} 00000000:0000 07 00000000:00000000");
    is_bound(port) && !table.lines().any(|line| line.contains(&empty))
}

/// Whether all threads of a process and of its children wait.
fn waits(process: &str) -> bool {
    let Ok(mut threads) = fs::read_dir(format!("/proc/{process}/task")) else { return true };
    threads.all(|thread| {
        let thread = thread.unwrap().path();
        let read = |name| fs::read_to_string(thread.join(name)).unwrap_or_default();
        read("stat").contains(") S ") && read("children").split_whitespace().all(waits)
    })
}

/// A collector process. [`Self::end`] interrupts it; drop kills it, for example if the test fails.
pub(crate) struct Collector(Child);

impl Collector {
    pub(crate) fn start(command: &mut Command, port: u16) -> Self {
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut collector = Self(child.spawn().unwrap());
        wait_until("the collector listens", || {
            assert!(collector.0.try_wait().unwrap().is_none(), "the collector ended: {command:?}");
            is_bound(port)
        });
        collector
    }

    /// Waits until the collector has read all datagrams, interrupts it and waits for its end.
    pub(crate) fn end(mut self, port: u16) {
        wait_until("the collector has read everything", || {
            !has_unread(port) && waits(&self.0.id().to_string())
        });
        kill_process(Pid::from_child(&self.0), Signal::INT).unwrap();
        wait_until("the collector ends", || self.0.try_wait().unwrap().is_some());
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Counts of flows, packets and octets.
pub(crate) type Totals = [u64; 3];

pub(crate) fn totals(counts: &Value) -> Totals {
    ["records", "packets", "octets"].map(|name| counts[name].as_u64().unwrap())
}

/// Monitors `capture`, exports to `urls` and returns the report.
fn export(capture: &Path, urls: &[String]) -> Value {
    export_with(&[], capture, urls)
}

/// As [`export`], with more flags.
fn export_with(flags: &[&str], capture: &Path, urls: &[String]) -> Value {
    let mut command = ringtap();
    command.args(["monitor", "-q", "--force", "--report", "json"]);
    command.args(flags).arg("-r").arg(capture);
    command.args(urls.iter().flat_map(|url| ["--export", url]));
    let (report, errors, code) = output_of(&mut command);
    assert_eq!(code, 0, "{}: {errors}", capture.display());
    serde_json::from_str(&report).unwrap()
}

/// Checks that the counts of what was sent and not sent add up to those of the report.
fn check_totals(report: &Value, export: &Value) {
    let mut all = totals(&export["sent"]);
    for (_, counts) in export["not_sent"].as_object().unwrap() {
        let more = totals(counts);
        (0..3).for_each(|at| all[at] += more[at]);
    }
    let packets = &report["packets"];
    assert_eq!(all[1], packets["ipv4"].as_u64().unwrap() + packets["ipv6"].as_u64().unwrap());
    // The report counts outermost headers; flows have the innermost one.
    let octets = report["octets"]["ip"].as_u64().unwrap();
    if packets["inner"].as_u64().unwrap_or(0) == 0 {
        assert_eq!(all[2], octets);
    } else {
        assert!(0 < all[2] && all[2] < octets, "{all:?} of {octets}");
    }
    if export["collector"].as_str().unwrap().starts_with("ipfix") {
        assert_eq!(all[0], report["flows"]["records"].as_u64().unwrap());
    }
}

/// The totals of nfdump for the files of nfcapd, and its count of sequence failures.
pub(crate) fn nfdump(folder: &Path) -> (Totals, u64) {
    let output = Command::new("nfdump").arg("-I").arg("-R").arg(folder).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let number = |name: &str| -> u64 {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_else(|| panic!("no {name} in {text}")).trim().parse().unwrap()
    };
    (["Flows:", "Packets:", "Bytes:"].map(number), number("Sequence failures:"))
}

#[test]
fn nfcapd_counts_equal_those_of_the_report() {
    if !have("nfcapd") || !have("nfdump") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut captures = captures();
    if rustix::process::geteuid().is_root() {
        let many = folder.path().join("many.pcap");
        let mut command = ringtap();
        command.args(["generate", "--profile", "w2", "--packets", "200k", "--flows", "50k", "-w"]);
        command.arg(&many).assert().success();
        captures.push(many);
    } else {
        eprintln!("SKIPPED: only root may give a collector a buffer for 50,000 flows");
    }
    let mut compared = [0; 3];
    for capture in captures {
        // All three in one run, which tests several collectors at once.
        let schemes = ["ipfix", "netflow9", "netflow5"];
        let collectors = schemes.map(|scheme| {
            let name = capture.file_stem().unwrap().to_string_lossy().into_owned();
            let flows = folder.path().join(format!("{scheme}-{name}"));
            fs::create_dir(&flows).unwrap();
            let port = free_port();
            let mut command = Command::new("nfcapd");
            // The buffer holds all datagrams, so a busy machine loses none.
            command.args(["-b", "127.0.0.1", "-B", "8000000", "-p", &port.to_string()]);
            // One file: nfdump cannot read an empty second one.
            command.args(["-t", "86400", "-w"]);
            (
                (Collector::start(command.arg(&flows), port), port),
                format!("{scheme}://127.0.0.1:{port}"),
                flows,
            )
        });
        let urls = collectors.each_ref().map(|(_, url, _)| url.clone());
        let written = folder.path().join("flows.json");
        let write = format!("json:{}", written.display());
        let report = export_with(&["--write", &write], &capture, &urls);
        let (expected, _) = sum(&written);
        for (((collector, port), url, flows), at) in collectors.into_iter().zip(0..) {
            // The last datagram is in the collector's buffer before the report is printed.
            collector.end(port);
            let sent = &report["export"][at];
            assert_eq!(sent["collector"], url);
            check_totals(&report, sent);
            let all = totals(&sent["sent"]);
            let (counted, gaps) = nfdump(&flows);
            println!("{url} {}: {counted:?}", capture.display());
            assert_eq!((counted, gaps), (all, 0), "{}: {sent}", capture.display());
            if all[1..] == [expected.packets, expected.octets] {
                // Every record was sent: the collector has each direction with its key, times and counts.
                let (arrived, is_whole) = sum(&flows);
                let rows = if at == 0 { expected.rows } else { expected.directions };
                let core = Sum { rows, all: arrived.all, ..expected };
                assert_eq!((arrived, is_whole), (core, false), "{url} {}", capture.display());
                compared[at] += 1;
            }
        }
    }
    println!("compared by core: {compared:?}");
    assert!(compared.iter().all(|&count| count > 0), "{compared:?}");
}

/// Exports the office capture to nfacctd and waits until its counts of packets and octets are those
/// that `expected` takes from the report.
fn nfacctd(flags: &[&str], scheme: &str, expected: impl Fn(&Value) -> [u64; 2]) {
    let folder = tempfile::tempdir().unwrap();
    let (port, out) = (free_port(), folder.path().join("flows.csv"));
    let configuration = folder.path().join("nfacctd.conf");
    let text = format!(
        "daemonize: false\nplugins: print\naggregate: src_host, dst_host, src_port, dst_port, proto\n\
         print_output: csv\nprint_output_file: {}\nprint_output_file_append: true\nprint_refresh_time: 1\n\
         plugin_buffer_size: 1024000\nplugin_pipe_size: 10240000\n\
         nfacctd_pipe_size: 8000000\nnfacctd_ip: 127.0.0.1\nnfacctd_port: {port}\nnfacctd_time_new: true\n",
        out.display()
    );
    fs::write(&configuration, text).unwrap();
    let mut command = Command::new("/usr/sbin/nfacctd");
    let collector = Collector::start(command.arg("-f").arg(&configuration), port);
    let report = export_with(flags, &office(), &[format!("{scheme}://127.0.0.1:{port}")]);
    let sum = || {
        let text = fs::read_to_string(&out).unwrap_or_default();
        let mut sum = [0; 2];
        for line in text.lines().filter(|line| !line.starts_with("SRC_IP")) {
            let cells: Vec<_> = line.split(',').collect();
            if let [.., packets, octets] = &cells[..] {
                sum[0] += packets.parse::<u64>().unwrap_or(0);
                sum[1] += octets.parse::<u64>().unwrap_or(0);
            }
        }
        sum
    };
    let expected = expected(&report);
    // nfacctd writes its cached flows when it ends.
    collector.end(port);
    wait_until("nfacctd has counted everything", || sum() == expected);
}

#[test]
fn nfacctd_counts_both_directions_of_netflow9_and_of_uniflows() {
    if !have("nfacctd") {
        return;
    }
    let all = |report: &Value| {
        let [_, packets, octets] = totals(&report["export"][0]["sent"]);
        [packets, octets]
    };
    nfacctd(&[], "netflow9", all);
    nfacctd(&["--uniflow"], "ipfix", all);
}

#[test]
fn nfacctd_counts_the_forward_direction_of_biflows() {
    if !have("nfacctd") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("flows.json");
    let write = format!("json:{}", json.display());
    nfacctd(&["--write", &write], "ipfix", |_| {
        let mut sum = [0; 2];
        for line in fs::read_to_string(&json).unwrap().lines() {
            let record: Value = serde_json::from_str(line).unwrap();
            sum[0] += record["packetDeltaCount"].as_u64().unwrap();
            sum[1] += record["octetDeltaCount"].as_u64().unwrap();
        }
        sum
    });
}

/// The number of flow data records per template, as ipfixDump counts them in an IPFIX file.
fn ipfix_dump(file: &Path) -> std::collections::BTreeMap<u64, u64> {
    let output = Command::new("ipfixDump").arg("--stats").arg("--in").arg(file).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    // " 260 (0x0104)| 17"
    let line = |line: &str| {
        let (template, count) = line.split_once('|')?;
        let template = template.split_whitespace().next()?.parse().ok()?;
        Some((template, count.trim().parse().ok()?))
    };
    // Options templates have the numbers from 320 to 383.
    let is_of_flows = |template: u64| !(320..384).contains(&template);
    text.lines().filter_map(line).filter(|(template, _)| is_of_flows(*template)).collect()
}

#[test]
fn ipfix_dump_counts_every_record_and_uniflows_have_no_reverse_elements() {
    if !have("ipfixDump") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("flows.ipfix");
    let url = [format!("ipfix-file:{}", file.display())];
    // Bit 2 of a template's number: it has reverse elements.
    let reverse = |counts: &std::collections::BTreeMap<u64, u64>| -> u64 {
        counts.iter().filter(|(template, _)| *template & 4 != 0).map(|(_, count)| count).sum()
    };
    for capture in captures() {
        let report = export(&capture, &url);
        let counts = ipfix_dump(&file);
        let sum: u64 = counts.values().sum();
        assert_eq!(sum, report["flows"]["records"].as_u64().unwrap(), "{}", capture.display());
        if capture == office() {
            assert!(reverse(&counts) > 1000, "{counts:?}");
        }

        let report = export_with(&["--uniflow"], &capture, &url);
        let counts = ipfix_dump(&file);
        let sum: u64 = counts.values().sum();
        assert_eq!(sum, report["flows"]["records"].as_u64().unwrap(), "{}", capture.display());
        assert_eq!(reverse(&counts), 0, "{}: {counts:?}", capture.display());
    }

    let many = folder.path().join("many.pcap");
    let mut command = ringtap();
    command.args(["generate", "--profile", "w3", "--packets", "2M", "--flows", "1M", "-w"]);
    command.arg(&many).assert().success();
    let report = export(&many, &url);
    let counts = ipfix_dump(&file);
    assert_eq!(counts.values().sum::<u64>(), report["flows"]["records"].as_u64().unwrap());
    assert!(counts.values().sum::<u64>() >= 1_000_000, "{counts:?}");
}

/// The values of `fields` that tshark prints for each message of a file.
pub(crate) fn tshark(file: &Path, fields: &[&str]) -> Vec<Vec<String>> {
    let mut command = Command::new("tshark");
    command.arg("-r").arg(file).args(["-T", "fields", "-E", "separator=;"]);
    let output = command.args(fields.iter().flat_map(|field| ["-e", field])).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| line.split(';').map(str::to_owned).collect()).collect()
}

#[test]
fn tshark_decodes_every_field_of_an_ipfix_file() {
    if !have("tshark") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for capture in captures() {
        let file = folder.path().join("flows.ipfix");
        let report = export(&capture, &[format!("ipfix-file:{}", file.display())]);
        check_totals(&report, &report["export"][0]);
        let fields = ["_ws.malformed", "_ws.expert", "cflow.no_template_found", "cflow.octets"];
        let fields = [&fields[..], &["cflow.packets", "cflow.sequence"]].concat();
        let rows = tshark(&file, &fields);
        assert_eq!(rows.len() as u64, report["export"][0]["sent"]["messages"].as_u64().unwrap());
        let sum = |at: usize| -> u64 {
            let numbers = rows.iter().flat_map(|row| row[at].split(','));
            numbers.filter(|n| !n.is_empty()).map(|n| n.parse::<u64>().unwrap()).sum()
        };
        for row in &rows {
            assert_eq!(row[..3], ["", "", ""], "{}", capture.display());
        }
        // The reverse elements have the same names.
        let [_, packets, octets] = totals(&report["export"][0]["sent"]);
        assert_eq!((sum(4), sum(3)), (packets, octets), "{}", capture.display());

        let verbose = Command::new("tshark").arg("-V").arg("-r").arg(&file).output().unwrap();
        // Old versions of tshark do not know gtpuTEid.
        let text = String::from_utf8_lossy(&verbose.stdout).replace("Unknown(507)", "");
        let text = text.replace("Type: Unknown (507)", "");
        for word in ["Malformed", "Expert Info", "No template", "Unknown"] {
            assert!(!text.contains(word), "{word}: {}", capture.display());
        }
        for template in 256..326 {
            assert!(text.contains(&format!("Template Id: {template}")), "{template}");
        }
    }
}

#[test]
fn openssl_receives_over_tls_the_same_records_as_a_file() {
    if !have("openssl") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let port = free_port();
    let request = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=collector \
        -addext subjectAltName=IP:127.0.0.1 -addext basicConstraints=critical,CA:FALSE";
    let mut command = Command::new("openssl");
    command.args(request.split_whitespace());
    command.args(["-keyout", &path("key"), "-out", &path("certificate")]);
    assert!(command.output().unwrap().status.success());

    let (certificate, key) = (path("certificate"), path("key"));
    let serve = |more: &[&str]| {
        let mut command = Command::new("openssl");
        command.args(["s_server", "-quiet", "-naccept", "1", "-accept", &port.to_string()]);
        command.args(["-cert", &certificate, "-key", &key]).args(more);
        let received = fs::File::create(path("received")).unwrap();
        let child = command.stdin(Stdio::piped()).stdout(received).stderr(Stdio::null()).spawn();
        let child = Collector(child.unwrap());
        let listens = format!(":{port:04X} 00000000");
        wait_until("openssl listens", || {
            ["/proc/net/tcp", "/proc/net/tcp6"].iter().any(|table| {
                let table = fs::read_to_string(table).unwrap_or_default();
                table.lines().any(|line| line.contains(&listens) && line.contains(" 0A "))
            })
        });
        child
    };
    let file = format!("ipfix-file:{}", path("flows.ipfix"));
    let tls = format!("ipfix+tls://127.0.0.1:{port}");
    let flags = ["--tls-ca", &certificate];

    let mut server = serve(&[]);
    let report = export_with(&flags, &office(), &[tls.clone(), file]);
    wait_until("openssl has seen the end", || server.0.try_wait().unwrap().is_some());
    let received = fs::read(path("received")).unwrap();
    assert_eq!(report["export"][0]["sent"]["message_octets"], received.len());
    check_totals(&report, &report["export"][0]);
    if have("ipfixDump") {
        let counts = ipfix_dump(Path::new(&path("received")));
        assert_eq!(counts, ipfix_dump(Path::new(&path("flows.ipfix"))));
        assert_eq!(counts.values().sum::<u64>(), 1921);
    }

    // A collector that requires a client certificate: first with one (the same as the server's),
    // then without.
    let verify = ["-Verify", "1", "-verify_return_error", "-CAfile", &certificate];
    let mut server = serve(&verify);
    let own = ["--tls-ca", &certificate, "--tls-cert", &certificate, "--tls-key", &key];
    export_with(&own, &office(), std::slice::from_ref(&tls));
    wait_until("openssl has seen the end", || server.0.try_wait().unwrap().is_some());

    let _server = serve(&verify);
    let mut command = ringtap();
    command.args(["monitor", "-q", "--export", &tls]).args(flags).arg("-r").arg(office());
    let (out, errors, code) = output_of(&mut command);
    assert!(code == 1 && out.contains("Flows"), "{errors}");
    assert!(errors.contains("flow records lost"), "{errors}");
}

#[test]
fn flags_of_tls_are_checked_before_the_run() {
    let run = |flags: &[&str]| {
        let mut command = ringtap();
        command.args(["monitor", "-q", "--export", "ipfix+tls://127.0.0.1:9"]).args(flags);
        output_of(command.arg("-r").arg(office()))
    };
    let (out, errors, code) = run(&["--tls-ca", "no/such/file"]);
    assert_eq!((out.as_str(), code), ("", 1), "{errors}");
    assert!(errors.contains("no/such/file"), "{errors}");
    let (_, errors, code) = run(&["--tls-cert", "a.pem"]);
    assert!(code == 2 && errors.contains("--tls-key"), "{errors}");
}

#[test]
fn a_full_disk_is_reported_and_messages_that_fit_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().join("disk");
    fs::create_dir(&disk).unwrap();
    // A tmpfs of 64 KiB in a new mount namespace.
    let script = "mount -t tmpfs -o size=64k tmpfs \"$1\" || exit 99
        \"$2\" monitor -q --export ipfix-file:\"$1\"/flows.ipfix -r \"$3\"; code=$?; ls -A \"$1\"; exit $code";
    let mut command = Command::new("unshare");
    command.args(["-Urm", "sh", "-c", script, "sh"]).arg(&disk);
    let output = command.arg(env!("CARGO_BIN_EXE_ringtap")).arg(office()).output();
    let output = match output {
        Ok(output) if output.status.code() != Some(99) => output,
        _ => return eprintln!("SKIPPED: a small disk needs a mount namespace"),
    };
    let errors = String::from_utf8_lossy(&output.stderr);
    if errors.contains("unshare") {
        return eprintln!("SKIPPED: a small disk needs a mount namespace");
    }
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(errors.contains("No space left") && errors.contains("flow records lost"), "{errors}");
    let out = String::from_utf8_lossy(&output.stdout);
    // The file has its final name and as many whole messages as fit.
    assert!(out.contains("Flows") && out.ends_with("\nflows.ipfix\n"), "{out}");
}

#[test]
fn a_file_is_complete_or_absent() {
    let folder = tempfile::tempdir().unwrap();
    let names = || fs::read_dir(folder.path()).unwrap().count();
    let mut command = ringtap();
    command.current_dir(&folder).args(["monitor", "-q", "-r"]).arg(office());
    let (out, errors, code) = output_of(command.args(["--export", "ipfix-file:flows.ipfix"]));
    assert!(code == 0 && errors.is_empty() && out.contains("1,921 records"), "{out}{errors}");
    let octets = fs::read(folder.path().join("flows.ipfix")).unwrap();
    assert_eq!((names(), &octets[..2]), (1, &[0, 10][..]));

    let (out, errors, code) = output_of(
        ringtap()
            .args(["monitor", "-q", "--export", "ipfix-file:no/such/folder", "-r"])
            .arg(office()),
    );
    assert_eq!((out.as_str(), code), ("", 1), "before the run: {errors}");
    assert!(errors.contains("ipfix-file:no/such/folder: No such file"), "{errors}");

    if !Path::new("/dev/full").exists() {
        eprintln!("SKIPPED: a full device needs /dev/full");
        return;
    }
    let (out, errors, code) = output_of(
        ringtap().args(["monitor", "-q", "--export", "ipfix-file:/dev/full", "-r"]).arg(office()),
    );
    assert_eq!(code, 1, "{errors}");
    assert!(
        errors.contains("No space left") && errors.contains("1,921 flow records lost"),
        "{errors}"
    );
    assert!(out.contains("Flows"), "the report is still printed: {out}");
}

#[test]
fn with_messages_on_stdout_the_report_is_on_stderr_and_a_closed_pipe_is_not_an_error() {
    let run = |messages: Stdio| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ringtap"));
        command.args(["monitor", "-q", "--sequential", "--export", "ipfix-file:-", "-r"]);
        let command = command.arg(office()).env("NO_COLOR", "1").stdout(messages);
        command.stderr(Stdio::piped()).spawn().unwrap()
    };
    let output = run(Stdio::piped()).wait_with_output().unwrap();
    assert_eq!((output.status.code(), &output.stdout[..2]), (Some(0), &[0, 10][..]));
    assert!(String::from_utf8_lossy(&output.stderr).contains("Flows"));

    let mut child = run(Stdio::piped());
    drop(child.stdout.take());
    let mut errors = String::new();
    child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{errors}");
    assert!(
        errors.contains("ipfix-file:-        0         0  1,921") && errors.contains("Flows"),
        "{errors}"
    );
}

#[test]
fn a_collector_that_is_down_is_reported_and_fails_the_run_only_over_tcp() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    for scheme in ["ipfix", "ipfix+tcp", "netflow5"] {
        let url = format!("{scheme}://127.0.0.1:{port}");
        let (out, errors, code) =
            output_of(ringtap().args(["monitor", "-q", "--export", &url, "-r"]).arg(office()));
        let failure = format!("writing to {url}: Connection refused");
        let is_tcp = scheme == "ipfix+tcp";
        assert_eq!((code, errors.contains(&failure)), (i32::from(is_tcp), is_tcp), "{errors}");
        assert!(errors.contains("flow records lost"), "{errors}");
        assert!(out.contains("Export") && out.contains("Flows"), "{out}");
    }
}

#[test]
fn records_that_are_not_exported_count_as_losses() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let url = format!("netflow5://{}", socket.local_addr().unwrap());
    let flags = ["monitor", "-q", "--fail-on-drop", "--export", &url, "-r"];
    let (_, errors, code) = output_of(ringtap().args(flags).arg(office()));
    assert!(code == 3 && errors.contains("flow records not exported: 148"), "{errors}");
    assert!(errors.contains("NetFlow v5 has no IPv6"), "{errors}");
}

#[test]
fn an_endless_run_sends_flows_as_they_end_and_the_rest_when_interrupted() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let url = format!("netflow9://{}", socket.local_addr().unwrap());
    let mut child = Command::new(env!("CARGO_BIN_EXE_ringtap"))
        .args(["monitor", "--stats", "20ms", "--report", "json", "--idle-timeout", "1s"])
        .args([
            "--observation-domain",
            "4711",
            "--template-refresh",
            "1h,2",
            "--export",
            &url,
            "-r",
            "-",
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let bytes = fs::read(office()).unwrap();
    let mut stdin = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut stdin, &bytes).unwrap();
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains(" 8,192 packets") {
        line.clear();
        assert!(errors.read_line(&mut line).unwrap() > 0);
    }
    // Idle flows are sent although no packet arrives and the last message is not full.
    let mut datagram = [0; 2000];
    let mut seen = Vec::new();
    let octets = socket.recv(&mut datagram).unwrap();
    seen.push(datagram[..octets].to_vec());
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let ended = AtomicBool::new(false);
    socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let report = std::thread::scope(|scope| {
        // The socket's buffer is too small for all datagrams.
        scope.spawn(|| {
            loop {
                let all_came = ended.load(Ordering::SeqCst);
                match socket.recv(&mut datagram) {
                    Ok(octets) => seen.push(datagram[..octets].to_vec()),
                    Err(_) if all_came => break,
                    Err(_) => {}
                }
            }
        });
        let mut report = String::new();
        let read = child.stdout.take().unwrap().read_to_string(&mut report);
        let code = child.wait().map(|status| status.code());
        ended.store(true, Ordering::SeqCst);
        read.unwrap();
        // A pipe that has not ended is a file that was not read whole.
        assert_eq!(code.unwrap(), Some(130));
        report
    });
    let report: Value = serde_json::from_str(&report).unwrap();
    check_totals(&report, &report["export"][0]);
    assert!(seen.iter().all(|message| message[16..20] == 4711u32.to_be_bytes()));
    // A message that starts with set 0 has templates: sent again after every second message.
    let templates = seen.iter().filter(|message| message[20..22] == [0, 0]).count();
    assert!(templates > 20, "{templates} of {}", seen.len());
}

#[test]
fn a_hangup_starts_another_file() {
    let folder = tempfile::tempdir().unwrap();
    let monitor = Waiting::new(folder.path(), &["--export", "ipfix-file:flows.ipfix"]);
    let (first, second) = (folder.path().join("flows.ipfix"), folder.path().join("flows.1.ipfix"));
    monitor.send(Signal::HUP);
    wait_until("the first file is complete", || first.exists());
    monitor.send(Signal::INT);
    let (code, report, errors) = monitor.end();
    assert_eq!(code, Some(130), "{errors}");
    let report: Value = serde_json::from_str(&report).unwrap();
    check_totals(&report, &report["export"][0]);
    let octets = [first, second].map(|file| fs::read(file).unwrap());
    assert!(octets.iter().all(|octets| octets[..2] == [0, 10]), "templates in each");
    let all = octets.iter().map(Vec::len).sum::<usize>() as u64;
    assert_eq!(report["export"][0]["sent"]["message_octets"], all);
}
