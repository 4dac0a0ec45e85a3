//! When a flow ends.

use std::fmt;

/// The class of a flow, which selects its idle timeout. The last two are closed TCP connections.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Any other protocol.
    Other = 0,
    /// An open TCP connection.
    Tcp = 1,
    /// UDP.
    Udp = 2,
    /// ICMP and ICMPv6.
    Icmp = 3,
    /// A TCP connection with FIN from both sides.
    TcpFin = 4,
    /// A TCP connection with RST.
    TcpRst = 5,
}

impl Class {
    /// All classes, in order of their numbers.
    pub const ALL: [Self; 6] =
        [Self::Other, Self::Tcp, Self::Udp, Self::Icmp, Self::TcpFin, Self::TcpRst];

    /// The bits that its number takes.
    pub(crate) const MASK: u8 = 7;

    /// Whether it is one of closed connections.
    pub const fn is_closed(self) -> bool {
        self as u8 >= Self::TcpFin as u8
    }

    /// The class of a new flow.
    #[inline(always)]
    pub(crate) const fn of(protocol: u8) -> Self {
        match protocol {
            6 => Self::Tcp,
            17 => Self::Udp,
            1 | 58 => Self::Icmp,
            _ => Self::Other,
        }
    }
}

/// Flow expiry, in packet time.
///
/// A flow ends when more than its idle timeout has passed since its last packet. The timeout
/// depends on the protocol and, for TCP, on whether the connection was closed: then it is a short
/// grace for the last ACK and for retransmissions, and the end reason is `end_detected` instead of
/// `idle`.
///
/// ```
/// use ringtap_flow::Timeouts;
///
/// let mut timeouts = Timeouts::preset("nfdump").unwrap();
/// assert!(timeouts.set("udp", 10 * Timeouts::SECOND));
/// assert_eq!(timeouts.tcp_ns, 60 * Timeouts::SECOND);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// A flow is cut when a packet arrives this long or longer after its first, nanoseconds;
    /// `u64::MAX`: never.
    pub active_ns: u64,
    /// Idle timeout of TCP connections that are open, nanoseconds.
    pub tcp_ns: u64,
    /// Grace after FIN from both sides, nanoseconds since the last packet.
    pub tcp_fin_ns: u64,
    /// Grace after RST, nanoseconds since the last packet.
    pub tcp_rst_ns: u64,
    /// Idle timeout of UDP, nanoseconds.
    pub udp_ns: u64,
    /// Idle timeout of ICMP and ICMPv6, nanoseconds.
    pub icmp_ns: u64,
    /// Idle timeout of every other protocol, nanoseconds.
    pub general_ns: u64,
}

impl Timeouts {
    /// One second in nanoseconds.
    pub const SECOND: u64 = 1_000_000_000;

    /// The presets by name.
    pub const PRESETS: [(&'static str, Self); 6] = [
        ("nprobe", Self::with(30, 120)),
        ("nfdump", Self::with(60, 300)),
        ("yaf", Self::with(300, 1800)),
        ("cisco", Self::with(15, 1800)),
        ("zeek", Self { active_ns: u64::MAX, tcp_ns: 300 * Self::SECOND, ..Self::with(60, 0) }),
        (
            "softflowd",
            Self {
                active_ns: 7 * 86_400 * Self::SECOND,
                tcp_ns: 3600 * Self::SECOND,
                tcp_fin_ns: 300 * Self::SECOND,
                tcp_rst_ns: 120 * Self::SECOND,
                udp_ns: 300 * Self::SECOND,
                icmp_ns: 300 * Self::SECOND,
                ..Self::with(3600, 0)
            },
        ),
    ];

    /// One idle timeout for all open flows and an active timeout, in seconds; 5 s after the end of a
    /// TCP connection.
    const fn with(idle_s: u64, active_s: u64) -> Self {
        let idle_ns = idle_s * Self::SECOND;
        Self {
            active_ns: active_s * Self::SECOND,
            tcp_ns: idle_ns,
            tcp_fin_ns: 5 * Self::SECOND,
            tcp_rst_ns: 5 * Self::SECOND,
            udp_ns: idle_ns,
            icmp_ns: idle_ns,
            general_ns: idle_ns,
        }
    }

    /// Sets the idle timeouts of all open flows to `idle_ns`.
    pub const fn idle(self, idle_ns: u64) -> Self {
        Self { tcp_ns: idle_ns, udp_ns: idle_ns, icmp_ns: idle_ns, general_ns: idle_ns, ..self }
    }

    /// Packet time between two marks: half the shortest idle timeout, from a second to five
    /// minutes, so that idle flows are exported soon.
    pub fn tick_ns(&self) -> u64 {
        let shortest = self.tcp_ns.min(self.udp_ns).min(self.icmp_ns).min(self.general_ns);
        (shortest / 2).clamp(Self::SECOND, 300 * Self::SECOND)
    }

    /// The idle timeout of a class, nanoseconds.
    pub fn of(&self, class: Class) -> u64 {
        self.by_class()[class as usize]
    }

    /// The longest idle timeout, nanoseconds.
    pub fn longest_idle_ns(&self) -> u64 {
        self.by_class().into_iter().max().unwrap_or(0)
    }

    /// The shortest timeout except the active one, nanoseconds.
    pub(crate) fn shortest_ns(&self) -> u64 {
        self.by_class()[..6].iter().copied().min().unwrap_or(0)
    }

    /// Timeouts by [`Class`], nanoseconds; eight entries, so that an index of three bits needs no
    /// bounds check.
    pub(crate) const fn by_class(&self) -> [u64; 8] {
        let Self { tcp_ns, tcp_fin_ns, tcp_rst_ns, udp_ns, icmp_ns, general_ns, .. } = *self;
        [general_ns, tcp_ns, udp_ns, icmp_ns, tcp_fin_ns, tcp_rst_ns, 0, 0]
    }

    /// Every timeout in nanoseconds, with its name in `--timeouts`.
    pub fn named(&self) -> [(&'static str, u64); 7] {
        [
            ("tcp", self.tcp_ns),
            ("tcp.fin", self.tcp_fin_ns),
            ("tcp.rst", self.tcp_rst_ns),
            ("udp", self.udp_ns),
            ("icmp", self.icmp_ns),
            ("general", self.general_ns),
            ("maxlife", self.active_ns),
        ]
    }

    /// The preset of this name.
    pub fn preset(name: &str) -> Option<Self> {
        Self::PRESETS.iter().find(|(own, _)| *own == name).map(|&(_, timeouts)| timeouts)
    }

    /// Sets the timeout of this name, one of [`Timeouts::named`]; false if there is none.
    pub fn set(&mut self, name: &str, time_ns: u64) -> bool {
        let field = match name {
            "tcp" => &mut self.tcp_ns,
            "tcp.fin" => &mut self.tcp_fin_ns,
            "tcp.rst" => &mut self.tcp_rst_ns,
            "udp" => &mut self.udp_ns,
            "icmp" => &mut self.icmp_ns,
            "general" => &mut self.general_ns,
            "maxlife" => &mut self.active_ns,
            _ => return false,
        };
        *field = time_ns;
        true
    }
}

impl Default for Timeouts {
    /// 30 s idle, 120 s active (as nProbe and ffProbe), 5 s after the end of a connection.
    fn default() -> Self {
        Self::with(30, 120)
    }
}

impl fmt::Display for Timeouts {
    /// The syntax of `--timeouts`: every timeout as NAME=TIME.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (name, time_ns)) in self.named().into_iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            match time_ns {
                u64::MAX => write!(f, "{comma}{name}=never")?,
                _ if time_ns.is_multiple_of(Self::SECOND) => {
                    write!(f, "{comma}{name}={}s", time_ns / Self::SECOND)?;
                }
                _ => write!(f, "{comma}{name}={}ns", time_ns)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_sets_its_own_timeout() {
        for (at, (name, _)) in Timeouts::default().named().into_iter().enumerate() {
            let mut timeouts = Timeouts::default();
            assert!(timeouts.set(name, 77));
            let set: Vec<_> = timeouts.named().iter().map(|&(_, ns)| ns == 77).collect();
            assert_eq!(set.iter().position(|&is| is), Some(at), "{name}");
            assert_eq!(set.iter().filter(|&&is| is).count(), 1, "{name}");
        }
        assert!(!Timeouts::default().set("sctp", 1));
        assert_eq!(Timeouts::preset("nprobe"), Some(Timeouts::default()));
        assert_eq!(Timeouts::preset("argus"), None);
    }

    #[test]
    fn timeouts_are_printed_in_the_syntax_of_the_flag() {
        let text = Timeouts::preset("zeek").unwrap().to_string();
        assert_eq!(
            text,
            "tcp=300s,tcp.fin=5s,tcp.rst=5s,udp=60s,icmp=60s,general=60s,maxlife=never"
        );
    }
}
