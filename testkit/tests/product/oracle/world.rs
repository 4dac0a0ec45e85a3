//! Random worlds for proptest: few hosts and ports, an irregular clock, and frames built byte by
//! byte.

use crate::common::Request;
use proptest::prelude::*;
use ringtap_flow::{Metering, Timeouts};
use ringtap_io::capture::PcapWriter;
use ringtap_wire::LinkType;
use ringtap_wire::Tunnels;

const SECOND: i64 = Timeouts::SECOND as i64;

/// Random traffic and the options of the monitor.
#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) request: Request,
    frames: Vec<(u64, Frame)>,
}

/// A frame and its capture length.
#[derive(Clone, Debug)]
struct Frame {
    from: u8,
    to: u8,
    v6: bool,
    ports: [u16; 2],
    content: Content,
    fragment: Fragment,
    vlan: Option<u8>,
    padding: u8,
    captured: Option<u8>,
    /// From the innermost to the outermost.
    tunnels: Vec<Tunnel>,
}

/// An encapsulation in IPv4. Its hosts also send packets without tunnels.
#[derive(Clone, Copy, Debug)]
struct Tunnel {
    from: u8,
    to: u8,
    kind: Kind,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Gre,
    IpIp,
    Vxlan,
}

#[derive(Clone, Copy, Debug)]
enum Content {
    Tcp(u8),
    Udp,
    Sctp,
    Icmp(u8),
    Gre,
    Arp,
}

#[derive(Clone, Copy, Debug)]
enum Fragment {
    Whole,
    First(u8),
    Later(u8),
}

impl World {
    /// The frames as a capture file.
    pub(crate) fn file(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut writer = PcapWriter::new(&mut bytes, LinkType(1), 65_535);
        for (ts_ns, frame) in &self.frames {
            let whole = frame.bytes();
            let captured = frame.captured.map_or(whole.len(), usize::from).min(whole.len());
            writer.write(*ts_ns, whole.len() as u32, &whole[..captured]).unwrap();
        }
        writer.flush().unwrap();
        drop(writer);
        bytes
    }
}

impl Frame {
    fn bytes(&self) -> Vec<u8> {
        let mut frame = vec![2; 12];
        if let Some(vlan) = self.vlan {
            frame.extend([0x81, 0, 0, vlan]);
        }
        let mut ether_type: [u8; 2] = match (self.content, self.v6) {
            (Content::Arp, _) => [0x08, 0x06],
            (_, false) => [0x08, 0x00],
            (_, true) => [0x86, 0xdd],
        };
        let mut packet = Vec::new();
        if matches!(self.content, Content::Arp) {
            packet.extend([0; 28]);
        } else if self.v6 {
            self.ipv6(&mut packet);
        } else {
            self.ipv4(&mut packet);
        }
        for tunnel in &self.tunnels {
            packet = tunnel.around(ether_type, &packet);
            ether_type = [0x08, 0x00];
        }
        frame.extend(ether_type);
        frame.extend(packet);
        frame
    }

    fn ipv4(&self, frame: &mut Vec<u8>) {
        let payload = self.payload();
        let (id, place) = match self.fragment {
            Fragment::Whole => (0, 0u16),
            Fragment::First(id) => (id, 0x2000),
            Fragment::Later(id) => (id, 100),
        };
        frame.extend([0x45, 0]);
        frame.extend((20 + payload.len() as u16).to_be_bytes());
        frame.extend([0, id]);
        frame.extend(place.to_be_bytes());
        frame.extend([self.ttl(), self.protocol(), 0, 0]);
        for host in [self.from, self.to] {
            frame.extend([10, 0, 0, host]);
        }
        frame.extend(payload);
    }

    fn ipv6(&self, frame: &mut Vec<u8>) {
        let payload = self.payload();
        let (extension, next): (Vec<u8>, u8) = match self.fragment {
            Fragment::Whole => (Vec::new(), self.protocol()),
            Fragment::First(id) => (vec![self.protocol(), 0, 0, 1, 0, 0, 0, id], 44),
            Fragment::Later(id) => (vec![self.protocol(), 0, 1, 0, 0, 0, 0, id], 44),
        };
        frame.extend([0x60, 0, 0, 0]);
        frame.extend(((extension.len() + payload.len()) as u16).to_be_bytes());
        frame.extend([next, self.ttl()]);
        for host in [self.from, self.to] {
            let mut address = [0; 16];
            if host < 3 {
                // The same bytes as an IPv4 address: they differ only in the version.
                address[..4].copy_from_slice(&[10, 0, 0, host]);
            } else {
                address[..4].copy_from_slice(&[0x20, 0x01, 0x0d, 0xb8]);
                address[15] = host;
            }
            frame.extend(address);
        }
        frame.extend(extension);
        frame.extend(payload);
    }

    /// Sometimes that of traceroute.
    fn ttl(&self) -> u8 {
        if self.padding % 8 == 5 { 30 } else { 64 }
    }

    fn protocol(&self) -> u8 {
        match self.content {
            Content::Tcp(_) => 6,
            Content::Udp => 17,
            Content::Sctp => 132,
            Content::Icmp(_) if self.v6 => 58,
            Content::Icmp(_) => 1,
            Content::Gre | Content::Arp => 47,
        }
    }

    fn payload(&self) -> Vec<u8> {
        if matches!(self.fragment, Fragment::Later(_)) {
            return vec![7; 16 + usize::from(self.padding)];
        }
        // Around the first port that is none of the system's.
        let first = if matches!(self.content, Content::Udp) { 1023 } else { 0 };
        let ports = self.ports.iter().flat_map(|port| (first + port).to_be_bytes());
        let mut payload: Vec<u8> = ports.collect();
        match self.content {
            Content::Tcp(flags) => {
                payload.extend([0, 0, 0, 1, 0, 0, 0, 1, 0x50, flags, 0, 0, 0, 0, 0, 0]);
            }
            Content::Icmp(kind) => payload = vec![kind, 0, 0, 0, 0, 0, 0, 0],
            _ => payload.extend([0, 8, 0, 0]),
        }
        payload.resize(payload.len() + usize::from(self.padding), 0);
        payload
    }
}

impl Tunnel {
    fn around(self, ether_type: [u8; 2], packet: &[u8]) -> Vec<u8> {
        let (protocol, header) = match (self.kind, ether_type) {
            (Kind::IpIp, [0x86, 0xdd]) => (41, vec![]),
            (Kind::IpIp, _) => (4, vec![]),
            (Kind::Gre, _) => (47, [&[0, 0][..], &ether_type].concat()),
            (Kind::Vxlan, _) => {
                let len = (8 + 8 + 14 + packet.len() as u16).to_be_bytes();
                let udp = [&[0, 1, 0x12, 0xb5][..], &len, &[0, 0]].concat();
                let frame = [&[4; 12][..], &ether_type].concat();
                (17, [&udp[..], &[8, 0, 0, 0, 0, 0, 7, 0], &frame].concat())
            }
        };
        let len = ((20 + header.len() + packet.len()) as u16).to_be_bytes();
        let ip = [0x45, 0, len[0], len[1], 0, 0, 0, 0, 64, protocol, 0, 0];
        let ends = [10, 0, 0, self.from, 10, 0, 0, self.to];
        [&ip[..], &ends, &header, packet].concat()
    }
}

/// Contents of frames; for every 24 others there are `probes` single SYNs, and half as many datagrams.
fn content(probes: u32) -> impl Strategy<Value = Content> {
    // FIN 1, SYN 2, RST 4, ACK 16, ECE 64; crafted mixtures too.
    const FLAGS: [u8; 13] =
        [2, 2, 0x42, 0x12, 0x12, 0x52, 0x10, 0x10, 0x11, 0x11, 0x04, 0x03, 0x06];
    prop_oneof![
        probes => Just(Content::Tcp(2)),
        14 => prop::sample::select(&FLAGS[..]).prop_map(Content::Tcp),
        1 => any::<u8>().prop_map(Content::Tcp),
        4 + probes / 2 => Just(Content::Udp),
        1 => Just(Content::Sctp),
        2 => prop::sample::select(&[0u8, 3, 8, 128, 129][..]).prop_map(Content::Icmp),
        1 => Just(Content::Gre),
        1 => Just(Content::Arp),
    ]
}

fn fragment() -> impl Strategy<Value = Fragment> {
    prop_oneof![
        8 => Just(Fragment::Whole),
        1 => (0u8..3).prop_map(Fragment::First),
        1 => (0u8..3).prop_map(Fragment::Later),
    ]
}

/// A frame between `hosts` hosts with `ports` ports; host 0 is the most frequent source.
fn frame(hosts: u8, ports: u16, probes: u32) -> impl Strategy<Value = Frame> {
    (
        (prop_oneof![Just(0), 0..hosts], 0..hosts, prop::bool::weighted(0.3)),
        [0..ports, 0..ports],
        content(probes),
        fragment(),
        prop::option::weighted(0.1, 0u8..3),
        prop_oneof![3 => Just(0u8), 1 => 1u8..40],
        prop::option::weighted(0.05, 0u8..80),
        tunnels(hosts),
    )
        .prop_map(
            |((from, to, v6), ports, content, fragment, vlan, padding, captured, tunnels)| Frame {
                from,
                to,
                v6,
                ports,
                content,
                fragment,
                vlan,
                padding,
                captured,
                tunnels,
            },
        )
}

fn tunnels(hosts: u8) -> impl Strategy<Value = Vec<Tunnel>> {
    let kind = prop::sample::select(&[Kind::Gre, Kind::IpIp, Kind::Vxlan][..]);
    let tunnel = (0..hosts, 0..hosts, kind).prop_map(|(from, to, kind)| Tunnel { from, to, kind });
    prop_oneof![6 => Just(Vec::new()), 1 => prop::collection::vec(tunnel, 1..3)]
}

/// The advance of the clock and the lateness of the packet. Both are mostly small; some equal a
/// timeout or differ from it by one nanosecond.
fn step(
    timeouts: &Timeouts,
    interval_ns: Option<u64>,
    pace: i64,
) -> impl Strategy<Value = (i64, i64)> + use<> {
    let Timeouts { active_ns, tcp_ns, tcp_fin_ns, tcp_rst_ns, .. } = *timeouts;
    let edges = [tcp_ns, active_ns, tcp_fin_ns, tcp_rst_ns, timeouts.tick_ns()];
    let edges = edges
        .into_iter()
        .chain(interval_ns)
        .flat_map(|edge| [edge as i64 - 1, edge as i64, edge as i64 + 1]);
    let edges: Vec<i64> = edges.collect();
    // Steps around the threshold beyond which a single packet does not move the clock.
    let leaps = [-3_600, -61, -60, 60, 61, 3_600].map(|seconds| seconds * SECOND);
    let forward = prop_oneof![
        40 => Just(0),
        80 => 0..pace,
        4 => prop::sample::select(edges.clone()),
        4 => 0..20 * pace,
        4 => -3 * pace..0,
        1 => prop::sample::select(leaps.to_vec()),
    ];
    let late = prop_oneof![
        40 => Just(0),
        4 => 0..pace,
        2 => prop::sample::select(edges),
        2 => 0..40 * pace,
        1 => prop::sample::select(leaps.to_vec()),
    ];
    (forward, late)
}

fn request() -> impl Strategy<Value = Request> {
    let intervals = [None, Some(1), Some(1_000_000_000), Some(2_500_000_001), Some(u64::MAX)];
    let second = Timeouts::SECOND;
    (
        prop::array::uniform4(prop::sample::select(vec![second, 3 * second, 7 * second])),
        prop::sample::select(vec![2 * second, 6 * second, 25 * second]),
        prop::array::uniform2(prop::sample::select(vec![0, second, 5 * second])),
        prop::sample::select(intervals.to_vec()),
        0u32..4,
        prop::sample::select(vec![1usize, 3, 10]),
        (
            any::<u64>(),
            prop::bool::weighted(0.2),
            any::<bool>(),
            prop::sample::select(&Tunnels::ALL[..]),
        ),
    )
        .prop_map(
            |(
                idles,
                active_ns,
                graces,
                interval_ns,
                threshold,
                top,
                (seed, uniflow, vlan_in_key, tunnels),
            )| {
                let [tcp_ns, udp_ns, icmp_ns, general_ns] = idles;
                let [tcp_fin_ns, tcp_rst_ns] = graces;
                let timeouts = Timeouts {
                    active_ns,
                    tcp_ns,
                    tcp_fin_ns,
                    tcp_rst_ns,
                    udp_ns,
                    icmp_ns,
                    general_ns,
                };
                let request =
                    Request::default().run(|run| (run.seed, run.tunnels) = (seed, tunnels));
                request.app(|app| {
                    // The analyses that the oracle implements.
                    app.analyses = "flows,scans,talkers,udp_scans,volumes".parse().unwrap();
                    app.metering = Metering { timeouts, uniflow, vlan_in_key, cut_ns: None };
                    (app.interval_ns, app.scan_threshold, app.top) = (interval_ns, threshold, top);
                    app.udp_scan_threshold = threshold / 2;
                })
            },
        )
}

pub(crate) fn world() -> impl Strategy<Value = World> {
    let ports = prop::sample::select(vec![1u16, 2, 30]);
    let pace = prop::sample::select(vec![SECOND / 1_000, SECOND / 5, SECOND]);
    let hosts = prop::sample::select(vec![1u8, 2, 3, 14, 14]);
    let probes = prop::sample::select(vec![1u32, 200]);
    (request(), hosts, ports, probes, pace).prop_flat_map(
        |(request, hosts, ports, probes, pace)| {
            let step = step(&request.app.metering.timeouts, request.app.interval_ns, pace);
            let frame = (step, frame(hosts, ports, probes));
            prop::collection::vec(frame, 0..300).prop_map(move |steps| {
                let mut now = 100_000 * SECOND;
                let frames = steps
                    .into_iter()
                    .map(|((forward, late), frame)| {
                        now = now.saturating_add(forward).clamp(1, 4_000_000_000 * SECOND);
                        (now.saturating_sub(late).max(1) as u64, frame)
                    })
                    .collect();
                World { request: request.clone(), frames }
            })
        },
    )
}
