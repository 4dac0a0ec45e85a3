//! The paths of both directions, and counters of packets beside them.

use ringtap_stage::Attachments;
use ringtap_wire::{Flags, Path, Tunnel, TunnelKind};

use super::*;
use crate::EndReason;

const SECOND: u64 = Timeouts::SECOND;
const KEY: HashKey = HashKey::from_seed(5);
const SYN: u8 = 2;
const ACK: u8 = 16;

#[derive(Default)]
struct Records {
    parts: Vec<FlowRecord>,
    ended: Vec<FlowRecord>,
}

impl Observer for Records {
    fn counted(&mut self, _: &PacketRecord, _: &mut u16) {}
    fn late(&mut self, _: &PacketRecord, _: u16) {}
    fn part(&mut self, record: &FlowRecord) {
        self.parts.push(record.clone());
    }
    fn ended(&mut self, record: &FlowRecord, _: u16) {
        self.ended.push(record.clone());
    }
}

fn packet(ts_ns: u64, back: bool, tcp_flags: u8, path: u16) -> PacketRecord {
    let mut packet = PacketRecord { ts_ns, tcp_flags, path, ..PacketRecord::EMPTY };
    (packet.src[0], packet.dst[0]) = if back { (2, 1) } else { (1, 2) };
    (packet.src_port, packet.dst_port) = if back { (80, 9) } else { (9, 80) };
    (packet.protocol, packet.ip_len, packet.ttl) = (6, 40, 64);
    packet.flags = Flags(Flags::IPV4.0 | Flags::PORTS.0);
    packet.pair_hash = KEY.pair(&packet.src, &packet.dst);
    packet
}

/// A path with link addresses, a VLAN, and a tunnel with an outer frame.
fn there() -> Path {
    let mut tunnel =
        Tunnel { kind: TunnelKind::Vxlan, ipv6: false, src: [0; 16], dst: [0; 16], id: 5 };
    (tunnel.src[0], tunnel.dst[0]) = (10, 11);
    Path {
        macs: [[1; 6], [2; 6]],
        outer_macs: [[3; 6], [4; 6]],
        vlan_tags: 1,
        vlans: [7, 0],
        tunnel: Some(tunnel),
        ingress: 1,
        ..Path::default()
    }
}

fn table(metering: &Metering, paths: &Arc<Paths>) -> FlowTable {
    FlowTable::new(8, metering, KEY, Arc::clone(paths))
}

fn all(mut table: FlowTable, packets: &[PacketRecord]) -> Records {
    let mut records = Records::default();
    for packet in packets {
        table.burst(&[*packet], Attachments::NONE, &mut records);
    }
    while !table.is_empty() {
        table.drain(0, 9, &mut records);
    }
    records
}

/// The reverse path of a flow with packets on these paths, in both directions.
fn reverse(forward: &Path, back: &Path, flags: [u8; 2]) -> Option<Path> {
    let paths = Arc::new(Paths::new());
    let [own, other] = [forward, back].map(|path| paths.number(path));
    let packets = [packet(1, false, flags[0], own), packet(2, true, flags[1], other)];
    let records = all(table(&Metering::default(), &paths), &packets);
    let [record] = &records.ended[..] else { panic!("one flow") };
    assert_eq!(record.path, *forward);
    record.reverse_path.as_deref().copied()
}

#[test]
fn answers_on_other_links_have_a_path_of_their_own() {
    let mirror = Path { ingress: 2, ..there().reversed() };
    assert_eq!(reverse(&there(), &mirror, [SYN, ACK]), None, "interfaces are not compared");
    let others = [
        Path { macs: [[9; 6], [1; 6]], ..mirror },
        Path { outer_macs: [[9; 6], [3; 6]], ..mirror },
        Path { vlans: [8, 0], ..mirror },
        Path { vlan_tags: 2, ..mirror },
        Path { mpls_label: Some(3), ..mirror },
        Path { tunnel: None, ..mirror },
        there(),
    ];
    for other in others {
        assert_eq!(reverse(&there(), &other, [SYN, ACK]), Some(other));
        assert_eq!(reverse(&other, &there(), [SYN, ACK]), Some(there()));
    }
    assert_eq!(reverse(&Path::default(), &there(), [SYN, ACK]), Some(there()));
    assert_eq!(reverse(&there(), &Path::default(), [SYN, ACK]), None, "an unknown path");
}

/// Pairs that are mirrors, others and unknown ones, one after another and repeated, in one table.
#[test]
fn a_pair_is_compared_again_after_another_one() {
    let paths = Arc::new(Paths::new());
    let [mirror, other] = [there().reversed(), Path { vlans: [8, 0], ..there().reversed() }];
    let pairs = [
        (there(), mirror, None),
        (there(), other, Some(other)),
        (there(), mirror, None),
        (there(), mirror, None),
        (other, mirror, Some(mirror)),
        (Path::default(), mirror, Some(mirror)),
        (there(), Path::default(), None),
        (there(), other, Some(other)),
        (Path::default(), Path::default(), None),
    ];
    let mut table = table(&Metering::default(), &paths);
    for (forward, back, expected) in pairs {
        let [own, other] = [forward, back].map(|path| paths.number(&path));
        let mut records = Records::default();
        let packets = [packet(1, false, SYN, own), packet(2, true, ACK, other)];
        table.burst(&packets, Attachments::NONE, &mut records);
        table.drain(0, 9, &mut records);
        assert_eq!(records.ended[0].reverse_path.as_deref().copied(), expected);
    }
}

#[test]
fn only_the_first_packet_of_a_direction_counts() {
    let paths = Arc::new(Paths::new());
    let [own, other] = [there(), Path { vlans: [8, 0], ..there() }].map(|path| paths.number(&path));
    let mirror = paths.number(&there().reversed());
    let to = |ts_ns, path| packet(ts_ns, true, ACK, path);
    let packets = [packet(1, false, SYN, own), to(2, mirror), to(3, other)];
    for cut_ns in [None, Some(SECOND)] {
        let metering = Metering { cut_ns, ..Metering::default() };
        let records = all(table(&metering, &paths), &packets);
        assert_eq!(records.ended[0].reverse_path, None);
        let mut lone = Vec::from(packets);
        lone[2].ts_ns += SECOND;
        let records = all(table(&metering, &paths), &lone);
        assert!(records.parts.iter().chain(&records.ended).all(|r| r.reverse_path.is_none()));
    }
    // Both directions of a uniflow are flows of their own, and so is what an endpoint sends to itself.
    let uniflow = Metering { uniflow: true, ..Metering::default() };
    let packets = [packet(1, false, SYN, own), to(2, other)];
    let records = all(table(&uniflow, &paths), &packets).ended;
    assert_eq!(records.len(), 2);
    assert!(records.iter().all(|record| record.reverse_path.is_none()));
}

/// The path of a record is that of the first packet; if that is an answer, the other one is the initiator's.
#[test]
fn after_an_answer_the_other_path_is_the_initiators() {
    let paths = Arc::new(Paths::new());
    let other = Path { vlans: [8, 0], ..there() };
    let [first, later] = [there(), other].map(|path| paths.number(&path));
    let packets = [packet(1, true, SYN | ACK, first), packet(2, false, ACK, later)];
    let records = all(table(&Metering::default(), &paths), &packets).ended;
    assert_eq!((records[0].key.src_port, records[0].path), (9, there()));
    assert_eq!(records[0].paths(), [Some(&other), Some(&there())]);
    let alone = all(table(&Metering::default(), &paths), &packets[..1]).ended;
    assert_eq!(alone[0].paths(), [None, Some(&there())]);
}

#[test]
fn later_records_of_a_connection_keep_both_paths() {
    let paths = Arc::new(Paths::new());
    let other = Path { vlans: [8, 0], ..there() };
    let [own, back] = [there(), other].map(|path| paths.number(&path));
    let packets = [
        packet(SECOND, false, SYN, own),
        packet(2 * SECOND, true, ACK, back),
        packet(12 * SECOND, false, ACK, own),
    ];
    // By the active timeout, and by cuts; the first part has no answer.
    let timeouts = Timeouts { active_ns: 10 * SECOND, ..Timeouts::default() };
    let records = all(table(&Metering { timeouts, ..Metering::default() }, &paths), &packets).ended;
    let found: Vec<_> = records.iter().map(|r| (r.end_reason, r.reverse_path.as_deref())).collect();
    assert_eq!(found, [(EndReason::Active, Some(&other)), (EndReason::Forced, Some(&other))]);
    let metering = Metering { cut_ns: Some(SECOND), ..Metering::default() };
    let records = all(table(&metering, &paths), &packets);
    let found: Vec<_> = records.parts.iter().map(|r| r.reverse_path.as_deref()).collect();
    assert_eq!(found, [None, Some(&other), Some(&other)]);
    let whole = FlowRecord::of_parts(records.parts).unwrap();
    assert_eq!(whole.reverse_path.as_deref(), Some(&other));
    assert_eq!(records.ended, [whole]);
}

/// Records of two probes, of which one saw the requests and the other the answers.
#[test]
fn joined_records_have_the_path_of_the_other_direction() {
    let paths = Arc::new(Paths::new());
    let other = Path { vlans: [8, 0], ..there() };
    for (back, expected) in [(other, Some(other)), (there().reversed(), None)] {
        let [own, back] = [there(), back].map(|path| paths.number(&path));
        let one = |packet| all(table(&Metering::default(), &paths), &[packet]).ended.remove(0);
        let mut joined = one(packet(1, false, ACK, own));
        joined.join(one(packet(2, true, ACK, back)));
        assert_eq!((joined.packets, joined.reverse_path.as_deref()), ([1, 1], expected.as_ref()));
    }
}

#[test]
fn both_paths_outlive_a_restart() {
    let mirror = Path { ingress: 2, ..there().reversed() };
    let other = Path { vlans: [8, 0], ..mirror };
    for (back, expected) in [(mirror, None), (other, Some(other))] {
        for cut_ns in [None, Some(SECOND)] {
            let metering = Metering { cut_ns, ..Metering::default() };
            let paths = Arc::new(Paths::new());
            let [own, other] = [there(), back].map(|path| paths.number(&path));
            let mut first = table(&metering, &paths);
            let mut records = Records::default();
            let packets = [packet(1, false, SYN, own), packet(2, true, ACK, other)];
            first.burst(&packets, Attachments::NONE, &mut records);
            // The paths of another run have other numbers.
            let paths = Arc::new(Paths::new());
            paths.number(&Path { mpls_label: Some(1), ..Path::default() });
            let mut second = table(&metering, &paths);
            while !first.is_empty() {
                first.keep(3, 9, &mut records, &mut |flow| {
                    let stored = OpenFlow::from_canonical(&flow.canonical(), &[]).unwrap();
                    assert_eq!(stored, flow);
                    assert!(second.restore(&stored));
                });
            }
            // The first answer was before the restart.
            let late = paths.number(&Path { vlans: [9, 0], ..there() });
            let records = all(second, &[packet(4, true, ACK, late)]);
            let [record] = &records.ended[..] else { panic!("one flow") };
            assert_eq!((record.packets, record.path), ([1, 2], there()));
            assert_eq!(record.reverse_path.as_deref(), expected.as_ref());
        }
    }
}

/// The counter of an entry has 23 bits.
#[test]
fn counters_of_packets_are_carried_over() {
    const PACKETS: u64 = (1 << 24) + 7;
    let paths = Arc::new(Paths::new());
    let other = Path { vlans: [8, 0], ..there() };
    // A number of two bytes.
    (0..300).for_each(|label| {
        paths.number(&Path { mpls_label: Some(label), ..Path::default() });
    });
    let [own, back] = [there(), other].map(|path| paths.number(&path));
    for slice_ns in [None, Some(SECOND)] {
        let mut table = table(&Metering::default(), &paths).with_slices(slice_ns);
        let mut records = Records::default();
        let answers = [packet(1, true, ACK, back); 64];
        table.burst(&[packet(1, false, SYN, own)], Attachments::NONE, &mut records);
        let mut left = PACKETS;
        while left > 0 {
            // Alone, and many at once.
            let count = if left.is_multiple_of(3) { 1 } else { left.min(64) };
            table.burst(&answers[..count as usize], Attachments::NONE, &mut records);
            left -= count;
        }
        let mut stored = Vec::new();
        table.keep(1, 9, &mut records, &mut |flow| stored.push(flow));
        let mut table = self::table(&Metering::default(), &paths).with_slices(slice_ns);
        assert!(table.restore(&stored[0]));
        let records = all(table, &answers[..1]);
        let [record] = &records.ended[..] else { panic!("one flow") };
        assert_eq!(record.packets, [1, PACKETS + 1]);
        assert_eq!(record.octets, record.packets.map(|packets| 40 * packets));
        assert_eq!((record.path, record.reverse_path.as_deref()), (there(), Some(&other)));
    }
}
