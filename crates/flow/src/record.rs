//! The flow record, which is exported when a flow ends. Names and meanings follow RFC 7011/7012
//! and, for the two directions, RFC 5103.

use ringtap_extract::{Application, Facts};
use ringtap_wire::Path;

use crate::fields::{Fields, PATH_LEN, path_bytes};
use crate::key::{ICMP, ICMPV6, UDP};
use crate::{FlowKey, FlowStatistics, History, IpVersion, Origin, ResponseTimes, TcpPerformance};

/// In the canonical form: type and code of an ICMP answer are there.
const ANSWERED: u64 = 1 << 16;
/// In the same word: it is of UDP and regular. Records of early states lack it: their payload is unknown.
const REGULAR: u64 = 1 << 63;

/// Why a flow ended (IPFIX flowEndReason, element 136).
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EndReason {
    /// Silence longer than the idle timeout.
    Idle = 1,
    /// Cut while alive.
    Active = 2,
    /// TCP FIN on both sides, RST, or a new connection with the same ports.
    EndDetected = 3,
    /// The run ended.
    Forced = 4,
    /// Evicted from a full table.
    LackOfResources = 5,
}

impl EndReason {
    /// All reasons, in order of their numbers.
    pub const ALL: [Self; 5] =
        [Self::Idle, Self::Active, Self::EndDetected, Self::Forced, Self::LackOfResources];

    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Active => "active",
            Self::EndDetected => "end_detected",
            Self::Forced => "forced",
            Self::LackOfResources => "lack_of_resources",
        }
    }
}

/// How the initiator of a flow is known.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Initiator {
    /// The first sender seen: a guess, if the beginning was not seen.
    FirstPacket = 0,
    /// The sender of the first packet, a SYN.
    Syn = 1,
    /// The receiver of the first packet, a SYN with ACK: it answers a SYN that was not seen.
    SynAck = 2,
}

/// Which part of a flow a record is, if flows are cut at marks.
///
/// All packets of a part have times in one window between two marks. [`FlowRecord::of_parts`] joins the parts of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Part {
    /// From 0.
    pub number: u32,
    /// Earliest packet of the flow when its first part was made, nanoseconds since 1970.
    pub flow_first_ns: u64,
}

/// One ended flow. Index 0 of each pair is the initiator's direction, index 1 the other; of a uniflow all of index 1
/// is zero.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FlowRecord {
    /// The key in the initiator's direction.
    pub key: FlowKey,
    /// Earliest packet, nanoseconds since 1970.
    pub first_ns: u64,
    /// Latest packet, nanoseconds since 1970; never before `first_ns`.
    pub last_ns: u64,
    /// Packets.
    pub packets: [u64; 2],
    /// Layer 3 octets (octetDeltaCount).
    pub octets: [u64; 2],
    /// All TCP control bits seen, or-ed.
    pub tcp_flags: [u8; 2],
    /// Smallest and largest time to live, or hop limit; zeros without packets.
    pub ttl: [[u8; 2]; 2],
    /// Smallest and largest layer 3 length, at most 65,535; zeros without packets.
    pub ip_len: [[u16; 2]; 2],
    /// Type of service, or traffic class, of the first packet.
    pub tos: [u8; 2],
    /// ICMP type and code of the first packet, `type << 8 | code`; 0 for other protocols.
    pub icmp_type_code: u16,
    /// ICMP type and code of the first packet to the initiator; `None` without packets and for other protocols.
    pub reverse_icmp_type_code: Option<u16>,
    /// Events in order; empty for protocols other than TCP and UDP.
    pub history: History,
    /// Whether a packet of UDP was irregular ([`Flags::IRREGULAR`](ringtap_wire::Flags::IRREGULAR)): the octets of payload do
    /// not follow from those of layer 3.
    pub irregular: bool,
    /// How the initiator is known.
    pub initiator: Initiator,
    /// Why it ended.
    pub end_reason: EndReason,
    /// The encapsulation of the connection's first packet.
    pub path: Path,
    /// The encapsulation of the connection's first packet in the other direction, if it is known and not the mirror of
    /// `path`.
    pub reverse_path: Option<Box<Path>>,
    /// Facts from its payloads.
    pub facts: Facts,
    /// Its application, if it has a label and the table has a list of names.
    pub application: Option<Application>,
    /// The performance of its TCP connection, if it is measured.
    pub tcp: Option<TcpPerformance>,
    /// The response times of its server, if they are measured and there was a response.
    pub responses: Option<ResponseTimes>,
    /// Statistics of its packets, if they are measured and it has packets.
    pub statistics: Option<Box<FlowStatistics>>,
    /// The origins of source and destination, if an output adds them and any is known.
    pub origins: Option<Box<[Origin; 2]>>,
    /// Which part of its flow it is; `None`: a whole flow.
    pub part: Option<Part>,
}

impl FlowRecord {
    /// Bytes of [`FlowRecord::canonical`].
    pub const CANONICAL_LEN: usize = 192;
    /// Bytes of [`FlowRecord::canonical_reverse_path`].
    pub const REVERSE_PATH_LEN: usize = PATH_LEN;

    /// A record with a key, zeros and [`EndReason::Forced`].
    pub fn new(key: FlowKey) -> Self {
        Self {
            key,
            first_ns: 0,
            last_ns: 0,
            packets: [0; 2],
            octets: [0; 2],
            tcp_flags: [0; 2],
            ttl: [[0; 2]; 2],
            ip_len: [[0; 2]; 2],
            tos: [0; 2],
            icmp_type_code: 0,
            reverse_icmp_type_code: None,
            history: History::EMPTY,
            irregular: false,
            initiator: Initiator::FirstPacket,
            end_reason: EndReason::Forced,
            path: Path::default(),
            reverse_path: None,
            facts: Facts::default(),
            application: None,
            tcp: None,
            responses: None,
            statistics: None,
            origins: None,
            part: None,
        }
    }

    /// The side that serves, whose port the flow counts for: 0 is the source, 1 the destination.
    #[inline]
    pub fn server_side(&self) -> usize {
        self.key.server_side(self.initiator != Initiator::FirstPacket)
    }

    /// The port of the side that serves; 0 if it is unknown.
    #[inline]
    pub fn server_port(&self) -> u16 {
        [self.key.src_port, self.key.dst_port][self.server_side()]
    }

    /// Octets of payload in each direction: of TCP as measured, those sent again included; of UDP, unless a packet was
    /// irregular; otherwise unknown. Not of slices, whose flow may have had irregular packets before.
    pub fn payload_octets(&self) -> Option<[u64; 2]> {
        if self.key.protocol != UDP {
            return self.tcp.map(|tcp| tcp.octets);
        }
        if self.irregular {
            return None;
        }
        let headers = if self.key.version == IpVersion::V6 { 48 } else { 28 };
        let of = |side: usize| {
            self.packets[side]
                .checked_mul(headers)
                .and_then(|all| self.octets[side].checked_sub(all))
        };
        Some([of(0)?, of(1)?])
    }

    /// A fixed byte string for each record, for digests: little-endian fields in a fixed order. It
    /// contains everything except the facts, whose bytes are [`Facts::bytes`], the application and the origins, which
    /// follow from the key and the facts, the part, the reverse path ([`FlowRecord::canonical_reverse_path`]), the
    /// performance of TCP ([`TcpPerformance::canonical`]), the response times ([`ResponseTimes::canonical`]), and the
    /// statistics ([`FlowStatistics::bytes`]).
    pub fn canonical(&self) -> [u8; Self::CANONICAL_LEN] {
        let mut out = [0; Self::CANONICAL_LEN];
        let mut at = 0;
        let mut put = |bytes: &[u8]| {
            out[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        };
        let key = &self.key;
        put(&key.src);
        put(&key.dst);
        put(&key.src_port.to_le_bytes());
        put(&key.dst_port.to_le_bytes());
        put(&[key.protocol, key.version as u8, self.end_reason as u8, self.initiator as u8]);
        put(&self.tcp_flags);
        put(&self.tos);
        put(self.ttl.as_flattened());
        self.ip_len.as_flattened().iter().for_each(|len| put(&len.to_le_bytes()));
        put(&self.icmp_type_code.to_le_bytes());
        // An answer is of ICMP alone, the others of other protocols.
        let answer = self.reverse_icmp_type_code.map_or(0, |own| ANSWERED | u64::from(own));
        let regular = if key.protocol == UDP && !self.irregular { REGULAR } else { 0 };
        put(&(self.history.bits() | answer | regular).to_le_bytes());
        for numbers in [[self.first_ns, self.last_ns], self.packets, self.octets] {
            numbers.iter().for_each(|number| put(&number.to_le_bytes()));
        }
        put(&path_bytes(&self.path));
        out
    }

    /// The bytes of the reverse path, for digests.
    pub fn canonical_reverse_path(&self) -> Option<[u8; Self::REVERSE_PATH_LEN]> {
        self.reverse_path.as_deref().map(path_bytes)
    }

    /// Sets the reverse path that has these bytes; false if no path has them. Its interface is unknown.
    pub fn set_canonical_reverse_path(&mut self, bytes: &[u8; Self::REVERSE_PATH_LEN]) -> bool {
        let path = Fields(bytes).path();
        self.reverse_path = path.and_then(|back| reverse_of(&self.path, &back));
        path.is_some()
    }

    /// The paths by direction, as far as they are known: that of the connection's first packet, and the reverse path.
    #[inline]
    pub fn paths(&self) -> [Option<&Path>; 2] {
        let paths = [Some(&self.path), self.reverse_path.as_deref()];
        if self.initiator == Initiator::SynAck { [paths[1], paths[0]] } else { paths }
    }

    /// The path of a direction; the mirror of the other one's if packets had no other.
    fn path_of(&self, direction: usize) -> Option<Path> {
        let had_packets = self.packets[direction] > 0;
        let mirror = had_packets.then(|| self.path.reversed());
        self.paths()[direction].copied().or(mirror)
    }

    /// The record of these bytes, as [`FlowRecord::canonical`] returned them; `None` if no record has such bytes. The
    /// interface is unknown.
    pub fn from_canonical(bytes: &[u8; Self::CANONICAL_LEN]) -> Option<Self> {
        let mut bytes = Fields(bytes);
        let [src, dst] = [bytes.take(), bytes.take()];
        let [src_port, dst_port] = bytes.words();
        let [protocol, version, end_reason, initiator] = bytes.take();
        let version = IpVersion::from_number(version)?;
        let key = FlowKey { version, src, dst, src_port, dst_port, protocol };
        let mut record = Self::new(key);
        record.end_reason = EndReason::ALL.into_iter().find(|own| *own as u8 == end_reason)?;
        record.initiator = match initiator {
            0 => Initiator::FirstPacket,
            1 => Initiator::Syn,
            2 => Initiator::SynAck,
            _ => return None,
        };
        (record.tcp_flags, record.tos) = (bytes.take(), bytes.take());
        record.ttl = [bytes.take(), bytes.take()];
        record.ip_len = [bytes.words(), bytes.words()];
        [record.icmp_type_code] = bytes.words();
        let notes = u64::from_le_bytes(bytes.take());
        if matches!(protocol, ICMP | ICMPV6) {
            record.reverse_icmp_type_code = (notes & ANSWERED != 0).then_some(notes as u16);
        } else {
            record.history = History::from_bits(notes);
            record.irregular = protocol == UDP && notes & REGULAR == 0;
        }
        let mut long = || u64::from_le_bytes(bytes.take());
        (record.first_ns, record.last_ns) = (long(), long());
        (record.packets, record.octets) = ([long(), long()], [long(), long()]);
        record.path = bytes.path()?;
        Some(record)
    }

    /// A part of the same flow without packets, which says why the flow ended.
    pub(crate) fn without_packets(&self, part: Part) -> Self {
        let blank = Self::new(self.key);
        Self {
            first_ns: self.last_ns,
            last_ns: self.last_ns,
            initiator: self.initiator,
            end_reason: self.end_reason,
            path: self.path,
            reverse_path: self.reverse_path.clone(),
            icmp_type_code: self.icmp_type_code,
            application: self.application,
            part: Some(part),
            ..blank
        }
    }

    /// ICMP type and code of the first packet, if it is an ICMP flow.
    fn first_icmp(&self) -> Option<u16> {
        matches!(self.key.protocol, ICMP | ICMPV6).then_some(self.icmp_type_code)
    }

    /// Adds a later record of the same endpoints, such as the next part. The initiator is that of the first.
    pub fn join(&mut self, later: Self) {
        let turned = self.key != later.key;
        let other = usize::from(self.initiator != Initiator::SynAck);
        if self.reverse_path.is_none() && self.packets[other] == 0 {
            let back = later.path_of(if turned { 1 - other } else { other });
            self.reverse_path = back.and_then(|back| reverse_of(&self.path, &back));
        }
        for direction in 0..2 {
            let from = if turned { 1 - direction } else { direction };
            let empty = self.packets[direction] == 0;
            self.packets[direction] += later.packets[from];
            self.octets[direction] = self.octets[direction].wrapping_add(later.octets[from]);
            self.tcp_flags[direction] |= later.tcp_flags[from];
            if empty {
                self.ttl[direction] = later.ttl[from];
                self.ip_len[direction] = later.ip_len[from];
                self.tos[direction] = later.tos[from];
                if direction == 1 && later.packets[from] > 0 {
                    self.reverse_icmp_type_code =
                        if turned { later.first_icmp() } else { later.reverse_icmp_type_code };
                }
            } else if later.packets[from] > 0 {
                self.ttl[direction] = range(self.ttl[direction], later.ttl[from]);
                self.ip_len[direction] = range(self.ip_len[direction], later.ip_len[from]);
            }
        }
        if later.packets != [0; 2] {
            self.first_ns = self.first_ns.min(later.first_ns);
            self.last_ns = self.last_ns.max(later.last_ns);
        }
        self.history = self.history.with(later.history, turned);
        self.facts.join(&later.facts);
        self.irregular |= later.irregular;
        let tcp = later.tcp.filter(|_| !turned);
        self.tcp = match (self.tcp, tcp) {
            (Some(own), Some(later)) => Some(own.with(later)),
            (own, later) => own.or(later),
        };
        self.responses = match (self.responses, later.responses) {
            (Some(own), Some(later)) => Some(own.with(later)),
            (own, later) => own.or(later),
        };
        if let Some(mut later) = later.statistics {
            if turned {
                later.turn();
            }
            match &mut self.statistics {
                Some(own) => own.join(&later),
                none => *none = Some(later),
            }
        }
    }
}

/// The path in the other direction as a record has it: only if it is known and not the mirror.
pub(crate) fn reverse_of(path: &Path, back: &Path) -> Option<Box<Path>> {
    let is_known = Path { ingress: 0, ..*back } != Path::default();
    (is_known && !path.mirrors(back)).then(|| Box::new(*back))
}

fn range<T: Ord>([low, high]: [T; 2], [lower, higher]: [T; 2]) -> [T; 2] {
    [low.min(lower), high.max(higher)]
}
