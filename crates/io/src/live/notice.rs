//! What there is to say of an interface that was opened, without its being an error.

use std::fmt;

/// Something other than was asked for, or worth knowing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The interface is down: frames come once it is up.
    Down {
        /// Its name.
        interface: String,
    },
    /// Frames are stamped by the kernel, for the network card does not do it.
    SoftwareTime {
        /// Its name.
        interface: String,
        /// What the kernel said.
        reason: String,
    },
    /// The XDP program runs in the stack, for the driver does not run it.
    GenericXdp {
        /// Its name.
        interface: String,
        /// What the kernel said.
        reason: String,
    },
    /// Frames may come that are longer than a buffer of AF_XDP. They are dropped and counted.
    LongFrames {
        /// Its name.
        interface: String,
        /// The longest frame that it may receive.
        longest: u32,
        /// The longest that is taken.
        taken: u32,
    },
    /// Frames are forwarded, and AF_XDP loses the VLAN tags that the interface takes out of them.
    TagsLost {
        /// Its name.
        interface: String,
    },
    /// The kernel does not let us poll the driver.
    NoBusyPoll {
        /// What it said.
        reason: String,
    },
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Down { interface } => {
                write!(
                    f,
                    "{interface} is down; frames come once it is up (ip link set {interface} up)"
                )
            }
            Self::SoftwareTime { interface, reason } => write!(
                f,
                "{interface} does not stamp received frames ({reason}); the kernel's time is used"
            ),
            Self::GenericXdp { interface, reason } => write!(
                f,
                "the driver of {interface} does not run XDP programs ({reason}); the slower generic mode is used"
            ),
            Self::LongFrames { interface, longest, taken } => write!(
                f,
                "frames of {interface} may have up to {longest} bytes; those longer than {taken} do not fit \
                 AF_XDP's buffers, they are dropped and counted"
            ),
            Self::TagsLost { interface } => write!(
                f,
                "{interface} takes VLAN tags out of frames, and AF_XDP does not show them: tagged frames leave without \
                 their tags unless 'ethtool -K {interface} rxvlan off' keeps them (of a veth, '-K PEER txvlan off' as well)"
            ),
            Self::NoBusyPoll { reason } => {
                write!(f, "the kernel refuses busy polling ({reason}); it is left out")
            }
        }
    }
}
