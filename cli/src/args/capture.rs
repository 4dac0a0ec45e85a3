//! The flag by which users say how frames are taken from an interface.

use clap::ValueEnum;
use ringtap_io::live::Method;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Capture {
    Auto,
    AfPacket,
    AfXdp,
    Dpdk,
}

impl Capture {
    pub(crate) fn method(self) -> Method {
        match self {
            // AF_XDP takes frames away from the host: nobody gets that without asking for it.
            Self::Auto | Self::AfPacket => Method::Packet,
            Self::AfXdp => Method::Xdp,
            Self::Dpdk => Method::Dpdk,
        }
    }

    /// What the source is called in the plan.
    pub(crate) fn source(self, interface: &str) -> String {
        let method = match self.method() {
            Method::Packet => "AF_PACKET",
            Method::Xdp => "AF_XDP",
            Method::Dpdk => "DPDK",
        };
        format!("{interface} by {method}")
    }
}
