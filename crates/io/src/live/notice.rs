//! Diagnostics about an opened interface that are not errors.

use std::fmt;

/// A condition of the interface that differs from the request or that affects the result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The interface is down. It receives frames once it is up.
    Down {
        /// Name of the interface.
        interface: String,
    },
    /// The network card does not timestamp frames. The kernel does.
    SoftwareTime {
        /// Name of the interface.
        interface: String,
        /// Error text of the kernel.
        reason: String,
    },
    /// The driver does not run the XDP program. The kernel's network stack runs it.
    GenericXdp {
        /// Name of the interface.
        interface: String,
        /// Error text of the kernel.
        reason: String,
    },
    /// The interface may receive frames that are longer than an AF_XDP buffer. They are dropped and counted.
    LongFrames {
        /// Name of the interface.
        interface: String,
        /// Longest frame that the interface may receive, in bytes.
        longest: u32,
        /// Longest frame that fits a buffer, in bytes.
        taken: u32,
    },
    /// The caller forwards frames, and the interface removes VLAN tags from them. AF_XDP does not report removed tags.
    TagsLost {
        /// Name of the interface.
        interface: String,
    },
    /// The kernel does not allow busy polling of the driver.
    NoBusyPoll {
        /// Error text of the kernel.
        reason: String,
    },
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Down { interface } => {
                write!(
                    f,
                    "{interface} is down: it receives frames once it is up (ip link set {interface} up)"
                )
            }
            Self::SoftwareTime { interface, reason } => write!(
                f,
                "{interface} does not timestamp received frames ({reason}): the kernel's timestamps are used"
            ),
            Self::GenericXdp { interface, reason } => write!(
                f,
                "the driver of {interface} does not run XDP programs ({reason}): the slower generic mode is used"
            ),
            Self::LongFrames { interface, longest, taken } => write!(
                f,
                "{interface} may receive frames of up to {longest} bytes: frames longer than {taken} do not fit \
                 an AF_XDP buffer and are dropped and counted"
            ),
            Self::TagsLost { interface } => write!(
                f,
                "{interface} removes VLAN tags from frames, and AF_XDP does not report them: tagged frames are forwarded \
                 without their tags; 'ethtool -K {interface} rxvlan off' keeps the tags (for a veth also \
                 'ethtool -K PEER txvlan off')"
            ),
            Self::NoBusyPoll { reason } => {
                write!(f, "the kernel refuses busy polling ({reason}): it is not used")
            }
        }
    }
}
