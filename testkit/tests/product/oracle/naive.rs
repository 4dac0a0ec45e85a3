//! The oracle: a direct implementation of every definition of the report over the list of all
//! packets, with sorted maps and sets. It shares the decoder with the monitor (the decoder has its
//! own tests against oracles), but no table.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use crate::common::Capture;
use crate::common::Plan;
use ringtap_flow::FlowRecord;
use ringtap_flow::{EndReason, FlowKey, History, Initiator, IpVersion};
use ringtap_monitor::Report;
use ringtap_monitor::report::*;
use ringtap_wire::Tunnels;
use ringtap_wire::{Decoder, Flags, PacketRecord, Path, Paths};

const TCP: u8 = 6;
const UDP: u8 = 17;

/// The expected report of a plan, and the expected records, sorted.
pub(crate) fn report(plan: &Plan, capture: &Capture) -> (Report, Vec<FlowRecord>) {
    let paths = Arc::new(Paths::new());
    let packets = decoded(plan, &paths, capture);
    let metered: Vec<_> = packets.iter().filter(|p| metered(plan, p)).copied().collect();
    let total = volumes(&packets.iter().collect::<Vec<_>>());
    let (conversations, by_interval) = conversations(plan, &packets);
    let (flows, mut records) = flows(plan, &paths, &packets);
    let applications = applications(plan, &mut records);
    let report = Report {
        packets: total.0,
        octets: total.1,
        protocols: Some(total.2),
        intervals: Some(intervals(plan, &packets, conversations, &by_interval)),
        packets_in_further_intervals: 0,
        alerts_without_room: 0,
        exchanges_without_room: 0,
        suppressed_alerts: None,
        conversations: Some(conversations),
        flows: Some(flows),
        facts: None,
        sections: Sections {
            scans: Some(scans(plan, &metered)),
            udp_scans: Some(udp_scans(plan, &records)),
            talkers: Some(talkers(plan, &metered, &records)),
            applications: plan.app.analyses.applications.then_some(applications),
            ..Sections::default()
        },
        state: None,
        series: None,
    };
    (report, records)
}

/// Sets the applications of records, by their ports: the captures have no facts. Returns their volumes.
fn applications(plan: &Plan, records: &mut [FlowRecord]) -> Applications {
    let mut all = BTreeMap::<_, ApplicationVolume>::new();
    for record in records {
        let FlowKey { protocol, src_port, dst_port, .. } = record.key;
        let ports = [src_port, dst_port];
        record.application = plan.app.names.application(protocol, ports, &record.facts);
        let label = record.application.map(|own| own.label.as_str().to_owned());
        let volume = all.entry(label).or_default();
        volume.flows += 1;
        volume.packets += record.packets[0] + record.packets[1];
        volume.octets += record.octets[0] + record.octets[1];
    }
    let unlabelled = all.remove(&None).unwrap_or_default();
    let row =
        |(label, volume): (Option<String>, _)| Some(ApplicationRow { application: label?, volume });
    let mut rows: Vec<_> = all.into_iter().filter_map(row).collect();
    rows.sort_by_key(|row| (u64::MAX - row.volume.octets, row.application.clone()));
    let further = rows.len().saturating_sub(plan.app.top) as u64;
    rows.truncate(plan.app.top);
    Applications { rows, further, unlabelled }
}

fn decoded(plan: &Plan, paths: &Arc<Paths>, capture: &Capture) -> Vec<PacketRecord> {
    let mut files = capture.open();
    let decoder = Decoder::new(plan.hash_key(), Arc::clone(paths));
    let mut decoder = decoder.with_tunnels(plan.options.tunnels);
    let mut packets = Vec::new();
    let each =
        |packets: &mut Vec<_>, decoder: &mut Decoder, frame: ringtap_io::capture::Frame<'_>| {
            let mut record = PacketRecord::EMPTY;
            decoder.decode(frame.link, frame.ts_ns, frame.data, frame.original_len, &mut record);
            packets.push(record);
            packets.extend(decoder.inner(&record));
        };
    while files.burst(100, |frame| each(&mut packets, &mut decoder, frame)) > 0 {}
    packets
}

/// Whether the packet counts for flows, talkers and scans.
fn metered(plan: &Plan, packet: &PacketRecord) -> bool {
    match plan.options.tunnels {
        Tunnels::Outer => !has(packet, Flags::INNER),
        Tunnels::Inner => !has(packet, Flags::TUNNEL),
        Tunnels::Both => true,
    }
}

fn has(packet: &PacketRecord, flag: Flags) -> bool {
    packet.flags.contains(flag)
}

/// Whether the packet has addresses.
fn addressed(packet: &PacketRecord) -> bool {
    packet.is_ip() && !has(packet, Flags::BAD_HEADER)
}

/// Source and destination port, if the protocol has any and they are known.
fn ports(packet: &PacketRecord) -> Option<(u16, u16)> {
    let known = has(packet, Flags::PORTS) || has(packet, Flags::PORTS_FROM_FIRST);
    let has_any = ![1, 58].contains(&packet.protocol);
    (known && has_any).then_some((packet.src_port, packet.dst_port))
}

fn key(packet: &PacketRecord) -> FlowKey {
    let (src_port, dst_port) = ports(packet).unwrap_or((0, 0));
    FlowKey {
        version: if has(packet, Flags::IPV6) { IpVersion::V6 } else { IpVersion::V4 },
        src: packet.src,
        dst: packet.dst,
        src_port,
        dst_port,
        protocol: packet.protocol,
    }
}

type Volumes = (Packets, Octets, BTreeMap<u8, Volume>);

fn volumes(all: &[&PacketRecord]) -> Volumes {
    let (inner, packets): (Vec<&PacketRecord>, Vec<_>) =
        all.iter().copied().partition(|p| has(p, Flags::INNER));
    let count =
        |is: &dyn Fn(&PacketRecord) -> bool| packets.iter().filter(|p| is(p)).count() as u64;
    let sum = |of: fn(&PacketRecord) -> u32| packets.iter().map(|p| u64::from(of(p))).sum();
    let mut protocols: BTreeMap<u8, Volume> = BTreeMap::new();
    for packet in packets.iter().filter(|p| p.is_ip()) {
        let volume = protocols.entry(packet.protocol).or_default();
        volume.packets += 1;
        volume.octets += u64::from(packet.ip_len);
    }
    let counts = Packets {
        handled: packets.len() as u64,
        ipv4: count(&|p| has(p, Flags::IPV4)),
        ipv6: count(&|p| has(p, Flags::IPV6)),
        non_ip: count(&|p| !p.is_ip()),
        fragments: count(&|p| has(p, Flags::FRAGMENT)),
        truncated: count(&|p| has(p, Flags::TRUNCATED)),
        inner: inner.len() as u64,
    };
    (counts, Octets { wire: sum(|p| p.wire_len), ip: sum(|p| p.ip_len) }, protocols)
}

fn interval_of(plan: &Plan, packet: &PacketRecord) -> u64 {
    plan.app.interval_ns.map_or(0, |interval_ns| packet.ts_ns / interval_ns)
}

/// Distinct conversations in total and by interval. A conversation counts in the interval of a
/// packet if that interval is later than all in which it has counted before.
fn conversations(
    plan: &Plan,
    packets: &[PacketRecord],
) -> (Conversations, BTreeMap<u64, Conversations>) {
    let mut latest = BTreeMap::new();
    let mut all = Conversations::default();
    let mut by_interval: BTreeMap<u64, Conversations> = BTreeMap::new();
    for packet in packets.iter().filter(|p| has(p, Flags::PORTS) && !has(p, Flags::INNER)) {
        let FlowKey { version, src, dst, src_port, dst_port, protocol } = key(packet);
        let mut ends = [(src, src_port), (dst, dst_port)];
        ends.sort();
        let one = |row: &mut Conversations| match protocol {
            TCP => row.tcp += 1,
            UDP => row.udp += 1,
            _ => {}
        };
        let interval = interval_of(plan, packet);
        let before = latest.get(&(version, protocol, ends)).copied();
        if before.is_none() {
            one(&mut all);
        }
        if before.is_none_or(|before| before < interval) {
            one(by_interval.entry(interval).or_default());
            latest.insert((version, protocol, ends), interval);
        }
    }
    (all, by_interval)
}

fn intervals(
    plan: &Plan,
    packets: &[PacketRecord],
    all: Conversations,
    by_interval: &BTreeMap<u64, Conversations>,
) -> Vec<Interval> {
    let mut groups: BTreeMap<u64, Vec<&PacketRecord>> = BTreeMap::new();
    for packet in packets {
        groups.entry(interval_of(plan, packet)).or_default().push(packet);
    }
    let row = |(number, group): (u64, Vec<&PacketRecord>)| {
        let (packets, octets, protocols) = volumes(&group);
        let times = || group.iter().map(|p| p.ts_ns);
        let (start, end, conversations) = match plan.app.interval_ns {
            None => (times().min().unwrap(), times().max().unwrap(), all),
            Some(interval_ns) => (
                number * interval_ns,
                (number * interval_ns).saturating_add(interval_ns),
                by_interval.get(&number).copied().unwrap_or_default(),
            ),
        };
        Interval { start: Time(start), end: Time(end), packets, octets, protocols, conversations }
    };
    groups.into_iter().map(row).collect()
}

/// Scans. An attempt is a SYN without ACK, FIN and RST; an answer is a SYN with ACK, without FIN
/// and RST.
fn scans(plan: &Plan, packets: &[PacketRecord]) -> Scans {
    let (mut tried, mut answered) = (BTreeMap::new(), BTreeSet::new());
    for packet in packets.iter().filter(|p| p.protocol == TCP && has(p, Flags::PORTS)) {
        let key = key(packet);
        let (source, target) = (key.source(), key.destination());
        match packet.tcp_flags & 0b1_0111 {
            0b0_0010 => {
                let times: &mut Vec<u64> = tried.entry((source, target, key.dst_port)).or_default();
                times.push(packet.ts_ns);
            }
            0b1_0010 => {
                answered.insert((target, source, key.src_port));
            }
            _ => {}
        }
    }
    tried.retain(|attempt, _| !answered.contains(attempt));
    let mut vertical: BTreeMap<_, (BTreeSet<u16>, Vec<u64>)> = BTreeMap::new();
    let mut horizontal: BTreeMap<_, (BTreeSet<IpAddr>, Vec<u64>)> = BTreeMap::new();
    for ((source, target, port), times) in tried {
        let down = vertical.entry((source, target)).or_default();
        down.0.insert(port);
        down.1.extend(&times);
        let across = horizontal.entry((source, port)).or_default();
        across.0.insert(target);
        across.1.extend(&times);
    }
    let threshold = plan.app.scan_threshold as usize;
    vertical.retain(|_, (ports, _)| ports.len() > threshold);
    horizontal.retain(|_, (targets, _)| targets.len() > threshold);
    let first = |times: &[u64]| Time(*times.iter().min().unwrap());
    let last = |times: &[u64]| Time(*times.iter().max().unwrap());
    Scans {
        vertical: vertical
            .into_iter()
            .map(|((source, target), (ports, times))| VerticalScan {
                source,
                target,
                ports: ports.len() as u64,
                first: first(&times),
                last: last(&times),
                sample: ports.into_iter().take(10).collect(),
            })
            .collect(),
        horizontal: horizontal
            .into_iter()
            .map(|((source, port), (targets, times))| HorizontalScan {
                source,
                port,
                protocol: "tcp",
                targets: targets.len() as u64,
                first: first(&times),
                last: last(&times),
                sample: targets.into_iter().take(10).collect(),
            })
            .collect(),
        attempts_ignored: 0,
        protocol: ScanProtocol::Tcp,
    }
}

/// The failed members of a group, their times, and the number of answered ones.
type UdpGroup<M> = (BTreeSet<M>, Vec<u64>, usize);

/// Scans over UDP: flow records without packets back, less those with.
fn udp_scans(plan: &Plan, records: &[FlowRecord]) -> Scans {
    let is_service = |port: u16| port < 1024 || [1900, 3702, 5353, 5355].contains(&port);
    let (mut tried, mut answered) = (BTreeMap::<_, Vec<u64>>::new(), BTreeSet::new());
    let has_ports = |record: &&FlowRecord| record.key.src_port > 0 || record.key.dst_port > 0;
    for record in records.iter().filter(|r| r.key.protocol == UDP).filter(has_ports) {
        let FlowKey { src_port, dst_port, .. } = record.key;
        let (source, target) = (record.key.source(), record.key.destination());
        let is_group = match target {
            IpAddr::V4(target) => target.is_multicast() || target.octets() == [255; 4],
            IpAddr::V6(target) => target.is_multicast(),
        };
        let is_group = is_group || record.path.macs[1][0] % 2 == 1;
        let is_short = (1..=16).contains(&record.packets[0]) && record.ttl[0][0] > 30;
        if is_short && !is_group && !is_service(src_port) {
            let times = tried.entry((source, target, dst_port)).or_default();
            times.extend([record.first_ns, record.last_ns]);
        }
        if record.packets[1] > 0 {
            answered.insert((source, target, dst_port));
        } else if record.packets[0] > 0 && !is_service(dst_port) {
            answered.insert((target, source, src_port));
        }
    }
    let mut vertical: BTreeMap<_, UdpGroup<u16>> = BTreeMap::new();
    let mut horizontal: BTreeMap<_, UdpGroup<IpAddr>> = BTreeMap::new();
    for (attempt, times) in tried {
        let (source, target, port) = attempt;
        let down = vertical.entry((source, target)).or_default();
        let across = horizontal.entry((source, port)).or_default();
        if answered.contains(&attempt) {
            (down.2, across.2) = (down.2 + 1, across.2 + 1);
        } else {
            down.0.insert(port);
            down.1.extend(&times);
            across.0.insert(target);
            across.1.extend(&times);
        }
    }
    let threshold = plan.app.udp_scan_threshold as usize;
    let first = |times: &[u64]| Time(*times.iter().min().unwrap());
    let last = |times: &[u64]| Time(*times.iter().max().unwrap());
    vertical.retain(|_, own| own.0.len() > threshold + own.2);
    horizontal.retain(|_, own| own.0.len() > threshold + own.2);
    Scans {
        vertical: vertical
            .into_iter()
            .map(|((source, target), (ports, times, answered))| VerticalScan {
                source,
                target,
                ports: (ports.len() - answered) as u64,
                first: first(&times),
                last: last(&times),
                sample: ports.into_iter().take(10).collect(),
            })
            .collect(),
        horizontal: horizontal
            .into_iter()
            .map(|((source, port), (targets, times, answered))| HorizontalScan {
                source,
                port,
                protocol: "udp",
                targets: (targets.len() - answered) as u64,
                first: first(&times),
                last: last(&times),
                sample: targets.into_iter().take(10).collect(),
            })
            .collect(),
        attempts_ignored: 0,
        protocol: ScanProtocol::Udp,
    }
}

/// The server port of a flow: of the side that was asked, if the begin of the connection was seen; otherwise the one of a
/// lower class, or the destination's; 0 is none.
fn server_port(record: &FlowRecord) -> u16 {
    let FlowKey { src_port, dst_port, .. } = record.key;
    let class = |port| [1_024, 32_768].iter().filter(|first| port >= **first).count();
    match record.initiator {
        Initiator::FirstPacket if dst_port == 0 => src_port,
        Initiator::FirstPacket if src_port > 0 && class(src_port) < class(dst_port) => src_port,
        _ => dst_port,
    }
}

/// Talkers, summed by packet, and ports by flow.
fn talkers(plan: &Plan, packets: &[PacketRecord], records: &[FlowRecord]) -> Talkers {
    let mut sources: BTreeMap<IpAddr, Volume> = BTreeMap::new();
    let mut destinations: BTreeMap<IpAddr, Volume> = BTreeMap::new();
    let mut pairs: BTreeMap<[IpAddr; 2], Volume> = BTreeMap::new();
    let mut by_port: BTreeMap<(u8, u16), Volume> = BTreeMap::new();
    for packet in packets.iter().filter(|p| addressed(p)) {
        let key = key(packet);
        let mut ends = [key.source(), key.destination()];
        let add = |volume: &mut Volume| {
            volume.packets += 1;
            volume.octets += u64::from(packet.ip_len);
        };
        add(sources.entry(ends[0]).or_default());
        add(destinations.entry(ends[1]).or_default());
        ends.sort();
        add(pairs.entry(ends).or_default());
    }
    for record in records.iter().filter(|record| server_port(record) > 0) {
        let own = by_port.entry((record.key.protocol, server_port(record))).or_default();
        own.packets += record.packets[0] + record.packets[1];
        own.octets += record.octets[0] + record.octets[1];
    }
    let rankings =
        |octets_first: bool| Rankings {
            source: ranked(&sources, plan.app.top, octets_first, |address, volume| HostRow {
                address,
                origin: HostOrigin::default(),
                volume,
            }),
            destination: ranked(&destinations, plan.app.top, octets_first, |address, volume| {
                HostRow { address, origin: HostOrigin::default(), volume }
            }),
            pair: ranked(&pairs, plan.app.top, octets_first, |addresses, volume| PairRow {
                addresses,
                volume,
            }),
            port: ranked(&by_port, plan.app.top, octets_first, |(protocol, port), volume| {
                PortRow { protocol, port, volume }
            }),
            crowds: Crowds::default(),
        };
    Talkers {
        by_octets: rankings(true),
        by_packets: rankings(false),
        error_bound: 0,
        packets_error_bound: 0,
    }
}

fn ranked<K: Copy + Ord, R>(
    sums: &BTreeMap<K, Volume>,
    top: usize,
    octets_first: bool,
    row: impl Fn(K, Volume) -> R,
) -> Vec<R> {
    let mut rows: Vec<(K, Volume)> = sums.iter().map(|(&key, &volume)| (key, volume)).collect();
    // The sort is stable, so equal rows stay in the order of their keys.
    rows.sort_by_key(|(_, Volume { packets, octets })| {
        std::cmp::Reverse(if octets_first { (*octets, *packets) } else { (*packets, *octets) })
    });
    rows.into_iter().take(top).map(|(key, volume)| row(key, volume)).collect()
}

/// Live flows by key, and by VLANs if these are part of the key.
type Flowing = BTreeMap<(FlowKey, Option<(u8, [u16; 2])>), Live>;

/// A live flow: its record so far, which sides have sent a FIN, how it was closed, and the path of the first packet in the
/// other direction than that of the connection's first packet.
#[derive(Clone)]
struct Live {
    record: FlowRecord,
    fin: [bool; 2],
    closed: Option<Closed>,
    back: Option<Path>,
}

#[derive(Clone, Copy)]
enum Closed {
    Fin,
    Rst,
}

impl Live {
    fn begin(plan: &Plan, paths: &Paths, packet: &PacketRecord) -> Self {
        let icmp = [1, 58].contains(&packet.protocol);
        let (own, back) = (key(packet), key(packet).reversed());
        let (syn, ack) = (packet.tcp_flags & 2 != 0, packet.tcp_flags & 16 != 0);
        let tcp = packet.protocol == TCP;
        let answer = tcp && syn && ack && own != back && !plan.app.metering.uniflow;
        let initiator = match (tcp && syn && !ack, answer) {
            (true, _) => Initiator::Syn,
            (_, true) => Initiator::SynAck,
            _ => Initiator::FirstPacket,
        };
        let record = FlowRecord {
            first_ns: packet.ts_ns,
            last_ns: packet.ts_ns,
            icmp_type_code: if icmp { packet.dst_port } else { 0 },
            initiator,
            path: *paths.get(packet.path),
            ..FlowRecord::new(if answer { back } else { own })
        };
        Self { record, fin: [false; 2], closed: None, back: None }
    }

    /// The next part of a flow that the active timeout ended; it is still the same connection.
    fn next_part(&self, plan: &Plan, paths: &Paths, packet: &PacketRecord) -> Self {
        let mut next = Self::begin(plan, paths, packet);
        (next.fin, next.closed, next.back) = (self.fin, self.closed, self.back);
        (next.record.key, next.record.initiator) = (self.record.key, self.record.initiator);
        next.record.path = self.record.path;
        next
    }

    fn expired(&self, plan: &Plan, now_ns: u64) -> Option<EndReason> {
        let silent_ns = now_ns.saturating_sub(self.record.last_ns);
        let timeouts = &plan.app.metering.timeouts;
        let (idle_ns, reason) = match (self.closed, self.record.key.protocol) {
            (Some(Closed::Fin), _) => (timeouts.tcp_fin_ns, EndReason::EndDetected),
            (Some(Closed::Rst), _) => (timeouts.tcp_rst_ns, EndReason::EndDetected),
            (None, TCP) => (timeouts.tcp_ns, EndReason::Idle),
            (None, UDP) => (timeouts.udp_ns, EndReason::Idle),
            (None, 1 | 58) => (timeouts.icmp_ns, EndReason::Idle),
            (None, _) => (timeouts.general_ns, EndReason::Idle),
        };
        (silent_ns > idle_ns).then_some(reason)
    }

    fn ends_before(&self, plan: &Plan, packet: &PacketRecord) -> Option<EndReason> {
        let age_ns = packet.ts_ns.saturating_sub(self.record.first_ns);
        let begins = packet.tcp_flags & 0b1_0010 == 0b0_0010;
        self.expired(plan, packet.ts_ns)
            .or_else(|| {
                (age_ns >= plan.app.metering.timeouts.active_ns).then_some(EndReason::Active)
            })
            .or_else(|| (self.closed.is_some() && begins).then_some(EndReason::EndDetected))
    }

    fn count(&mut self, paths: &Paths, packet: &PacketRecord, key: &FlowKey) {
        let side = usize::from(self.record.key != *key);
        if (side == 1) != (self.record.initiator == Initiator::SynAck) {
            self.back.get_or_insert(*paths.get(packet.path));
        }
        let record = &mut self.record;
        let (ttl, len) = (packet.ttl, packet.ip_len.min(65_535) as u16);
        if record.packets[side] == 0 {
            (record.ttl[side], record.ip_len[side]) = ([ttl; 2], [len; 2]);
            record.tos[side] = packet.tos;
            if side == 1 && [1, 58].contains(&packet.protocol) {
                record.reverse_icmp_type_code = Some(packet.dst_port);
            }
        }
        record.first_ns = record.first_ns.min(packet.ts_ns);
        record.last_ns = record.last_ns.max(packet.ts_ns);
        record.packets[side] += 1;
        record.octets[side] += u64::from(packet.ip_len);
        record.tcp_flags[side] |= packet.tcp_flags;
        record.ttl[side] = [record.ttl[side][0].min(ttl), record.ttl[side][1].max(ttl)];
        record.ip_len[side] = [record.ip_len[side][0].min(len), record.ip_len[side][1].max(len)];
        record.irregular |= has(packet, Flags::IRREGULAR);
        let letters = letters(packet);
        let letters = if side == 0 { letters.to_ascii_uppercase() } else { letters };
        record.history = History::of(&(record.history.to_string() + &letters));
        self.fin[side] |= packet.tcp_flags & 1 != 0;
        // FINs of both sides or an RST close the flow; the first of these counts.
        let rst = packet.tcp_flags & 4 != 0;
        if rst || packet.tcp_flags & 1 != 0 && self.fin == [true; 2] {
            self.closed.get_or_insert(if rst { Closed::Rst } else { Closed::Fin });
        }
    }

    /// The record of a flow at the end of the run or at a step of the clock.
    fn closed_or_forced(&self) -> FlowRecord {
        let closed = self.closed.is_some();
        self.ended(if closed { EndReason::EndDetected } else { EndReason::Forced })
    }

    fn ended(&self, end_reason: EndReason) -> FlowRecord {
        let known = |back: &Path| Path { ingress: 0, ..*back } != Path::default();
        let is_other = |back: &Path| known(back) && !are_mirrors(&self.record.path, back);
        let reverse_path = self.back.filter(is_other).map(Box::new);
        FlowRecord { end_reason, reverse_path, ..self.record.clone() }
    }
}

/// Whether two paths have the same links in opposite directions, whatever the interfaces.
fn are_mirrors(one: &Path, other: &Path) -> bool {
    let ends = |path: &Path| {
        let tunnel = path.tunnel.map(|tunnel| [tunnel.src, tunnel.dst]);
        ([path.macs[0], path.outer_macs[0]], [path.macs[1], path.outer_macs[1]], tunnel)
    };
    let tags = |path: &Path| (path.vlan_tags, path.vlans, path.mpls_label, path.mpls_second_label);
    let kind = |path: &Path| path.tunnel.map(|tunnel| (tunnel.kind, tunnel.ipv6, tunnel.id));
    let (from, to, tunnel) = ends(other);
    let tunnel = tunnel.map(|[src, dst]| [dst, src]);
    ends(one) == (to, from, tunnel) && tags(one) == tags(other) && kind(one) == kind(other)
}

/// The letters of Zeek's history for one packet.
fn letters(packet: &PacketRecord) -> String {
    let [fin, syn, rst, ack] = [1, 2, 4, 16].map(|bit| packet.tcp_flags & bit != 0);
    let data = has(packet, Flags::DATA);
    let all = [
        (syn && !ack, 's'),
        (syn && ack, 'h'),
        (ack && !syn && !fin && !rst && !data, 'a'),
        (data, 'd'),
        (fin, 'f'),
        (rst, 'r'),
    ];
    all.into_iter().filter_map(|(is, letter)| is.then_some(letter)).collect()
}

/// A packet whose timestamp differs from the clock by more than this moves the clock only together
/// with others.
const FAR_NS: u64 = 60_000_000_000;

/// The clock after a packet.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Time {
    /// The clock advances, or stays.
    On(u64),
    /// The clock is set back.
    Back(u64),
}

/// The clock after each packet, from the timestamps of all packets; and the time at the end. The
/// clock is the latest near timestamp. Four far timestamps in a row, all ahead, move it to the
/// smallest of them; 32 in a row, all behind, set it back to the largest of them.
fn times(all: &[u64]) -> (Vec<Time>, u64) {
    let mut times = Vec::new();
    let Some(&first) = all.first() else { return (times, 0) };
    let (mut now, mut since) = (first, 0);
    let far = |now: u64, ts: u64| ts.abs_diff(now) > FAR_NS;
    for (at, &ts) in all.iter().enumerate() {
        let mut time = Time::On(now.max(ts));
        if far(now, ts) {
            let alike = |other: &&u64| far(now, **other) && (**other > now) == (ts > now);
            let run: Vec<u64> = all[since..=at].iter().rev().take_while(alike).copied().collect();
            time = match ts > now {
                true if run.len() >= 4 => Time::On(*run.iter().min().unwrap()),
                false if run.len() >= 32 => Time::Back(*run.iter().max().unwrap()),
                _ => Time::On(now),
            };
        }
        let (Time::On(next) | Time::Back(next)) = time;
        if far(now, next) {
            since = at + 1;
        }
        now = next;
        times.push(time);
    }
    let last = all[since..].iter().rev().take_while(|&&ts| ts > now && far(now, ts));
    (times, last.copied().max().unwrap_or(now))
}

/// Flows and their records, packet by packet. A mark precedes the first packet at which the clock
/// reaches the next multiple of the tick. Flows that have expired at a mark end, even if late
/// packets follow. When the clock is set back, all flows end.
fn flows(plan: &Plan, paths: &Paths, packets: &[PacketRecord]) -> (Flows, Vec<FlowRecord>) {
    let mut live: Flowing = BTreeMap::new();
    let mut records = Vec::new();
    let mut active_peak = 0;
    let mut mark = |live: &mut Flowing, records: &mut Vec<_>, now_ns| {
        live.retain(|_, flow| {
            let reason = flow.expired(plan, now_ns);
            records.extend(reason.map(|reason| flow.ended(reason)));
            reason.is_none()
        });
        active_peak = active_peak.max(live.len() as u64);
    };
    let tick_ns = plan.app.metering.timeouts.tick_ns();
    // An inner packet has the time of its outermost packet.
    let outermost = packets.iter().filter(|packet| !has(packet, Flags::INNER));
    let (times, end_ns) = times(&outermost.map(|packet| packet.ts_ns).collect::<Vec<_>>());
    let mut times = times.into_iter();
    let mut reached = packets.first().map_or(0, |p| p.ts_ns / tick_ns);
    let mut now = packets.first().map_or(0, |p| p.ts_ns);
    for packet in packets {
        let time = if has(packet, Flags::INNER) { None } else { times.next() };
        match time {
            Some(Time::On(to)) => {
                now = to;
                if now / tick_ns > reached {
                    reached = now / tick_ns;
                    mark(&mut live, &mut records, reached * tick_ns);
                }
            }
            Some(Time::Back(to)) => {
                mark(&mut live, &mut records, now);
                records.extend(live.values().map(Live::closed_or_forced));
                live.clear();
                now = to;
                reached = now / tick_ns;
            }
            None => {}
        }
        if !addressed(packet) || !metered(plan, packet) {
            continue;
        }
        let key = key(packet);
        let name = if plan.app.metering.uniflow { key } else { key.min(key.reversed()) };
        let path = paths.get(packet.path);
        let vlans = (path.vlan_tags.min(2), path.vlans);
        let name = (name, plan.app.metering.vlan_in_key.then_some(vlans));
        let flow = live.entry(name).or_insert_with(|| Live::begin(plan, paths, packet));
        if let Some(reason) = flow.ends_before(plan, packet) {
            records.push(flow.ended(reason));
            *flow = match reason {
                EndReason::Active => flow.next_part(plan, paths, packet),
                _ => Live::begin(plan, paths, packet),
            };
        }
        flow.count(paths, packet, &key);
    }
    mark(&mut live, &mut records, end_ns);
    records.extend(live.values().map(Live::closed_or_forced));
    records.sort();
    let with = |reason| records.iter().filter(|record| record.end_reason == reason).count() as u64;
    let flows = Flows {
        parts: None,
        resumed: None,
        not_continued: None,
        kept: None,
        records: records.len() as u64,
        active_peak: Some(active_peak),
        end_reasons: EndReason::ALL.iter().map(|&reason| (reason.name(), with(reason))).collect(),
        records_digest: None,
    };
    (flows, records)
}
