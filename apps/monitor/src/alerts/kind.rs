//! The kinds of alerts, and how urgent each is.

use ringtap_export::Severity;

/// A kind of alerts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AlertKind {
    /// One source, one target, many TCP ports.
    VerticalScan,
    /// One source, one TCP port, many targets.
    HorizontalScan,
    /// One source, one target, many UDP ports.
    UdpVerticalScan,
    /// One source, one UDP port, many targets.
    UdpHorizontalScan,
    /// Too many packets, bits or senders to one host.
    Flood,
    /// One source, many destinations.
    Spread,
    /// A watched entry.
    Watched,
}

impl AlertKind {
    /// All kinds.
    pub const ALL: [Self; 7] = [
        Self::VerticalScan,
        Self::HorizontalScan,
        Self::UdpVerticalScan,
        Self::UdpHorizontalScan,
        Self::Flood,
        Self::Spread,
        Self::Watched,
    ];

    /// Its name in outputs and in the rules of `--allow`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::VerticalScan => "vertical_scan",
            Self::HorizontalScan => "horizontal_scan",
            Self::UdpVerticalScan => "udp_vertical_scan",
            Self::UdpHorizontalScan => "udp_horizontal_scan",
            Self::Flood => "flood",
            Self::Spread => "spread",
            Self::Watched => "watched",
        }
    }

    /// How urgent its alerts are.
    pub const fn severity(self) -> Severity {
        match self {
            Self::UdpVerticalScan | Self::UdpHorizontalScan => Severity::Low,
            Self::VerticalScan | Self::HorizontalScan | Self::Spread => Severity::Medium,
            Self::Flood | Self::Watched => Severity::High,
        }
    }
}
