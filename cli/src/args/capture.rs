//! The capture method of `--capture`.

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
            // AF_XDP takes frames away from the host, so it must be chosen explicitly.
            Self::Auto | Self::AfPacket => Method::Packet,
            Self::AfXdp => Method::Xdp,
            Self::Dpdk => Method::Dpdk,
        }
    }

    /// The name of an interface as a source in the plan, as in `eth0 by AF_PACKET`.
    pub(crate) fn source(self, interface: &str) -> String {
        let method = match self.method() {
            Method::Packet => "AF_PACKET",
            Method::Xdp => "AF_XDP",
            Method::Dpdk => "DPDK",
        };
        format!("{interface} by {method}")
    }
}
