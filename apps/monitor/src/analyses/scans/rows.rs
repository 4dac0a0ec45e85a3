//! The section of port scans.

use std::net::IpAddr;

use serde::Serialize;

use crate::time::Time;

/// Ports or targets listed with a scan.
pub(super) const SAMPLE: usize = 10;

/// A protocol whose scans are found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ScanProtocol {
    /// TCP.
    #[default]
    Tcp,
    /// UDP.
    Udp,
}

impl ScanProtocol {
    /// Its name in outputs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
        }
    }
}

/// Port scans by failed attempts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Scans {
    /// The protocol.
    #[serde(skip)]
    pub protocol: ScanProtocol,
    /// One source, one target, many ports.
    pub vertical: Vec<VerticalScan>,
    /// One source, one port, many targets.
    pub horizontal: Vec<HorizontalScan>,
    /// Attempts and answers without room in memory; 0 means the numbers are exact.
    pub attempts_ignored: u64,
}

/// One source, one target, many ports.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct VerticalScan {
    /// The scanner.
    pub source: IpAddr,
    /// The target.
    pub target: IpAddr,
    /// Number of distinct ports that never answered; of UDP less those that did.
    pub ports: u64,
    /// First failed attempt.
    pub first: Time,
    /// Last failed attempt.
    pub last: Time,
    /// The ten lowest ports that never answered.
    pub sample: Vec<u16>,
}

/// One source, one port, many targets.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct HorizontalScan {
    /// The scanner.
    pub source: IpAddr,
    /// The port.
    pub port: u16,
    /// `tcp` or `udp`.
    pub protocol: &'static str,
    /// Number of distinct targets that never answered; of UDP less those that did.
    pub targets: u64,
    /// First failed attempt.
    pub first: Time,
    /// Last failed attempt.
    pub last: Time,
    /// The ten lowest targets that never answered.
    pub sample: Vec<IpAddr>,
}
