//! The named profiles: three benchmark loads, one with everything, one with scans, two for tables of many flows, and one with
//! messages.

use crate::profile::{Applications, FloodSpec, Profile, ScanSpec, Seen, Size};

const SECOND_NS: u64 = 1_000_000_000;

impl Profile {
    /// The names for [`Profile::named`].
    pub const NAMES: &[&str] =
        &["w1", "w2", "w3", "mix", "scans", "steady", "flood", "applications"];

    /// The profile with this name.
    pub fn named(name: &str) -> Option<Profile> {
        let profile = match name {
            "w1" => smallest_frames(),
            "w2" => life_cycles(),
            "w3" => two_packets_a_flow(),
            "mix" => everything(),
            "scans" => around_the_threshold(),
            "steady" => all_flows_all_the_time(),
            "flood" => a_flow_a_packet(),
            "applications" => messages(),
            _ => return None,
        };
        Some(Profile { name: name.into(), ..profile })
    }
}

/// Smallest frames (60 bytes as captured) of 100 k one-way flows, without their beginning.
fn smallest_frames() -> Profile {
    Profile {
        packets: 5_000_000,
        flows: 100_000,
        zipf: 1.0,
        size: Size::Fixed(64),
        duration_ns: 5 * SECOND_NS,
        tcp_share: 0.5,
        tcp_lifecycle: false,
        two_way_share: 0.0,
        ..Profile::default()
    }
}

/// 1 M flows, 1.67 M when directions count separately, most of them short; every TCP connection opens and closes.
fn life_cycles() -> Profile {
    Profile {
        packets: 5_000_000,
        flows: 1_000_000,
        zipf: 0.9,
        snaplen: 96,
        tcp_share: 0.6,
        two_way_share: 0.175,
        ..Profile::default()
    }
}

/// SYN and RST: only new flows, the worst case for a flow table.
fn two_packets_a_flow() -> Profile {
    let closed = ScanSpec { sources: 0, share: 0.5, reset: true, ..ScanSpec::default() };
    Profile {
        packets: 2_000_000,
        flows: 0,
        size: Size::Fixed(64),
        scans: vec![
            ScanSpec { targets: 4, ports: 256, ..closed.clone() },
            ScanSpec { targets: 256, ports: 4, first_port: 443, ..closed },
        ],
        ..Profile::default()
    }
}

/// All features of the generator.
fn everything() -> Profile {
    let scan = ScanSpec::default();
    Profile {
        packets: 1_000_000,
        flows: 50_000,
        tcp_share: 0.6,
        icmp_share: 0.05,
        arp_share: 0.01,
        fragment_share: 0.05,
        ipv6_share: 0.2,
        vlan_share: 0.2,
        scans: vec![
            ScanSpec { sources: 3, ports: 1000, reset: true, answered: 4, ..scan.clone() },
            ScanSpec { ports: 200, resends: 2, ipv6: true, ..scan.clone() },
            ScanSpec { sources: 3, targets: 500, ports: 1, first_port: 445, ..scan.clone() },
            ScanSpec { targets: 300, ports: 1, first_port: 22, ipv6: true, ..scan.clone() },
            ScanSpec { targets: 30, ports: 30, reset: true, ..scan.clone() },
            // A busy client whose connections all succeed.
            ScanSpec { sources: 5, targets: 50, ports: 2, answered: 100, ..scan },
        ],
        floods: vec![
            FloodSpec { sources: 2000, ..FloodSpec::default() },
            FloodSpec { sources: 500, ipv6: true, ..FloodSpec::default() },
            FloodSpec { sources: 1000, seen: Seen::Backscatter, ..FloodSpec::default() },
        ],
        ..Profile::default()
    }
}

/// Scans of every shape with one failed attempt too few, just enough and many; some have late answers, and sources that
/// resend attempts, which count once.
fn around_the_threshold() -> Profile {
    let mut scans = Vec::new();
    for ipv6 in [false, true] {
        for failed in [1, 19, 20, 21, 22, 40, 200] {
            for (answered, late) in [(0, false), (5, false), (5, true)] {
                let some = failed + answered;
                let line = ScanSpec { sources: 2, answered, late, ipv6, ..ScanSpec::default() };
                scans.push(ScanSpec { ports: some, resends: 1, ..line.clone() });
                scans.push(ScanSpec { targets: some, ports: 1, first_port: 23, ..line.clone() });
                scans.push(ScanSpec { ports: some, reset: true, ..line });
            }
        }
        for (targets, ports) in [(20, 20), (20, 21), (21, 20), (21, 21)] {
            scans.push(ScanSpec { targets, ports, ipv6, resends: 1, ..ScanSpec::default() });
        }
    }
    Profile { packets: 50_000, flows: 1_000, scans, ..Profile::default() }
}

/// Smallest frames of one-way flows that are all active at once: each has its first packet before any has many, and the
/// order is random. The run is shorter than any idle timeout, so a meter has all flows in its table.
fn all_flows_all_the_time() -> Profile {
    Profile {
        packets: 5_000_000,
        flows: 1_000_000,
        zipf: 0.0,
        duration_ns: 20 * SECOND_NS,
        steady: true,
        ..smallest_frames()
    }
}

/// A SYN flood at a million packets a second: one victim, and every packet is a new flow.
fn a_flow_a_packet() -> Profile {
    let flood = FloodSpec { sources: 1 << 20, share: 1.0, ..FloodSpec::default() };
    Profile {
        packets: 5_000_000,
        packets_per_second: 1_000_000,
        flows: 0,
        size: Size::Fixed(64),
        floods: vec![flood],
        ..Profile::default()
    }
}

/// Messages of TLS, QUIC, HTTP, SSH and DNS, in TCP connections with losses, and as many packets of flows without messages.
fn messages() -> Profile {
    Profile {
        packets: 500_000,
        flows: 10_000,
        ipv6_share: 0.2,
        vlan_share: 0.1,
        applications: Some(Applications { share: 0.5, ..Applications::default() }),
        ..Profile::default()
    }
}
