//! Sends a record of every template to real collectors, which must decode and count all of them.

use std::fs::File;
use std::io::{self, Write};
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use ringtap_export::formats::{Interface, Interfaces};
use ringtap_export::{Meter, Metered, Output, Prepared, Sampling, Settings, Store, Summary};
use ringtap_flow::{FlowRecord, FlowStatistics, Path as Way, TunnelKind};

use crate::common::{answered, echo_v6, record_sinks, tunnelled};
use crate::facts::layouts;

/// Records of all kinds: both IP versions, ICMP, answered and not, with all paths and tunnels.
pub(crate) fn records() -> Vec<FlowRecord> {
    let mut v6 = answered();
    v6.key.version = echo_v6().key.version;
    (v6.key.src, v6.key.dst) = (echo_v6().key.src, echo_v6().key.dst);
    let mut echo_v4 = answered();
    (echo_v4.key.protocol, echo_v4.icmp_type_code) = (1, 0x0800);
    echo_v4.reverse_icmp_type_code = Some(3);
    let kinds = [answered(), v6, echo_v4, echo_v6()];

    let (plain, tunnel) = (answered().path, tunnelled().path.tunnel.unwrap());
    let mut ways = vec![Way::default(), Way { vlan_tags: 0, vlans: [0; 2], ..plain }, plain];
    for kind in TunnelKind::ALL {
        for ipv6 in [false, true] {
            let mut tunnel = ringtap_flow::Tunnel { kind, ipv6, ..tunnel };
            if ipv6 {
                tunnel.src[15] = 1;
            }
            ways.push(Way { tunnel: Some(tunnel), ..plain });
        }
    }
    let labelled: Vec<_> =
        ways[2..].iter().map(|way| Way { mpls_label: Some(77), ..*way }).collect();
    ways.extend(labelled);
    let mut all = Vec::new();
    for kind in kinds {
        for path in &ways {
            for back in [0, 2] {
                let mut record = FlowRecord { path: *path, ..kind.clone() };
                record.packets[1] = back;
                record.octets[1] = back * 100;
                all.push(record.clone());
                // The answers have another tag.
                let other = Way { vlan_tags: 1, vlans: [8, 0], ..path.reversed() };
                all.push(FlowRecord { reverse_path: Some(Box::new(other)), ..record });
            }
        }
    }
    let with_facts: Vec<_> =
        all.iter().filter(|record| record.icmp_type_code == 0).flat_map(layouts).collect();
    all.extend(with_facts);
    all
}

struct Plain(File);

impl Store for Plain {
    fn write(&mut self, octets: &[u8]) -> io::Result<()> {
        self.0.write_all(octets)
    }

    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn is_regular(&self) -> bool {
        true
    }

    fn may_abandon(&self) -> bool {
        false
    }
}

fn export(url: &str, sampling: Option<Sampling>, statistics: bool) -> Summary {
    let meter = Some(Meter::new(|| Metered { packets: 10, ..Metered::default() }));
    let domain_name = Some("site b".to_owned());
    let named = |index, name: &str, description: &str| Interface {
        index,
        name: name.to_owned(),
        description: description.to_owned(),
    };
    let interfaces =
        Interfaces::new(&[named(7, "eth0", "uplink \u{1}"), named(70_000, "eth1", "")]);
    let interfaces = interfaces.with_statistics(statistics);
    let settings = Settings { sampling, meter, domain_name, interfaces, ..Settings::default() };
    let output = url.parse::<Output>().unwrap();
    let open = |path: &Path| Ok(Box::new(Plain(File::create(path)?)) as Box<dyn Store>);
    let prepared = Prepared::new(&[output], settings).unwrap();
    let (mut sinks, exports) = record_sinks(prepared.start(1, open).unwrap());
    let received = |record| {
        let mut record: FlowRecord = record;
        record.path.ingress = 7;
        if statistics {
            let packets = (0..5).map(|n| (n % 2, n as u64 * 1_000_000, 100 + n as u32, 24));
            record.statistics = FlowStatistics::of(30, packets);
        }
        record
    };
    records().into_iter().map(received).for_each(|record| sinks[0].take(&record));
    sinks[0].finish();
    let summary = exports.finish().remove(0);
    assert_eq!((summary.lost(), &summary.failure), (0, &None), "{summary:?}");
    summary
}

/// Returns true if the tool is installed; prints a message otherwise.
fn have(tool: &str) -> bool {
    let is_here = Command::new(tool).arg("--version").output().is_ok();
    if !is_here {
        eprintln!("SKIPPED: {tool} is not installed");
    }
    is_here
}

fn output(tool: &str, flags: &[&str]) -> String {
    let output = Command::new(tool).args(flags).output().unwrap();
    assert!(output.status.success(), "{tool}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn tshark_and_ipfix_dump_understand_every_template() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("flows.ipfix").display().to_string();
    for (sampling, statistics) in [
        (Sampling::Random(100), false),
        (Sampling::Systematic(100), false),
        (Sampling::Systematic(100), true),
    ] {
        let summary = export(&format!("ipfix-file:{file}"), Some(sampling), statistics);
        if have("tshark") {
            // By default it reads no more than 60 fields, which records with statistics may have.
            let all = ["-o", "cflow.max_template_fields:0", "-V", "-r", &file];
            let text = output("tshark", if statistics { &all } else { &all[2..] });
            // Some versions of tshark do not have gtpuTEid.
            let text = text.replace("Unknown(507)", "").replace("Type: Unknown (507)", "");
            for word in ["Malformed", "Expert Info", "No template", "Unknown"] {
                assert!(!text.contains(word), "{word}");
            }
            // Templates with facts have the same numbers in the lower octet, without ICMP.
            let with_facts = (512..2816).filter(|number| number & 0xc2 == 0);
            // Answered flows with two paths, one of which has a VLAN tag.
            let with_two_paths = (400..448).filter(|number| number & 4 != 0);
            for template in (256..320).chain(with_two_paths).chain(with_facts) {
                assert!(text.contains(&format!("FlowSet Id: (Data) ({template})")), "{template}");
            }
            for word in [
                "Gre Key: 11259375",
                "Biflow Direction",
                "Dot1q Customer Vlan Id: 9",
                "IfName: eth0",
                "IfName: eth1",
                "IfDescr: uplink \u{fffd}",
                "IfDescr: eth1",
                "Observation Domain Name: site b",
            ] {
                assert!(text.contains(word), "{word}");
            }
        }
        if have("ipfixDump") {
            let text = output("ipfixDump", &["--data", "--in", &file]);
            let count = |words: &str| text.lines().filter(|line| line.contains(words)).count();
            assert_eq!(count("flowEndReason"), summary.sent.flows.records as usize);
            // For each tunnelled record, the outer protocol and the inner one; otherwise one protocol.
            let tunnels = records().iter().filter(|record| record.path.tunnel.is_some()).count();
            assert_eq!(count(" protocolIdentifier"), records().len() + tunnels);
            assert_eq!(count("selectorAlgorithm"), 1);
            let of = |record: &FlowRecord| if record.packets[1] > 0 { 12 } else { 8 };
            let lists = if statistics { records().iter().map(of).sum() } else { 0 };
            assert_eq!(count("(8057"), lists, "CESNET's elements");
        }
    }
}

#[test]
fn nfcapd_counts_every_template() {
    if !have("nfcapd") || !have("nfdump") {
        return;
    }
    for (scheme, statistics) in [("ipfix", false), ("ipfix", true), ("netflow9", false)] {
        let folder = tempfile::tempdir().unwrap();
        let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = Command::new("nfcapd");
        // The buffer holds all datagrams, so a busy machine loses none.
        command.args(["-b", "127.0.0.1", "-B", "8000000", "-p", &port.to_string()]);
        command.args(["-t", "86400", "-w"]);
        command.arg(folder.path());
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let listens = format!(":{port:04X} 00000000:0000");
        let is_bound = || std::fs::read_to_string("/proc/net/udp").unwrap().contains(&listens);
        let tries = (0..3_000).take_while(|_| {
            std::thread::sleep(Duration::from_millis(20));
            !is_bound()
        });
        assert!(tries.count() < 3_000, "nfcapd listens");
        let summary = export(&format!("{scheme}://127.0.0.1:{port}"), None, statistics);
        // All data are in its buffer now: it is stopped when it has read them, and its threads wait for more.
        let has_read = format!("{listens} 07 00000000:00000000");
        let threads = || std::fs::read_dir(format!("/proc/{}/task", child.id())).unwrap().flatten();
        let waits = |thread: std::fs::DirEntry| {
            std::fs::read_to_string(thread.path().join("stat"))
                .is_ok_and(|stat| stat.contains(") S "))
        };
        let tries = (0..3_000).take_while(|_| {
            std::thread::sleep(Duration::from_millis(20));
            let table = std::fs::read_to_string("/proc/net/udp").unwrap();
            !table.contains(&has_read) || !threads().all(waits)
        });
        assert!(tries.count() < 3_000, "nfcapd reads the data");
        output("kill", &["-INT", &child.id().to_string()]);
        child.wait().unwrap();
        // Of IPFIX it keeps the descriptions of interfaces, and shows none.
        let files = std::fs::read_dir(folder.path()).unwrap().flatten();
        let files: Vec<_> = files.filter_map(|file| std::fs::read(file.path()).ok()).collect();
        for name in ["uplink", "eth1"] {
            let has =
                |octets: &Vec<u8>| octets.windows(name.len()).any(|one| one == name.as_bytes());
            assert!(scheme != "ipfix" || files.iter().any(has), "{name}");
        }
        let text = output("nfdump", &["-I", "-R", &folder.path().display().to_string()]);
        let number = |name: &str| -> u64 {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            line.unwrap_or_else(|| panic!("no {name} in {text}")).trim().parse().unwrap()
        };
        let flows = summary.sent.flows;
        assert_eq!(
            ["Flows:", "Packets:", "Bytes:", "Sequence failures:"].map(number),
            [flows.records, flows.packets, flows.octets, 0],
            "{scheme}"
        );
    }
}
