//! The origin of an endpoint: what files of the user say about its address.

use std::sync::Arc;

/// The network, country and autonomous system of an address, the vendor of its network card, and where its packets were
/// received, as far as they are known.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Origin {
    /// The name of the user's network.
    pub network: Option<Arc<str>>,
    /// The code of the country (ISO 3166-1), two upper-case letters.
    pub country: Option<[u8; 2]>,
    /// The number of the autonomous system.
    pub as_number: Option<u32>,
    /// The name of its organisation.
    pub as_name: Option<Arc<str>>,
    /// The vendor by the address of the link.
    pub vendor: Option<Arc<str>>,
    /// Of the source alone: the name of the interface that received the flow's first packet.
    pub interface: Option<Arc<str>>,
    /// Of the source alone: the name of the outermost VLAN of that packet.
    pub vlan: Option<Arc<str>>,
}
