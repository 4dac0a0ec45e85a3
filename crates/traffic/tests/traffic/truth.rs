//! The truth against a recount of the frames alone, after any number of frames.

use crate::decode::{Ip, Seen, decode};
use proptest::prelude::*;
use ringtap_traffic::{
    Applications, Conversations, FloodSpec, FlowRules, Generator, HorizontalScan, Profile,
    ScanSpec, Scans, Size, Talker, Truth, VerticalScan,
};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;

type Endpoint = (IpAddr, u16);

/// Sums over decoded frames.
#[derive(Default)]
struct Recount {
    frames: Vec<Seen>,
}

impl Recount {
    fn sum(&self, what: impl Fn(&Seen) -> u64) -> u64 {
        self.frames.iter().map(what).sum()
    }

    fn packets(&self, protocol: u8) -> u64 {
        self.sum(|s| s.ip.as_ref().is_some_and(|ip| ip.protocol == protocol).into())
    }

    /// Distinct pairs of endpoints, unordered and ordered.
    fn conversations(&self, protocol: u8) -> (u64, u64) {
        let mut one_way = BTreeSet::new();
        for ip in self.frames.iter().filter_map(|s| s.ip.as_ref()) {
            if let Some((source, destination)) = ip.ports
                && ip.protocol == protocol
            {
                one_way.insert(((ip.source, source), (ip.destination, destination)));
            }
        }
        let pairs: BTreeSet<(Endpoint, Endpoint)> =
            one_way.iter().map(|&(a, b)| (a.min(b), a.max(b))).collect();
        (pairs.len() as u64, one_way.len() as u64)
    }

    /// SYNs after a RST: connections with the endpoints of a connection that has ended.
    fn reopened(&self) -> u64 {
        let mut reset = HashMap::new();
        let mut reopened = 0;
        for ip in self.frames.iter().filter_map(|s| s.ip.as_ref()) {
            let (Some(tcp), Some((from, to))) = (ip.tcp, ip.ports) else { continue };
            let (a, b) = ((ip.source, from), (ip.destination, to));
            let reset = reset.entry((a.min(b), a.max(b))).or_insert(false);
            reopened += u64::from(*reset && tcp.syn && !tcp.ack);
            *reset = tcp.rst || *reset && !tcp.syn;
        }
        reopened
    }

    /// Distinct unordered pairs of addresses with ICMP between them.
    fn address_pairs(&self) -> u64 {
        let all = self.frames.iter().filter_map(|s| s.ip.as_ref());
        let icmp = all.filter(|ip| ip.ports.is_none() && !ip.fragment);
        let pair = |ip: &Ip| (ip.source.min(ip.destination), ip.source.max(ip.destination));
        icmp.map(pair).collect::<BTreeSet<_>>().len() as u64
    }

    fn scans(&self, threshold: u32) -> Scans {
        let (mut tried, mut answered) = (BTreeSet::new(), BTreeSet::new());
        for ip in self.frames.iter().filter_map(|s| s.ip.as_ref()) {
            let (Some(tcp), Some((from, to))) = (ip.tcp, ip.ports) else { continue };
            match (tcp.syn, tcp.ack, tcp.rst, tcp.fin) {
                (true, false, false, false) => tried.insert((ip.source, ip.destination, to)),
                (true, true, false, false) => answered.insert((ip.destination, ip.source, from)),
                _ => false,
            };
        }
        let mut ports = BTreeMap::<_, u32>::new();
        let mut targets = BTreeMap::<_, u32>::new();
        for &(source, target, port) in tried.difference(&answered) {
            *ports.entry((source, target)).or_default() += 1;
            *targets.entry((source, port)).or_default() += 1;
        }
        Scans {
            vertical: ports
                .into_iter()
                .filter(|&(_, ports)| ports > threshold)
                .map(|((source, target), ports)| VerticalScan { source, target, ports })
                .collect(),
            horizontal: targets
                .into_iter()
                .filter(|&(_, targets)| targets > threshold)
                .map(|((source, port), targets)| HorizontalScan { source, port, targets })
                .collect(),
        }
    }

    /// The scans over UDP by scanners, as the addresses of `crates/traffic/src/address.rs` show.
    fn udp_scans(&self, threshold: u32) -> Scans {
        let is_scanner = |source: &IpAddr| match source {
            IpAddr::V4(source) => (source.to_bits() ^ 0x6440_0000) >> 21 == 0,
            IpAddr::V6(source) => source.segments()[..3] == [0x2001, 0xdb8, 3],
        };
        let mut attempts = BTreeMap::<_, i64>::new();
        for ip in self.frames.iter().filter_map(|s| s.ip.as_ref()) {
            let (17, Some((from, to))) = (ip.protocol, ip.ports) else { continue };
            if is_scanner(&ip.source) {
                attempts.entry((ip.source, ip.destination, to)).or_insert(1);
            } else if is_scanner(&ip.destination) {
                attempts.insert((ip.destination, ip.source, from), -1);
            }
        }
        let mut ports = BTreeMap::<_, i64>::new();
        let mut targets = BTreeMap::<_, i64>::new();
        for ((source, target, port), failed) in attempts {
            *ports.entry((source, target)).or_default() += failed;
            *targets.entry((source, port)).or_default() += failed;
        }
        let is_scan = |failed: i64| failed > threshold.into();
        let ports = ports.into_iter().filter(|&(_, ports)| is_scan(ports));
        let targets = targets.into_iter().filter(|&(_, targets)| is_scan(targets));
        Scans {
            vertical: ports
                .map(|((source, target), ports)| VerticalScan {
                    source,
                    target,
                    ports: ports as u32,
                })
                .collect(),
            horizontal: targets
                .map(|((source, port), targets)| HorizontalScan {
                    source,
                    port,
                    targets: targets as u32,
                })
                .collect(),
        }
    }

    fn talkers(&self, weight: fn(&Talker) -> u64) -> Vec<Talker> {
        let mut all = HashMap::new();
        for ip in self.frames.iter().filter_map(|s| s.ip.as_ref()) {
            let new = Talker { source: ip.source, packets: 0, octets: 0 };
            let talker = all.entry(ip.source).or_insert(new);
            talker.packets += 1;
            talker.octets += ip.octets;
        }
        let mut all: Vec<Talker> = all.into_values().collect();
        all.sort_by_key(|talker| (Reverse(weight(talker)), talker.source));
        all.truncate(10);
        all
    }

    fn check(&self, truth: &Truth) {
        let ip = |s: &Seen, f: fn(&Ip) -> u64| s.ip.as_ref().map_or(0, f);
        assert_eq!(truth.packets, self.frames.len() as u64);
        assert_eq!(truth.octets.wire, self.sum(|s| s.wire));
        assert_eq!(truth.octets.captured, self.sum(|s| s.captured));
        assert_eq!(truth.octets.ip, self.sum(|s| ip(s, |ip| ip.octets)));
        assert_eq!(truth.ipv4, self.sum(|s| ip(s, |ip| ip.source.is_ipv4().into())));
        assert_eq!(truth.ipv6, self.sum(|s| ip(s, |ip| ip.source.is_ipv6().into())));
        assert_eq!(truth.non_ip, self.sum(|s| s.ip.is_none().into()));
        assert_eq!(truth.fragments, self.sum(|s| ip(s, |ip| ip.fragment.into())));
        assert_eq!(truth.truncated, self.sum(|s| (s.captured < s.wire).into()));
        assert_eq!(truth.vlan, self.sum(|s| s.vlan.into()));
        let by = truth.protocols;
        assert_eq!(
            [by.tcp, by.udp, by.icmp, by.icmpv6],
            [6, 17, 1, 58].map(|protocol| self.packets(protocol))
        );
        let (tcp, udp) = (self.conversations(6), self.conversations(17));
        assert_eq!(truth.conversations, Conversations { tcp: tcp.0, udp: udp.0 });
        assert_eq!(truth.one_way_flows, Conversations { tcp: tcp.1, udp: udp.1 });
        for threshold in [0, 1, 5, 19, 20, 21, 40] {
            assert_eq!(truth.scans(threshold), self.scans(threshold), "threshold {threshold}");
            assert_eq!(truth.udp_scans(threshold), self.udp_scans(threshold), "{threshold}");
        }
        assert_eq!(truth.scans, self.scans(truth.scan_threshold));
        assert_eq!(truth.talkers.by_octets, self.talkers(|talker| talker.octets));
        assert_eq!(truth.talkers.by_packets, self.talkers(|talker| talker.packets));
        let records = truth.records.unwrap();
        assert_eq!(records.packets, truth.ipv4 + truth.ipv6);
        assert_eq!(records.octets, truth.octets.ip);
        assert_eq!(records.records, tcp.0 + udp.0 + self.address_pairs() + self.reopened());
    }
}

/// Compares at every `step`-th frame and at the end; returns the last truth.
fn compare(profile: &Profile, seed: u64, step: usize) -> Truth {
    let mut generator = Generator::new(profile, seed).unwrap();
    // Timeouts never end a flow: it is a conversation, or an address pair.
    let never = u64::MAX;
    generator.meter(FlowRules {
        tcp_ns: never,
        tcp_fin_ns: never,
        tcp_rst_ns: never,
        udp_ns: never,
        icmp_ns: never,
        active_ns: never,
        ..FlowRules::default()
    });
    let mut recount = Recount::default();
    recount.check(&generator.truth());
    while let Some(frame) = generator.next() {
        recount.frames.push(decode(&frame));
        if recount.frames.len().is_multiple_of(step) {
            recount.check(&generator.truth());
        }
    }
    let truth = generator.truth();
    recount.check(&truth);
    truth
}

fn reduced(name: &str, packets: u64, flows: u64) -> Profile {
    Profile { packets, flows, ..Profile::named(name).unwrap() }
}

#[test]
fn named_profiles_reduced() {
    let w1 = compare(&reduced("w1", 20_000, 400), 1, 4_999);
    assert_eq!((w1.packets, w1.conversations.tcp + w1.conversations.udp), (20_000, 400));
    assert_eq!(w1.octets.wire, 20_000 * 60);
    assert_eq!(w1.scans(0), Scans::default());

    let w2 = compare(&reduced("w2", 20_000, 4_000), 2, 4_999);
    assert_eq!((w2.packets, w2.conversations.tcp + w2.conversations.udp), (20_000, 4_000));
    let one_way = w2.one_way_flows.tcp + w2.one_way_flows.udp;
    assert!((6_500..6_900).contains(&one_way), "{one_way}");
    // Of the 7 : 4 : 1 frames of an IMIX those of 594 and 1518 bytes are cut.
    assert!((7_800..8_900).contains(&w2.truncated), "{}", w2.truncated);
    let mean = w2.octets.wire / w2.packets;
    assert!((330..370).contains(&mean), "{mean}");
    assert_eq!(w2.scans(0), Scans::default());

    let w3 = compare(&reduced("w3", 20_000, 0), 3, 4_999);
    assert_eq!((w3.packets, w3.octets.wire), (20_000, 20_000 * 60));
    assert_eq!((w3.scans.vertical.len(), w3.scans.horizontal.len()), (20, 20));

    let mix = compare(&reduced("mix", 40_000, 2_000), 4, 9_973);
    assert_eq!(mix.packets, 40_000);
    // 3 + 1 + 30 rows of a grid and 3 + 1 + 30 columns; floods and busy clients are not scans.
    assert_eq!((mix.scans.vertical.len(), mix.scans.horizontal.len()), (34, 34));
    let kinds = [mix.fragments, mix.non_ip, mix.vlan, mix.protocols.icmp, mix.protocols.icmpv6];
    assert!(kinds.iter().all(|&count| count > 50), "{kinds:?}");

    let applications = compare(&reduced("applications", 20_000, 500), 8, 4_999);
    assert_eq!(applications.packets, 20_000);
    let truth = applications.applications.unwrap();
    let tcp = truth.flows.iter().filter(|flow| flow.tcp.is_some()).count();
    assert!(tcp > 100 && truth.flows.len() > tcp + 50, "{tcp} of {}", truth.flows.len());
    assert!(mix.applications.is_none());
}

#[test]
fn scans_around_the_threshold() {
    let profile = Profile::named("scans").unwrap();
    let truth = compare(&profile, 5, 12_007);
    assert_eq!(truth.packets, profile.packets);
    for (failed, lines) in [(20, 0), (21, 12), (22, 12), (40, 12), (200, 12)] {
        // Six specifications of two sources for each family; a grid of 21 ports adds 20 or 21.
        let grid = if failed == 21 { 2 * (20 + 21) } else { 0 };
        let found = truth.scans.vertical.iter().filter(|scan| scan.ports == failed).count();
        assert_eq!(found, 2 * lines + grid, "{failed} ports");
    }
    assert!(truth.scans(20) != truth.scans(19) && truth.scans(20) != truth.scans(21));
}

#[test]
fn the_first_frames_one_by_one() {
    let profile = Profile { packets: 400, flows: 60, ..Profile::named("mix").unwrap() };
    compare(&profile, 6, 1);
}

/// A user has several connections to one port that wait for their answers.
#[test]
fn attempts_of_a_user_that_wait_count_together() {
    let profile = Profile {
        duration_ns: 1_000,
        applications: Some(Applications { share: 1.0, ..Applications::default() }),
        ..reduced("applications", 40_000, 1)
    };
    let mut generator = Generator::new(&profile, 9).unwrap();
    let mut recount = Recount::default();
    for _ in 0..4_000 {
        recount.frames.push(decode(&generator.next().unwrap()));
    }
    let truth = generator.truth();
    let most = truth.scans(0).horizontal.iter().map(|scan| scan.targets).max();
    assert!(most > Some(1), "{most:?}");
    for threshold in 0..4 {
        assert_eq!(truth.scans(threshold), recount.scans(threshold), "threshold {threshold}");
    }
}

fn small_profile() -> impl Strategy<Value = Profile> {
    let scan = (1u32..30, 1u32..30, 0.0..=1.0f64, any::<[bool; 5]>(), 0u32..3, 1u32..3);
    let scan = scan.prop_map(
        |(targets, ports, part, [late, reset, ipv6, insist, udp], resends, sources)| {
            let answered = (f64::from(targets * ports) * part) as u32;
            ScanSpec {
                sources,
                targets,
                ports,
                answered,
                late,
                reset: reset && !udp,
                resends,
                insist,
                ipv6,
                udp,
                ..ScanSpec::default()
            }
        },
    );
    let flood = (0u32..100, 0.0..=0.2f64, any::<[bool; 2]>());
    let flood = flood.prop_map(|(sources, share, [attack, ipv6])| {
        let share = if sources > 0 { share } else { 0.0 };
        use ringtap_traffic::Seen::{Attack, Backscatter};
        let seen = if attack { Attack } else { Backscatter };
        FloodSpec { sources, share, seen, ipv6, ..FloodSpec::default() }
    });
    let size = prop_oneof![Just(Size::Imix), (64u32..=9018).prop_map(Size::Fixed)];
    (
        (1u64..3000, 1u64..400, 0.0..3.0f64, size, 96u32..2000, 0u64..1_000_000),
        (0.0..=0.7f64, 0.0..=0.2f64, 0.0..=0.1f64, any::<bool>(), any::<bool>()),
        proptest::array::uniform4(0.0..=1.0f64),
        proptest::collection::vec(scan, 0..4),
        proptest::collection::vec(flood, 0..3),
        proptest::option::of((0.0..=1.0f64, 0.0..=0.3f64)),
    )
        .prop_map(|(sizes, protocols, shares, scans, floods, exchanges)| Profile {
            packets: sizes.0,
            flows: sizes.1,
            zipf: sizes.2,
            size: sizes.3,
            snaplen: if exchanges.is_some() { 2_000 } else { sizes.4 },
            duration_ns: sizes.5,
            tcp_share: protocols.0,
            icmp_share: protocols.1,
            arp_share: protocols.2,
            tcp_lifecycle: protocols.3,
            steady: protocols.4,
            two_way_share: shares[0],
            fragment_share: shares[1],
            ipv6_share: shares[2],
            vlan_share: shares[3],
            scans,
            floods,
            applications: exchanges.map(|(share, rate)| Applications {
                share,
                loss: rate,
                loss_before: rate,
                reordering: rate,
                duplicate_acks: rate,
                zero_windows: rate,
                ..Applications::default()
            }),
            ..Profile::default()
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_profile_cut_anywhere(profile in small_profile(), seed: u64, step in 300usize..2000) {
        compare(&profile, seed, step);
    }
}
