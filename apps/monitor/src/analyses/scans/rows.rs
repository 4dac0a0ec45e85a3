//! The section of port scans.

use std::net::IpAddr;

use serde::Serialize;

use crate::time::Time;

/// Ports or targets listed with a scan.
pub(super) const SAMPLE: usize = 10;

/// Port scans by failed connection attempts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Scans {
    /// One source, one target, many ports.
    pub vertical: Vec<VerticalScan>,
    /// One source, one port, many targets.
    pub horizontal: Vec<HorizontalScan>,
    /// SYNs and SYN-ACKs without room in memory; 0 means the numbers are exact.
    pub attempts_ignored: u64,
}

/// One source, one target, many ports.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct VerticalScan {
    /// The scanner.
    pub source: IpAddr,
    /// The target.
    pub target: IpAddr,
    /// Number of distinct ports that never answered.
    pub ports: u64,
    /// First failed attempt.
    pub first: Time,
    /// Last failed attempt.
    pub last: Time,
    /// The ten lowest of these ports.
    pub sample: Vec<u16>,
}

/// One source, one port, many targets.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct HorizontalScan {
    /// The scanner.
    pub source: IpAddr,
    /// The port.
    pub port: u16,
    /// Always TCP.
    pub protocol: &'static str,
    /// Number of distinct targets that never answered.
    pub targets: u64,
    /// First failed attempt.
    pub first: Time,
    /// Last failed attempt.
    pub last: Time,
    /// The ten lowest of these targets.
    pub sample: Vec<IpAddr>,
}
