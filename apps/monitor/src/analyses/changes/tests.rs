//! New devices and ports against sets, volumes, clocks that step back, full tables; and any distribution over workers.

use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;
use ringtap_flow::{FlowTable, IpVersion, Metering, Observer};
use ringtap_stage::Attachments;
use ringtap_wire::HashKey;

use super::*;
use crate::Options;

const SECOND: u64 = 1_000_000_000;
const MINUTE: u64 = 60 * SECOND;

fn context(limits: ChangeLimits) -> Context {
    let options = Options { change_limits: limits, ..Options::default() };
    options.context(HashKey::from_seed(3), Vec::new())
}

fn limits(new_device: u64, new_server_port: u64) -> ChangeLimits {
    let [new_device, new_server_port] =
        [new_device, new_server_port].map(|seconds| (seconds > 0).then_some(seconds * SECOND));
    ChangeLimits { new_device, new_server_port, ..ChangeLimits::default() }
}

fn address(host: u8) -> [u8; 16] {
    let mut address = [0; 16];
    address[..4].copy_from_slice(&[10, 0, 0, host]);
    address
}

fn ip(host: u8) -> IpAddr {
    [10, 0, 0, host].into()
}

/// A slice that begins at this second: UDP from one host to the port of another, with packets in each direction.
fn slice(second: u64, from: u8, to: (u8, u16), packets: [u64; 2]) -> FlowRecord {
    let key = FlowKey {
        version: IpVersion::V4,
        src: address(from),
        dst: address(to.0),
        src_port: 50_000,
        dst_port: to.1,
        protocol: UDP,
    };
    let [first_ns, octets] = [second * SECOND, 100].map(|number| number);
    let octets = packets.map(|packets| packets * octets);
    FlowRecord { first_ns, last_ns: first_ns, packets, octets, ..FlowRecord::new(key) }
}

/// A packet of TCP at this second, from a host's port.
fn answer(second: u64, from: (u8, u16), tcp_flags: u8) -> PacketRecord {
    let mut packet = PacketRecord {
        flags: Flags(Flags::IPV4.0 | Flags::PORTS.0),
        ts_ns: second * SECOND,
        protocol: TCP,
        src_port: from.1,
        dst_port: 50_000,
        tcp_flags,
        ..PacketRecord::EMPTY
    };
    (packet.src, packet.dst) = (address(from.0), address(99));
    packet
}

/// A worker and the merger.
struct Run {
    worker: ChangeTable,
    merger: ChangeMerger,
    signals: Vec<Signal>,
}

impl Run {
    fn new(limits: ChangeLimits) -> Self {
        let context = context(limits);
        let shard = Shard { index: 0, count: 1 };
        let (worker, merger) = (ChangeTable::new(&context, shard), ChangeMerger::new(&context));
        Self { worker, merger, signals: Vec::new() }
    }

    /// A mark after these slices.
    fn mark(&mut self, second: u64, slices: &[FlowRecord]) {
        slices.iter().for_each(|slice| self.worker.add_slice(slice, Slice::Whole));
        let found = self.worker.on_tick(second * SECOND);
        found.into_iter().for_each(|found| self.merger.merge(found));
        self.merger.on_time(second * SECOND, &mut |signal| self.signals.push(signal));
    }

    fn end(mut self) -> (Changes, Vec<Signal>) {
        self.merger.merge_end(self.worker.end());
        let section = self.merger.end(&mut |signal| self.signals.push(signal));
        (section, self.signals)
    }
}

/// The slices of a flow table, to a worker.
struct Sliced<'a>(&'a mut ChangeTable);

impl Observer for Sliced<'_> {
    fn counted(&mut self, _: &PacketRecord, _: &mut u16) {}
    fn late(&mut self, _: &PacketRecord, _: u16) {}
    fn ended(&mut self, _: &FlowRecord, _: u16) {}
    fn slice(&mut self, record: &FlowRecord, of: Slice) {
        self.0.add_slice(record, of);
    }
}

/// The changes that follow from UDP packets (time in ns, from, to, back), if flows are sliced by this interval.
fn changes_of(packets: &[(u64, u8, u8, bool)], slice_s: u64) -> String {
    let limits = ChangeLimits { volume_change: Some(2), volume_floor: Some(0), ..limits(70, 70) };
    let mut run = Run::new(limits);
    let key = HashKey::from_seed(3);
    let table = FlowTable::new(64, &Metering::default(), key, Arc::default());
    let mut table = table.with_slices(Some(slice_s * SECOND));
    let mut next_ns = MINUTE;
    for &(ts_ns, from, to, back) in packets {
        while ts_ns >= next_ns {
            while !table.sweep(next_ns, 64, &mut Sliced(&mut run.worker)) {}
            run.mark(next_ns / SECOND, &[]);
            next_ns += MINUTE;
        }
        let mut packet = PacketRecord { ts_ns, protocol: UDP, ip_len: 100, ..PacketRecord::EMPTY };
        packet.flags = Flags(Flags::IPV4.0 | Flags::PORTS.0);
        (packet.src, packet.dst) = (address(from), address(to));
        (packet.src_port, packet.dst_port) = (50_000, 53);
        if back {
            std::mem::swap(&mut packet.src, &mut packet.dst);
            std::mem::swap(&mut packet.src_port, &mut packet.dst_port);
        }
        packet.pair_hash = key.pair(&packet.src, &packet.dst);
        table.burst(&[packet], &Attachments::default(), &mut Sliced(&mut run.worker));
    }
    while !table.is_empty() {
        table.drain(next_ns, 64, &mut Sliced(&mut run.worker));
    }
    let (section, signals) = run.end();
    format!("{section:?} {signals:?}")
}

fn devices(changes: &Changes) -> Vec<(u64, IpAddr)> {
    changes.new_devices.iter().map(|row| (row.first.0 / SECOND, row.host)).collect()
}

#[test]
fn a_device_is_new_if_it_first_sends_after_the_learning_time() {
    let mut run = Run::new(limits(100, 0));
    run.mark(60, &[slice(5, 1, (2, 53), [1, 1]), slice(59, 3, (9, 53), [1, 0])]);
    // Host 9 has received only; 4 sends at the end of the learning time, 5 before it.
    run.mark(
        135,
        &[
            slice(105, 4, (1, 53), [1, 1]),
            slice(104, 5, (1, 53), [1, 1]),
            slice(106, 1, (2, 53), [1, 1]),
        ],
    );
    let found = |run: &Run| run.signals.len();
    assert_eq!(found(&run), 1, "{:?}", run.signals);
    run.mark(200, &[slice(130, 9, (1, 53), [1, 0]), slice(131, 9, (1, 53), [1, 0])]);
    assert_eq!(found(&run), 2, "{:?}", run.signals);
    run.mark(300, &[slice(250, 4, (9, 53), [1, 1])]);
    let mut other = slice(301, 7, (1, 53), [1, 0]);
    other.key.src[..4].copy_from_slice(&[8, 8, 8, 8]);
    run.worker.add_slice(&other, Slice::Whole);
    run.worker.add_slice(&slice(302, 6, (8, 53), [0, 1]), Slice::Whole);
    let (section, signals) = run.end();
    assert_eq!(devices(&section), [(105, ip(4)), (130, ip(9)), (302, ip(8))]);
    let subject = |signal: &Signal| match signal {
        Signal::New { time, subject: Subject::NewDevice { host } } => (time.0 / SECOND, *host),
        other => panic!("{other:?}"),
    };
    assert_eq!(signals.iter().map(subject).collect::<Vec<_>>(), devices(&section));
    assert_eq!((section.new_server_ports.len(), section.ignored), (0, 0));
}

#[test]
fn a_port_is_new_if_its_host_first_answers_on_it_after_the_learning_time() {
    let mut run = Run::new(limits(0, 60));
    let answers = [answer(1, (1, 22), SYN_ACK), answer(70, (1, 80), SYN_ACK)];
    run.worker.on_packets(&answers);
    // Neither an attempt, nor a RST, nor another host.
    run.worker.on_packets(&[answer(71, (1, 81), 2), answer(71, (1, 82), 20)]);
    let foreign = PacketRecord { src: [8; 16], ..answer(71, (1, 83), SYN_ACK) };
    run.worker.on_packets(&[foreign]);
    let mut slices = vec![
        slice(0, 2, (3, 53), [1, 1]),
        slice(72, 2, (3, 53), [1, 1]),
        slice(73, 2, (3, 123), [1, 0]),
        slice(74, 2, (3, 1_900), [1, 1]),
        slice(75, 2, (3, 40_000), [1, 1]),
        slice(76, 4, (2, 5_353), [1, 2]),
    ];
    // It is unknown which of them was asked.
    let mut equal = slice(76, 4, (2, 4_500), [1, 1]);
    equal.key.src_port = 4_500;
    equal.initiator = Initiator::FirstPacket;
    slices.push(equal);
    // An answer is the first packet that was seen.
    let mut late = slice(77, 3, (2, 0), [2, 1]);
    (late.key.src_port, late.key.dst_port) = (161, 50_001);
    slices.push(late);
    run.mark(200, &slices);
    run.worker.on_packets(&[answer(300, (1, 443), SYN_ACK), answer(310, (1, 22), SYN_ACK)]);
    let (section, signals) = run.end();
    let ports = section.new_server_ports.iter();
    let ports: Vec<_> =
        ports.map(|row| (row.first.0 / SECOND, row.host, row.service.to_string())).collect();
    let expected = [
        (70, ip(1), "80/tcp"),
        (74, ip(3), "1900/udp"),
        (76, ip(2), "5353/udp"),
        (77, ip(3), "161/udp"),
        (300, ip(1), "443/tcp"),
    ];
    assert_eq!(ports, expected.map(|(time, host, port)| (time, host, port.to_owned())));
    let services: Vec<_> = signals
        .iter()
        .map(|signal| match signal {
            Signal::New { subject: Subject::NewServerPort { host, services }, .. } => {
                let [service] = services[..] else { panic!("{services:?}") };
                (*host, service.to_string())
            }
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(services, expected.map(|(_, host, port)| (host, port.to_owned())));
    assert!(section.new_devices.is_empty());
}

#[test]
fn the_rest_of_the_learning_time_goes_on_after_a_clock_was_set_back() {
    let new = |learning: u64, last: u64| {
        let mut run = Run::new(limits(learning, 0));
        run.mark(10_000, &[slice(9_900, 1, (2, 53), [1, 1])]);
        run.mark(10_020, &[]);
        // Back by two hours.
        run.mark(2_820, &[slice(10_019, 5, (1, 53), [1, 1])]);
        run.mark(2_900, &[slice(2_830, 3, (1, 53), [1, 1])]);
        run.mark(last, &[slice(last - 50, 4, (1, 53), [1, 1])]);
        let hosts = run.end().0.new_devices.into_iter().map(|row| row.host);
        hosts.collect::<Vec<_>>()
    };
    // It was over.
    assert_eq!(new(100, 3_100), [ip(5), ip(3), ip(4)]);
    // 880 seconds of it are left.
    assert!(new(1_000, 3_700).is_empty());
    assert_eq!(new(1_000, 3_760), [ip(4)]);
}

#[test]
fn a_volume_is_compared_with_those_before() {
    let limits =
        ChangeLimits { volume_change: Some(4), volume_floor: Some(900), ..ChangeLimits::default() };
    let mut run = Run::new(limits);
    for minute in 0..12 {
        run.mark(60 * minute + 60, &[slice(60 * minute, 1, (2, 53), [2, 1])]);
    }
    run.mark(800, &[slice(720, 1, (2, 53), [9, 1]), slice(721, 3, (2, 53), [0, 3])]);
    let (section, signals) = run.end();
    let rows: Vec<_> = section
        .volume_changes
        .iter()
        .map(|row| (row.start.0 / MINUTE, row.host, row.octets, row.median))
        .collect();
    // Host 2 received from 3, too.
    assert_eq!(rows, [(12, ip(2), 1_300, 300)], "above 4 × 300, and 1,000 of host 1 are not");
    let reached: Vec<_> = signals
        .iter()
        .filter_map(|signal| match signal {
            Signal::Interval { reached, of_volumes: true, .. } => Some(reached.len()),
            _ => None,
        })
        .collect();
    assert_eq!((reached.len(), reached.iter().sum::<usize>()), (13, 1), "{reached:?}");
    assert!(section.new_devices.is_empty());
}

#[test]
fn what_has_no_room_is_counted() {
    let mut worker = Run::new(limits(1, 0)).worker;
    for host in 0..CELLS as u32 + 5 {
        let mut one = slice(1, 1, (2, 53), [1, 0]);
        one.key.src[1..4].copy_from_slice(&host.to_be_bytes()[1..]);
        worker.add_slice(&one, Slice::Whole);
    }
    // Who only receives has no cell.
    assert_eq!(worker.ignored, 5);
    let mut run = Run::new(limits(1, 0));
    run.mark(1, &[slice(1, 1, (2, 53), [1, 1])]);
    run.merger.known.hosts = (0..KNOWN as u32).map(|host| host.to_be_bytes().into()).collect();
    run.mark(200, &[slice(100, 77, (2, 53), [1, 0])]);
    let (section, _) = run.end();
    assert_eq!((section.new_devices.len(), section.ignored), (0, 3));
    let mut rows = Vec::new();
    let mut further = 0;
    (0..10_003).for_each(|row| rows::list(&mut rows, &mut further, row));
    assert_eq!((rows.len(), further), (10_000, 3));
}

#[test]
fn the_ports_of_a_host_take_no_room_from_others() {
    let mut run = Run::new(limits(1, 1));
    let most = PORTS_OF_HOST as u16;
    run.mark(1, &[slice(1, 1, (2, 53), [1, 1])]);
    // The first port of host 2 was learnt.
    let many = (1_000..1_000 + most + 3).map(|port| slice(70, 1, (2, port), [1, 1]));
    run.mark(200, &many.collect::<Vec<_>>());
    run.mark(300, &[slice(250, 1, (3, 53), [1, 1]), slice(250, 1, (2, 53), [1, 1])]);
    // Known hosts fill memory of their own.
    run.merger.known.hosts = (0..KNOWN as u32).map(|host| host.to_be_bytes().into()).collect();
    run.mark(400, &[slice(350, 1, (4, 53), [1, 0]), slice(351, 1, (3, 54), [0, 1])]);
    assert_eq!(run.merger.known.ports.len(), PORTS_OF_HOST + 2);
    let (section, _) = run.end();
    assert_eq!(devices(&section), [(250, ip(3))]);
    let ports: Vec<_> =
        section.new_server_ports.iter().map(|row| (row.host, row.service.port)).collect();
    let expected = (1_000..1_000 + most - 1)
        .map(|port| (ip(2), port))
        .chain([53, 54].map(|port| (ip(3), port)));
    assert_eq!(ports, expected.collect::<Vec<_>>());
    // Four ports of host 2, and hosts 1 and 3.
    assert_eq!(section.ignored, 6);
    // What is not asked for is not kept.
    let mut run = Run::new(limits(0, 1));
    run.mark(200, &[slice(1, 1, (2, 53), [1, 1])]);
    assert_eq!((run.merger.known.hosts.len(), run.merger.known.ports.len()), (0, 1));
}

proptest! {
    /// A page has shorter slices.
    #[test]
    fn any_length_of_slices_finds_the_same(
        steps in vec((0_u64..30, 0_u8..5, 0_u8..5, any::<bool>()), 0..60),
    ) {
        let mut now_ns = 0;
        let packets: Vec<_> = steps
            .into_iter()
            .map(|(more, from, to, back)| {
                now_ns += more * SECOND + 7;
                (now_ns, from, to, back)
            })
            .collect();
        let whole = changes_of(&packets, 60);
        prop_assert_eq!(&changes_of(&packets, 10), &whole);
        prop_assert_eq!(&changes_of(&packets, 5), &whole);
    }

    /// Slices between few hosts at rising times, split over workers by pair: the same as on one worker, and as a map says.
    #[test]
    fn any_number_of_workers_finds_the_same(
        steps in vec((0_u64..40, 0_u8..6, 1_u8..6, 0_usize..3, [0_u64..3, 0_u64..3]), 0..60),
        learning in 1_u64..200,
    ) {
        let volumes = ChangeLimits { volume_change: Some(2), volume_floor: Some(150), ..limits(learning, learning) };
        let context = context(volumes);
        let ports = [53, 5_000, 40_000];
        let mut now = 600;
        let steps: Vec<_> = steps
            .into_iter()
            .map(|(step, from, more, port, packets)| {
                now += step;
                (step, slice(now, from, ((from + more) % 6, ports[port]), packets))
            })
            .collect();
        let run = |count: usize| {
            let table = |index| ChangeTable::new(&context, Shard { index, count });
            let mut workers: Vec<_> = (0..count).map(table).collect();
            let (mut merger, mut signals) = (ChangeMerger::new(&context), Vec::new());
            for (step, one) in &steps {
                workers[usize::from(one.key.src[3] ^ one.key.dst[3]) % count].add_slice(one, Slice::Whole);
                let now = one.first_ns / SECOND;
                if now / 45 > (now - step) / 45 {
                    let time_ns = now / 45 * 45 * SECOND;
                    let found = workers.iter_mut().rev().filter_map(|own| own.on_tick(time_ns));
                    found.for_each(|found| merger.merge(found));
                    merger.on_time(time_ns, &mut |signal| signals.push(signal));
                }
            }
            workers.into_iter().rev().for_each(|own| merger.merge_end(own.end()));
            let section = merger.end(&mut |signal| signals.push(signal));
            (section, signals)
        };
        let one = run(1);
        prop_assert_eq!(&one, &run(3));
        let mut first = BTreeMap::new();
        for (_, one) in &steps {
            let hosts = [one.key.source(), one.key.destination()];
            let sent = hosts.into_iter().zip(one.packets).filter(|(_, packets)| *packets > 0);
            for (host, _) in sent {
                first.entry(host).or_insert(one.first_ns / SECOND);
            }
        }
        let begin = first.values().min().copied().unwrap_or(0);
        let new = first.into_iter().map(|(host, time)| (time, host));
        let mut new: Vec<_> = new.filter(|(time, _)| *time >= begin + learning).collect();
        new.sort_unstable();
        prop_assert_eq!(devices(&one.0), new);
    }
}
