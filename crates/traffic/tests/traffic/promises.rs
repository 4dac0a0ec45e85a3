//! Other guarantees of the generator: the same bytes on every machine, the shape of the traffic, and errors for invalid
//! profiles.

use crate::decode::{Ip, decode};
use proptest::prelude::*;
use ringtap_traffic::{
    Applications, Began, Ended, FloodSpec, FlowRules, Generator, Profile, ProfileError, ScanSpec,
    Size,
};
use sha2::{Digest, Sha256};
use std::collections::{HashMap, HashSet};
use std::net::IpAddr;

type Key = (u8, (IpAddr, u16), (IpAddr, u16));

/// The conversation of a packet, client first, and whether the client sent it. (Clients of background flows have ports
/// from 32768 on, servers do not.)
fn conversation(ip: &Ip) -> Option<(Key, bool)> {
    let (from, to) = ip.ports?;
    let (source, destination) = ((ip.source, from), (ip.destination, to));
    Some(match from >= 32_768 {
        true => ((ip.protocol, source, destination), true),
        false => ((ip.protocol, destination, source), false),
    })
}

fn digest(profile: &Profile, seed: u64, frames: usize) -> String {
    let mut generator = Generator::new(profile, seed).unwrap();
    let mut hash = Sha256::new();
    for _ in 0..frames {
        let Some(frame) = generator.next() else { break };
        hash.update(frame.ts_ns.to_le_bytes());
        hash.update(frame.original_len.to_le_bytes());
        hash.update(frame.data);
    }
    hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn the_same_seed_gives_the_same_bytes_on_every_machine() {
    let expected = [
        ("w1", "3171e7682994b955"),
        ("w2", "366fecb69b3e1f93"),
        ("w3", "5baa90b99c43e9e6"),
        ("mix", "77c5b34fedca9349"),
        ("scans", "2c7ba1b0d2f70e74"),
        ("steady", "95b9cda0df58bbff"),
        ("flood", "44fddcb6414817a2"),
        ("applications", "b744cf152d99fbc2"),
    ];
    let found: Vec<(&str, String)> = Profile::NAMES
        .iter()
        .map(|name| (*name, digest(&Profile::named(name).unwrap(), 1, 10_000)))
        .collect();
    let expected: Vec<(&str, String)> = expected.map(|(name, hash)| (name, hash.into())).to_vec();
    assert_eq!(found, expected);
    let mix = Profile::named("mix").unwrap();
    assert_ne!(digest(&mix, 1, 100), digest(&mix, 2, 100));
}

#[test]
fn flow_sizes_follow_the_zipf_law_all_the_time() {
    let profile = Profile { packets: 400_000, flows: 5_000, ..Profile::named("w1").unwrap() };
    let mut generator = Generator::new(&profile, 11).unwrap();
    let mut quarters = HashMap::<Key, [u32; 4]>::new();
    let mut count = 0;
    while let Some(frame) = generator.next() {
        let seen = decode(&frame);
        let (key, _) = conversation(seen.ip.as_ref().unwrap()).unwrap();
        quarters.entry(key).or_default()[count * 4 / 400_000] += 1;
        count += 1;
    }
    let mut sizes: Vec<[u32; 4]> = quarters.into_values().collect();
    sizes.sort_by_key(|quarters| std::cmp::Reverse(quarters.iter().sum::<u32>()));
    assert_eq!((count, sizes.len()), (400_000, 5_000));
    // Each flow has one packet; the others follow the law.
    let weights: f64 = (1..=5_000).map(|k| 1.0 / f64::from(k)).sum();
    for (k, quarters) in (1..).zip(&sizes) {
        let (size, expected) =
            (quarters.iter().sum::<u32>(), 1.0 + 395_000.0 / weights / f64::from(k));
        assert!((f64::from(size) - expected).abs() <= 1.5, "rank {k}: {size}, not {expected}");
        if k <= 10 {
            let mean = size as f64 / 4.0;
            let even = quarters.iter().all(|&n| (f64::from(n) - mean).abs() < mean / 5.0);
            assert!(even, "rank {k} is not there all the time: {quarters:?}");
        }
    }
}

#[test]
fn connections_open_and_close_and_their_numbers_add_up() {
    /// The expected fields of the next segment of each side, client first.
    #[derive(Default)]
    struct Connection {
        next: [u32; 2],
        segments: u32,
        fins: u32,
        reset: bool,
        last_ns: u64,
    }
    let profile = Profile {
        packets: 60_000,
        flows: 6_000,
        ipv6_share: 0.3,
        snaplen: 2000,
        ..Profile::named("w2").unwrap()
    };
    let mut generator = Generator::new(&profile, 12).unwrap();
    let mut connections = HashMap::<Key, Connection>::new();
    while let Some(frame) = generator.next() {
        let seen = decode(&frame);
        let Some(ip) = seen.ip else { continue };
        let (Some(tcp), Some((key, from_client))) = (ip.tcp, conversation(&ip)) else { continue };
        let side = usize::from(!from_client);
        let it = connections.entry(key).or_default();
        match it.segments {
            0 => assert!(tcp.syn && !tcp.ack && from_client),
            1 => assert!(tcp.syn && tcp.ack && !from_client && tcp.ack_number == it.next[0]),
            _ => {
                assert!(!tcp.syn && tcp.ack && !it.reset && it.fins < 2 + u32::from(!tcp.fin));
                assert_eq!((tcp.seq, tcp.ack_number), (it.next[side], it.next[1 - side]));
                let silence_ns = frame.ts_ns - it.last_ns;
                assert!(silence_ns < profile.duration_ns / 4, "silent for {silence_ns} ns");
            }
        }
        it.next[side] = tcp.seq.wrapping_add(tcp.payload + u32::from(tcp.syn) + u32::from(tcp.fin));
        it.segments += 1;
        it.fins += u32::from(tcp.fin);
        it.reset |= tcp.rst;
        it.last_ns = frame.ts_ns;
    }
    assert!(connections.len() > 3_000);
    assert!(connections.values().all(|it| it.reset || it.fins == 2), "every connection closes");
    let resets = connections.values().filter(|it| it.reset).count();
    assert!((100..400).contains(&resets), "{resets} of {}", connections.len());
}

#[test]
fn time_runs_forward_and_evenly_through_the_duration() {
    let profile = Profile {
        packets: 7_000,
        flows: 100,
        start_ns: 5_000_000_000,
        duration_ns: 999_999_999,
        ..Profile::default()
    };
    let mut generator = Generator::new(&profile, 13).unwrap();
    let mut last = profile.start_ns;
    for i in 0..7_000 {
        let ts_ns = generator.next().unwrap().ts_ns;
        assert!(ts_ns >= last);
        let (from, to) = (999_999_999 * i / 7_000, 999_999_999 * (i + 1) / 7_000);
        assert!((from..=to).contains(&(ts_ns - profile.start_ns)), "frame {i} at {ts_ns}");
        last = ts_ns;
    }
    assert!(generator.next().is_none());
}

#[test]
fn steady_flows_last_from_the_beginning_to_the_end() {
    let profile = Profile { packets: 40_000, flows: 4_000, ..Profile::named("steady").unwrap() };
    let mut generator = Generator::new(&profile, 15).unwrap();
    generator.meter(FlowRules::default());
    for _ in 0..6_000 {
        generator.next().unwrap();
    }
    let early = generator.records().len();
    assert!(early > 3_900, "{early} of 4,000 flows after 6,000 packets");
    while generator.next().is_some() {}
    let records = generator.records();
    assert!(records.len() == 4_000 && records.iter().all(|it| it.ended == Ended::Forced));
    assert!(records.iter().all(|it| (9..=11).contains(&it.packets[0])), "all alike");
    let end_ns = profile.start_ns + profile.duration_ns;
    let late = records.iter().filter(|it| end_ns - it.last_ns < profile.duration_ns / 5).count();
    assert!(late > 3_900, "{late} of 4,000 flows have a packet in the last fifth");
}

#[test]
fn a_flood_has_a_flow_per_packet_at_the_requested_rate() {
    let mut profile = Profile { packets: 100_000, ..Profile::named("flood").unwrap() };
    profile.floods[0].sources = 3_000;
    let mut generator = Generator::new(&profile, 16).unwrap();
    generator.meter(FlowRules::default());
    let mut last_ns = 0;
    while let Some(frame) = generator.next() {
        last_ns = frame.ts_ns;
    }
    assert!(
        (99_999_000..=100_000_000).contains(&(last_ns - profile.start_ns)),
        "a million a second"
    );
    let records = generator.records();
    assert_eq!(records.len(), 100_000);
    assert!(records.iter().all(|it| it.packets == [1, 0] && it.began == Began::Syn));
    let addresses: HashSet<_> = records.iter().map(|it| it.source).collect();
    assert_eq!(addresses.len(), 3_000);
    assert!(generator.truth().scans(1).vertical.is_empty());
}

#[test]
fn profiles_are_files() {
    let text = r#"{"packets": 5, "applications": {"loss": 0.25}}"#;
    let profile: Profile = serde_json::from_str(text).unwrap();
    assert_eq!(profile.applications, Some(Applications { loss: 0.25, ..Applications::default() }));
    let text = r#"{"name": "mine", "packets": 5, "size": 128, "scans": [{"ports": 30}]}"#;
    let profile: Profile = serde_json::from_str(text).unwrap();
    assert_eq!((profile.packets, profile.size), (5, Size::Fixed(128)));
    assert_eq!(profile.scans, [ScanSpec { ports: 30, ..ScanSpec::default() }]);
    assert_eq!(serde_json::from_str::<Profile>(r#"{"size": "imix"}"#).unwrap().size, Size::Imix);
    for wrong in [r#"{"packet": 5}"#, r#"{"scans": [{"port": 3}]}"#, r#"{"size": "big"}"#] {
        assert!(serde_json::from_str::<Profile>(wrong).is_err(), "{wrong}");
    }
    for name in Profile::NAMES {
        let profile = Profile::named(name).unwrap();
        assert_eq!((&*profile.name, profile.validate()), (*name, Ok(())));
        let text = serde_json::to_string(&profile).unwrap();
        assert_eq!(serde_json::from_str::<Profile>(&text).unwrap(), profile);
    }
    assert_eq!(Profile::named("w9"), None);
    assert_eq!("IMIX".parse(), Ok(Size::Imix));
    assert_eq!("64".parse(), Ok(Size::Fixed(64)));
    assert!(["63", "9019", "x", ""].iter().all(|text| text.parse::<Size>().is_err()));
}

#[test]
fn invalid_profiles_are_errors() {
    let refused = |change: fn(&mut Profile)| {
        let mut profile = Profile::default();
        change(&mut profile);
        Generator::new(&profile, 0).err().map(|error| error.to_string()).unwrap_or_default()
    };
    assert_eq!(refused(|p| p.packets = 0), "invalid packets 0: use 1 to 2^32 - 1");
    assert_eq!(refused(|p| p.flows = 1 << 60), "invalid flows 1152921504606846976: use 0 to 2^26");
    assert_eq!(refused(|p| p.zipf = f64::NAN), "invalid zipf NaN: use 0 to 10");
    assert_eq!(refused(|p| p.ipv6_share = -0.1), "invalid ipv6_share -0.1: use 0 to 1");
    assert!(refused(|p| p.icmp_share = 0.7).contains("add up to 1.3"));
    assert!(refused(|p| p.flows = 0).contains("nothing to send"));
    assert!(refused(|p| p.snaplen = 20).starts_with("invalid snaplen 20"));
    assert!(refused(|p| p.size = Size::Fixed(u32::MAX)).starts_with("invalid size: use imix"));
    assert!(refused(|p| p.duration_ns = u64::MAX).contains("2106"));
    assert!(
        refused(|p| p.scans.push(ScanSpec { ports: 0, ..ScanSpec::default() })).contains("ports")
    );
    let many = |p: &mut Profile| {
        p.scans = vec![ScanSpec { sources: u32::MAX, ..ScanSpec::default() }];
    };
    assert!(refused(many).contains("2^21"));
    let thin = |p: &mut Profile| {
        p.floods = vec![FloodSpec { sources: 1, share: 0.1, ..FloodSpec::default() }];
    };
    assert!(refused(thin).contains("60,000 packets a forged address"));
    assert!(refused(|p| (p.packets_per_second, p.packets) = (1, 3 << 30)).contains("2106"));
    let applications = |change: fn(&mut Applications)| {
        let mut spec = Applications::default();
        change(&mut spec);
        let profile = Profile { applications: Some(spec), ..Profile::default() };
        Generator::new(&profile, 0).err().map(|error| error.to_string()).unwrap_or_default()
    };
    assert!(applications(|a| a.loss = 2.0).starts_with("invalid applications.loss 2"));
    assert!(applications(|a| a.http_share = 0.9).contains("shares of protocols"));
    assert!(applications(|a| a.names = 0).contains("1 to 2^20"));
    assert!(applications(|a| a.client_rtt_us = [300, 200]).contains("[300, 200]"));
    assert!(applications(|a| a.server_rtt_us = [0, 200]).contains("200 to 1000000"));
}

proptest! {
    #[test]
    fn no_profile_panics(
        numbers: [u64; 4], more: [u32; 8], floats: [f64; 9], flag: bool, seed: u64,
    ) {
        let mut profile = Profile {
            packets: numbers[0],
            flows: numbers[1],
            start_ns: numbers[2],
            duration_ns: numbers[3],
            zipf: floats[0],
            size: Size::Fixed(more[0]),
            snaplen: more[1],
            tcp_share: floats[1],
            icmp_share: floats[2],
            arp_share: floats[3],
            two_way_share: floats[4],
            fragment_share: floats[5],
            ipv6_share: floats[6],
            vlan_share: floats[7],
            scans: vec![ScanSpec {
                sources: more[2],
                share: floats[8],
                targets: more[3],
                ports: more[4],
                first_port: more[5] as u16,
                answered: more[6],
                late: flag,
                reset: !flag,
                resends: more[7],
                insist: flag,
                ipv6: flag,
                udp: flag,
            }],
            floods: vec![FloodSpec { sources: more[7], share: floats[8], ..FloodSpec::default() }],
            steady: flag,
            packets_per_second: numbers[3],
            ..Profile::default()
        };
        prop_assert!(Generator::new(&profile, seed).is_err());
        // Out-of-range values are replaced one by one by valid ones.
        profile.packets = profile.packets % 500 + 1;
        profile.flows %= 500;
        profile.start_ns %= 1 << 60;
        profile.duration_ns %= 1 << 60;
        profile.size = Size::Fixed(64 + more[0] % 8955);
        profile.snaplen = profile.snaplen.max(96);
        let share = |value: f64| if value.is_finite() { value.abs().fract() } else { 1.0 };
        profile.zipf = share(profile.zipf) * 10.0;
        for value in [
            &mut profile.tcp_share, &mut profile.icmp_share, &mut profile.arp_share,
        ] {
            *value = share(*value) / 3.0;
        }
        for value in [
            &mut profile.two_way_share, &mut profile.fragment_share, &mut profile.ipv6_share,
            &mut profile.vlan_share,
        ] {
            *value = share(*value);
        }
        let scan = &mut profile.scans[0];
        scan.sources %= 20;
        scan.share = share(scan.share);
        scan.targets = scan.targets % 50 + 1;
        scan.ports = scan.ports % 50 + 1;
        scan.first_port = scan.first_port % 60_000 + 1;
        scan.answered %= scan.targets * scan.ports + 1;
        scan.resends %= 17;
        profile.floods[0].sources %= 50;
        profile.floods[0].share = if profile.floods[0].sources > 0 { scan.share } else { 0.0 };
        match Generator::new(&profile, seed) {
            Ok(mut generator) => {
                while generator.next().is_some() {}
                prop_assert!(generator.truth().packets <= profile.packets);
            }
            Err(error) => prop_assert_eq!(error, ProfileError::Nothing),
        }
    }
}
