//! Profiles: descriptions of traffic. Every field has a default, so a profile file contains only the changes; unknown
//! fields are rejected, and values out of range are errors before memory is allocated.

use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// Most frames of a profile (each flow counts its packets in 32 bits).
pub(crate) const PACKETS_MAX: u64 = u32::MAX as u64;
/// Most flows of a profile; each takes 43 bytes.
pub(crate) const FLOWS_MAX: u64 = 1 << 26;
/// Most scanners, and most forged sources: each has its own address.
pub(crate) const SOURCES_MAX: u64 = 1 << 21;
const TARGETS_MAX: u32 = 1 << 20;
const ATTEMPTS_MAX: u64 = 1 << 26;
const FLOODS_MAX: usize = 1 << 10;
/// Ports of forged sources.
pub(crate) const FORGED_PORTS: u32 = 60_000;
/// The longest headers (VLAN, IPv6, fragment header and TCP) are 86 bytes.
const SNAPLEN_MIN: u32 = 96;
/// Messages are not truncated.
const MESSAGE_SNAPLEN_MIN: u32 = 1518;
const NAMES_MAX: u32 = 1 << 20;
const RTT_US: std::ops::RangeInclusive<u32> = 200..=1_000_000;
/// More than the longest exchange.
const EXCHANGE_NS_MAX: u64 = 3_600_000_000_000;
const FRAME_RANGE: std::ops::RangeInclusive<u32> = 64..=9018;
/// Capture files have 32 bits for seconds.
const END_NS_MAX: u64 = u32::MAX as u64 * 1_000_000_000;

/// A description of traffic. With a seed it determines every byte.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(default, deny_unknown_fields)]
pub struct Profile {
    /// Name of the profile.
    pub name: String,
    /// Number of frames, 1 to 2^32 - 1. Flows get the frames that scans and floods leave. If scans and floods need
    /// more, the traffic ends at this number; without flows it may end earlier.
    pub packets: u64,
    /// Background conversations, at most 2^26. If there are too few packets for the least of each flow (4 for TCP with
    /// a life cycle, otherwise 1 or 2), there are fewer flows.
    pub flows: u64,
    /// Exponent of the Zipf law of the flows' sizes, 0 (all equal) to 10.
    pub zipf: f64,
    /// Size of frames with data.
    pub size: Size,
    /// Frames are truncated to this many bytes, at least 96; the original length is kept.
    pub snaplen: u32,
    /// Time of the first frame, nanoseconds since 1970.
    pub start_ns: u64,
    /// Time from the first frame to the end of the run; the rate is constant.
    pub duration_ns: u64,
    /// Frames a second; if not 0, it replaces the duration.
    pub packets_per_second: u64,
    /// All flows begin at the start, in random order, and last to the end; otherwise they begin and end at any time.
    pub steady: bool,
    /// Share of flows that are TCP.
    pub tcp_share: f64,
    /// Share of flows that are ICMP or ICMPv6 echo.
    pub icmp_share: f64,
    /// Share of flows that are ARP. The rest after TCP, ICMP and ARP is UDP.
    pub arp_share: f64,
    /// TCP connections open with SYN and SYN-ACK and close with FIN or RST; otherwise only ACK segments are sent.
    pub tcp_lifecycle: bool,
    /// bytes. A VLAN tag is added to it. Frames have at least their headers and one byte; TCP control packets have the
    /// minimum of Ethernet.
    pub two_way_share: f64,
    /// Share of UDP flows whose datagrams are sent as two fragments, one way.
    pub fragment_share: f64,
    /// Share of flows that are IPv6.
    pub ipv6_share: f64,
    /// Share of flows with a VLAN tag.
    pub vlan_share: f64,
    /// A source is a scanner with more than this many failed attempts.
    pub scan_threshold: u32,
    /// Scanners, and clients with similar behaviour.
    pub scans: Vec<ScanSpec>,
    /// SYN floods and their backscatter; at most 1024.
    pub floods: Vec<FloodSpec>,
    /// Flows with messages.
    pub applications: Option<Applications>,
}

/// Flows with messages of TLS, QUIC, HTTP, SSH and DNS, and TCP connections with round trips and losses.
///
/// Loss and the like are shares of data segments; at most one segment of a flight of up to 8 is affected.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(default, deny_unknown_fields)]
pub struct Applications {
    /// Share of all packets; flows are added until it is reached. They begin within the run, and may end after it.
    pub share: f64,
    /// Names of servers, 1 to 2^20.
    pub names: u32,
    /// Exponent of the Zipf law of the names, 0 (all equal) to 10.
    pub zipf: f64,
    /// Share of these flows that are TLS 1.3 over TCP.
    pub tls_share: f64,
    /// Share of these flows that are QUIC.
    pub quic_share: f64,
    /// Share of these flows that are HTTP/1.1.
    pub http_share: f64,
    /// Share of these flows that are SSH. The rest is DNS.
    pub ssh_share: f64,
    /// Share of flows of TLS, QUIC and HTTP whose first message takes two packets: a hello with a long key share, a
    /// request with a long cookie.
    pub long_share: f64,
    /// Share of DNS flows with a name that does not exist (NXDOMAIN).
    pub missing_share: f64,
    /// From the observer to the client and back, microseconds, 200 to 1,000,000: the least and the most. Each magnitude
    /// is equally likely.
    pub client_rtt_us: [u32; 2],
    /// From the observer to the server and back, in the same form.
    pub server_rtt_us: [u32; 2],
    /// Share of segments that are lost behind the observer, which sees them again; also of SYN and FIN.
    pub loss: f64,
    /// Share of segments that are lost before the observer.
    pub loss_before: f64,
    /// Share of segments that arrive behind the next one.
    pub reordering: f64,
    /// Share of acknowledgments that are repeated without a reason.
    pub duplicate_acks: f64,
    /// Share of flights after which the receiver has no room for a time.
    pub zero_windows: f64,
}

/// Sources that try each of `targets` × `ports` once.
///
/// A failed attempt is a TCP SYN to a distinct (address, port) that no SYN-ACK answers, or a datagram without an answer.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(default, deny_unknown_fields)]
pub struct ScanSpec {
    /// Number of sources, each with different targets.
    pub sources: u32,
    /// Share of all packets; sources are added until it is reached.
    pub share: f64,
    /// Addresses tried by each source, 1 to 2^20.
    pub targets: u32,
    /// Ports tried at each target, 1 to 65535.
    pub ports: u32,
    /// The lowest of these ports, 1 to 65535.
    pub first_port: u16,
    /// Attempts that are answered with SYN-ACK, evenly distributed.
    pub answered: u32,
    /// Answers arrive only after all attempts.
    pub late: bool,
    /// Closed ports answer with RST; otherwise not at all.
    pub reset: bool,
    /// How often the SYN of an attempt without an early answer is sent again, at most 16.
    pub resends: u32,
    /// A source that resends ignores a RST and tries the closed port again.
    pub insist: bool,
    /// IPv6 instead of IPv4.
    pub ipv6: bool,
    /// Datagrams without a payload instead of SYNs, answered by such datagrams or, without `reset`, not at all.
    pub udp: bool,
}

/// One victim, one port, and many forged sources (address, port) with one frame each: not a scan.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(default, deny_unknown_fields)]
pub struct FloodSpec {
    /// Forged addresses; at most 2^21 in all floods.
    pub sources: u32,
    /// Share of all packets: the addresses are used again with other ports until it is reached, at most 60,000 times.
    /// 0: one packet an address.
    pub share: f64,
    /// Port of the victim.
    pub port: u16,
    /// The direction that is captured.
    pub seen: Seen,
    /// IPv6 instead of IPv4.
    pub ipv6: bool,
}

/// The direction of a flood at the observation point.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Seen {
    /// The SYNs to the victim.
    Attack,
    /// The victim's answers (alternately SYN-ACK and RST) to the forged sources.
    Backscatter,
}

/// Size of frames with data, in bytes on the wire with the frame check sequence, which capture files lack: 64 gives
/// frames of
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
#[serde(from = "SizeText", into = "SizeText")]
pub enum Size {
    /// All equal, 64 to 9018.
    Fixed(u32),
    /// 64, 594 and 1518 as 7 : 4 : 1 over all frames of flows: if there are many control packets, data frames are
    /// large.
    Imix,
}

/// In a file a size is a number or the word `imix`.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum SizeText {
    Number(u32),
    Word(SizeWord),
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum SizeWord {
    Imix,
}

impl From<SizeText> for Size {
    fn from(text: SizeText) -> Self {
        match text {
            SizeText::Number(bytes) => Size::Fixed(bytes),
            SizeText::Word(SizeWord::Imix) => Size::Imix,
        }
    }
}

impl From<Size> for SizeText {
    fn from(size: Size) -> Self {
        match size {
            Size::Fixed(bytes) => SizeText::Number(bytes),
            Size::Imix => SizeText::Word(SizeWord::Imix),
        }
    }
}

impl FromStr for Size {
    type Err = ProfileError;

    fn from_str(text: &str) -> Result<Self, ProfileError> {
        match text.parse() {
            _ if text.eq_ignore_ascii_case("imix") => Ok(Size::Imix),
            Ok(bytes) if FRAME_RANGE.contains(&bytes) => Ok(Size::Fixed(bytes)),
            _ => Err(ProfileError::Size),
        }
    }
}

/// Why a profile cannot be generated.
#[derive(thiserror::Error, Clone, Debug, PartialEq)]
pub enum ProfileError {
    /// A value out of its range.
    #[error("invalid {field} {value}: use {allowed}")]
    Range {
        /// Name of the field as in a profile file.
        field: &'static str,
        /// The invalid value.
        value: String,
        /// The valid range.
        allowed: &'static str,
    },
    /// An invalid frame size.
    #[error("invalid size: use imix, or 64 to 9018 bytes")]
    Size,
    /// The shares of the protocols exceed 1.
    #[error("tcp_share, icmp_share and arp_share add up to {0:.3}, more than 1")]
    Shares(f64),
    /// No flows, scans, floods or applications.
    #[error("no flows, scans, floods or applications: there is nothing to send")]
    Nothing,
    /// Not enough memory for the flows.
    #[error("not enough memory for {0} flows: use fewer")]
    Memory(u64),
}

impl Profile {
    /// Checks the profile.
    pub fn validate(&self) -> Result<(), ProfileError> {
        range("packets", self.packets, (1..=PACKETS_MAX).contains(&self.packets), "1 to 2^32 - 1")?;
        range("flows", self.flows, self.flows <= FLOWS_MAX, "0 to 2^26")?;
        range("zipf", self.zipf, (0.0..=10.0).contains(&self.zipf), "0 to 10")?;
        if matches!(self.size, Size::Fixed(bytes) if !FRAME_RANGE.contains(&bytes)) {
            return Err(ProfileError::Size);
        }
        range("snaplen", self.snaplen, self.snaplen >= SNAPLEN_MIN, "at least 96")?;
        // Flows with messages that begin at the end last longer.
        let longer = if self.applications.is_some() { EXCHANGE_NS_MAX } else { 0 };
        let end = self.start_ns.checked_add(self.run_ns()).and_then(|end| end.checked_add(longer));
        let fits = end.is_some_and(|end| end <= END_NS_MAX);
        range("duration_ns", self.duration_ns, fits, "an end before the year 2106")?;
        for (field, share) in [
            ("tcp_share", self.tcp_share),
            ("icmp_share", self.icmp_share),
            ("arp_share", self.arp_share),
            ("two_way_share", self.two_way_share),
            ("fragment_share", self.fragment_share),
            ("ipv6_share", self.ipv6_share),
            ("vlan_share", self.vlan_share),
        ] {
            range(field, share, (0.0..=1.0).contains(&share), "0 to 1")?;
        }
        let protocols = self.tcp_share + self.icmp_share + self.arp_share;
        if protocols > 1.0 + 1e-9 {
            return Err(ProfileError::Shares(protocols));
        }
        self.scans.iter().try_for_each(ScanSpec::validate)?;
        let scanners: u64 = self.scans.iter().map(|scan| scan.sources_in(self.packets)).sum();
        range("scans.sources", scanners, scanners <= SOURCES_MAX, "2^21 in all")?;
        range("floods", self.floods.len(), self.floods.len() <= FLOODS_MAX, "1024 floods")?;
        self.floods.iter().try_for_each(|flood| flood.validate(self.packets))?;
        let forged: u64 = self.floods.iter().map(|flood| u64::from(flood.sources)).sum();
        range("floods.sources", forged, forged <= SOURCES_MAX, "2^21 in all")?;
        let applications = self.applications.as_ref();
        applications.map_or(Ok(()), |spec| spec.validate(self.snaplen))?;
        let exchanges = applications.is_some_and(|spec| spec.share > 0.0);
        if self.flows + scanners + forged == 0 && !exchanges {
            return Err(ProfileError::Nothing);
        }
        Ok(())
    }

    /// Time from the first frame to the end of the run, nanoseconds.
    pub(crate) fn run_ns(&self) -> u64 {
        match self.packets_per_second {
            0 => self.duration_ns,
            rate => (u128::from(self.packets) * 1_000_000_000 / u128::from(rate)) as u64,
        }
    }
}

impl Default for Profile {
    fn default() -> Self {
        Self {
            name: "custom".into(),
            packets: 1_000_000,
            flows: 10_000,
            zipf: 1.0,
            size: Size::Imix,
            snaplen: 262_144,
            start_ns: 1_700_000_000_000_000_000,
            duration_ns: 60_000_000_000,
            packets_per_second: 0,
            steady: false,
            tcp_share: 0.6,
            icmp_share: 0.0,
            arp_share: 0.0,
            tcp_lifecycle: true,
            two_way_share: 0.5,
            fragment_share: 0.0,
            ipv6_share: 0.0,
            vlan_share: 0.0,
            scan_threshold: 20,
            scans: Vec::new(),
            floods: Vec::new(),
            applications: None,
        }
    }
}

impl Applications {
    fn validate(&self, snaplen: u32) -> Result<(), ProfileError> {
        for (field, share) in [
            ("applications.share", self.share),
            ("applications.tls_share", self.tls_share),
            ("applications.quic_share", self.quic_share),
            ("applications.http_share", self.http_share),
            ("applications.ssh_share", self.ssh_share),
            ("applications.long_share", self.long_share),
            ("applications.missing_share", self.missing_share),
            ("applications.loss", self.loss),
            ("applications.loss_before", self.loss_before),
            ("applications.reordering", self.reordering),
            ("applications.duplicate_acks", self.duplicate_acks),
            ("applications.zero_windows", self.zero_windows),
        ] {
            range(field, share, (0.0..=1.0).contains(&share), "0 to 1")?;
        }
        let protocols = self.tls_share + self.quic_share + self.http_share + self.ssh_share;
        let allowed = "shares of protocols of 1 at most together";
        range("applications", format!("{protocols:.3}"), protocols <= 1.0 + 1e-9, allowed)?;
        range(
            "applications.names",
            self.names,
            (1..=NAMES_MAX).contains(&self.names),
            "1 to 2^20",
        )?;
        range("applications.zipf", self.zipf, (0.0..=10.0).contains(&self.zipf), "0 to 10")?;
        for (field, [least, most]) in [
            ("applications.client_rtt_us", self.client_rtt_us),
            ("applications.server_rtt_us", self.server_rtt_us),
        ] {
            let good = RTT_US.contains(&least) && RTT_US.contains(&most) && least <= most;
            let allowed = "the least and the most of 200 to 1000000";
            range(field, format!("[{least}, {most}]"), good, allowed)?;
        }
        let allowed = "at least 1518 with applications";
        range("snaplen", snaplen, snaplen >= MESSAGE_SNAPLEN_MIN, allowed)
    }
}

impl Default for Applications {
    fn default() -> Self {
        Self {
            share: 1.0,
            names: 10_000,
            zipf: 1.0,
            tls_share: 0.35,
            quic_share: 0.15,
            http_share: 0.15,
            ssh_share: 0.05,
            long_share: 0.3,
            missing_share: 0.1,
            client_rtt_us: [200, 30_000],
            server_rtt_us: [500, 150_000],
            loss: 0.01,
            loss_before: 0.005,
            reordering: 0.01,
            duplicate_acks: 0.005,
            zero_windows: 0.02,
        }
    }
}

impl ScanSpec {
    /// Attempts of one source.
    pub(crate) fn attempts(&self) -> u64 {
        u64::from(self.targets) * u64::from(self.ports)
    }

    /// Frames of one source and of the hosts that answer it.
    pub(crate) fn frames(&self) -> u64 {
        let (attempts, answered) = (self.attempts(), u64::from(self.answered));
        let prompt = if self.late { 0 } else { answered };
        let resets = if self.reset { attempts - answered } else { 0 };
        let late = answered - prompt;
        let settled = prompt + if self.insist { 0 } else { resets };
        attempts + prompt + resets + u64::from(self.resends) * (attempts - settled) + late
    }

    /// Sources in a run of this many packets.
    pub(crate) fn sources_in(&self, packets: u64) -> u64 {
        let filling = (packets as f64 * self.share / self.frames() as f64).ceil() as u64;
        filling.max(self.sources.into())
    }

    fn validate(&self) -> Result<(), ProfileError> {
        let targets = (1..=TARGETS_MAX).contains(&self.targets);
        range("scans.targets", self.targets, targets, "1 to 2^20")?;
        let last_port = u64::from(self.first_port) + u64::from(self.ports);
        let ports = self.ports > 0 && self.first_port > 0 && last_port <= 65_536;
        range("scans.ports", self.ports, ports, "1 to 65535, counted from first_port")?;
        range("scans", self.attempts(), self.attempts() <= ATTEMPTS_MAX, "2^26 attempts a source")?;
        let answered = u64::from(self.answered) <= self.attempts();
        range("scans.answered", self.answered, answered, "no more than targets × ports")?;
        range("scans.share", self.share, (0.0..=1.0).contains(&self.share), "0 to 1")?;
        range("scans.reset", self.reset, !(self.udp && self.reset), "false for UDP")?;
        range("scans.resends", self.resends, self.resends <= 16, "0 to 16")
    }
}

impl Default for ScanSpec {
    /// One source that tries 100 ports of one silent target.
    fn default() -> Self {
        Self {
            sources: 1,
            share: 0.0,
            targets: 1,
            ports: 100,
            first_port: 1,
            answered: 0,
            late: false,
            reset: false,
            resends: 0,
            insist: false,
            ipv6: false,
            udp: false,
        }
    }
}

impl Default for FloodSpec {
    fn default() -> Self {
        Self { sources: 1000, share: 0.0, port: 80, seen: Seen::Attack, ipv6: false }
    }
}

impl FloodSpec {
    /// Forged (address, port) pairs in a run of this many packets; the number of frames is the same.
    pub(crate) fn frames_in(&self, packets: u64) -> u64 {
        ((packets as f64 * self.share).ceil() as u64).max(self.sources.into())
    }

    fn validate(&self, packets: u64) -> Result<(), ProfileError> {
        range("floods.share", self.share, (0.0..=1.0).contains(&self.share), "0 to 1")?;
        let most = u64::from(self.sources) * u64::from(FORGED_PORTS);
        let enough = self.frames_in(packets) <= most;
        range("floods.share", self.share, enough, "60,000 packets a forged address")
    }
}

fn range(
    field: &'static str,
    value: impl ToString,
    good: bool,
    allowed: &'static str,
) -> Result<(), ProfileError> {
    if good {
        Ok(())
    } else {
        Err(ProfileError::Range { field, value: value.to_string(), allowed })
    }
}
