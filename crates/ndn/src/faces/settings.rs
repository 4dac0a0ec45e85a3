//! What faces there are to be from the start, and their limits.

use std::net::SocketAddr;
use std::time::Duration;

/// Limits and addresses of the faces.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where neighbours over UDP are listened for; whoever sends a packet gets a face.
    pub udp: Vec<SocketAddr>,
    /// The largest datagram; `None`: 1,420 bytes, and to addresses of this machine whole packets.
    pub udp_mtu: Option<usize>,
    /// Whether the kernel may cut messages into datagrams and put datagrams together (UDP_SEGMENT, UDP_GRO).
    pub udp_offload: bool,
    /// Ethernets with neighbours.
    pub ethernet: Vec<EthernetSettings>,
    /// A face on demand ends when it was not used for so long.
    pub idle: Duration,
    /// Faces at the most.
    pub faces_max: usize,
    /// How many of them neighbours may have that made theirs by sending a packet; `None`: three quarters. The rest is
    /// for programs and for faces that were configured or asked for.
    pub on_demand_max: Option<usize>,
}

impl Settings {
    /// Faces on demand at the most. Without a setting, a quarter of all faces, and at least one, is left for others.
    pub fn on_demand_max(&self) -> usize {
        let reserved = (self.faces_max / 4).max(1);
        self.on_demand_max.unwrap_or(self.faces_max.saturating_sub(reserved)).min(self.faces_max)
    }
}

/// An Ethernet with neighbours.
#[derive(Clone, Debug)]
pub struct EthernetSettings {
    /// The interface.
    pub interface: String,
    /// Whether whoever sends us a frame of our own gets a face.
    pub strangers: bool,
    /// The largest frame; `None`: what the interface takes.
    pub mtu: Option<usize>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            udp: Vec::new(),
            udp_mtu: None,
            udp_offload: true,
            ethernet: Vec::new(),
            idle: Duration::from_secs(600),
            faces_max: 4096,
            on_demand_max: None,
        }
    }
}
