//! The section of talkers.

use std::net::IpAddr;

use ringtap_flow::Origin;
use serde::Serialize;

use crate::volume::{Volume, is_zero};

/// The talkers, by octets and by packets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Talkers {
    /// Largest first.
    pub by_octets: Rankings,
    /// Largest first.
    pub by_packets: Rankings,
    /// No octet count in the rankings is too low by more than this; 0 means exact.
    pub error_bound: u64,
    /// No packet count in the rankings is too low by more than this; 0 means exact.
    #[serde(skip_serializing_if = "is_zero")]
    pub packets_error_bound: u64,
}

/// The largest of each kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Rankings {
    /// Addresses as senders.
    pub source: Vec<HostRow>,
    /// Addresses as receivers.
    pub destination: Vec<HostRow>,
    /// Unordered address pairs, both directions together.
    pub pair: Vec<PairRow>,
    /// Server ports of flows.
    pub port: Vec<PortRow>,
    /// Rows that are not listed, because they are very many of nearly equal volume.
    #[serde(skip_serializing_if = "Crowds::is_empty")]
    pub crowds: Crowds,
}

/// Rows of nearly equal volume that are not listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Crowd {
    /// Their number.
    pub rows: u64,
    /// None has more octets or, in a list by packets, more packets.
    pub most: u64,
}

/// The crowds of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Crowds {
    /// Addresses as senders.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<Crowd>,
    /// Addresses as receivers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destination: Option<Crowd>,
    /// Address pairs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pair: Option<Crowd>,
}

impl Crowds {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// An address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HostRow {
    /// The address.
    pub address: IpAddr,
    /// Its network, country and autonomous system, as far as they are known.
    #[serde(flatten)]
    pub origin: HostOrigin,
    /// Sent or received volume.
    #[serde(flatten)]
    pub volume: Volume,
}

/// The origin of a host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct HostOrigin {
    /// The name of the user's network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<String>,
    /// The code of the country.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub country: Option<String>,
    /// The number of the autonomous system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub as_number: Option<u32>,
    /// The name of its organisation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub as_name: Option<String>,
}

impl HostOrigin {
    pub(crate) fn of(origin: Origin) -> Self {
        let Origin { network, country, as_number, as_name, .. } = origin;
        Self {
            network: network.map(|name| name.to_string()),
            country: country.map(|code| String::from_utf8_lossy(&code).into_owned()),
            as_number,
            as_name: as_name.map(|name| name.to_string()),
        }
    }

    /// For texts: network, country, AS; empty if nothing is known.
    pub(crate) fn text(&self) -> String {
        let Self { network, country, as_number, as_name } = self;
        let number = as_number.map(|number| format!("AS{number}"));
        let parts = [network.clone(), country.clone(), number, as_name.clone()];
        parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
    }
}

/// A pair of addresses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PairRow {
    /// The lower address first.
    pub addresses: [IpAddr; 2],
    /// Volume in both directions.
    #[serde(flatten)]
    pub volume: Volume,
}

/// A port of a protocol.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PortRow {
    /// IP protocol number.
    pub protocol: u8,
    /// The port.
    pub port: u16,
    /// Flows of which it is the server port, both directions together.
    #[serde(flatten)]
    pub volume: Volume,
}
