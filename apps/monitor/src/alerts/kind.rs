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
    /// A device that sent for the first time.
    NewDevice,
    /// Ports on which a host answered for the first time.
    NewServerPort,
    /// A host that exchanged much more than before.
    VolumeChange,
}

impl AlertKind {
    /// All kinds.
    pub const ALL: [Self; 10] = [
        Self::VerticalScan,
        Self::HorizontalScan,
        Self::UdpVerticalScan,
        Self::UdpHorizontalScan,
        Self::Flood,
        Self::Spread,
        Self::Watched,
        Self::NewDevice,
        Self::NewServerPort,
        Self::VolumeChange,
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
            Self::NewDevice => "new_device",
            Self::NewServerPort => "new_server_port",
            Self::VolumeChange => "volume_change",
        }
    }

    /// How urgent its alerts are.
    pub const fn severity(self) -> Severity {
        match self {
            Self::UdpVerticalScan
            | Self::UdpHorizontalScan
            | Self::NewDevice
            | Self::VolumeChange => Severity::Low,
            Self::VerticalScan | Self::HorizontalScan | Self::Spread | Self::NewServerPort => {
                Severity::Medium
            }
            Self::Flood | Self::Watched => Severity::High,
        }
    }
}
