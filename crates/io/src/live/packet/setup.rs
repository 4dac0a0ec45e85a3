//! Opens an interface for AF_PACKET: sockets, rings, and the fanout group that distributes frames.
//!
//! Invariant: no frame gets into a ring before all sockets are in the group. Until then a filter
//! refuses all frames. The filter stays until the kernel has finished the frames that it was
//! processing meanwhile. Otherwise the first frames would be received twice or in the wrong queue.

use std::ffi::c_int;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use ringtap_wire::LinkType;

use super::{PacketReceiver, Promiscuous, fanout};
use crate::live::capability::Capability;
use crate::live::counters::Counters;
use crate::live::error::OpenError;
use crate::live::interface::Interface;
use crate::live::notice::Notice;
use crate::live::options::Options;
use crate::live::state::State;
use crate::live::sys::block_ring::{BlockRing, HEADROOM};
use crate::live::sys::socket;

/// The kernel hands a block over when it is full or when its time is over. So at low rates a ring
/// holds its number of blocks times that time, independent of its memory: blocks are small. They
/// are powers of two because the kernel rounds each block up to one.
///
/// The kernel truncates a frame that is longer than a block. The smallest block holds frames of up
/// to 65,402 bytes: all that TCP sends, and all but 147 bytes of the longest frame that the kernel
/// joins by default.
const BLOCK_LEAST: usize = 64 << 10;
const BLOCK_MOST: usize = 1 << 20;
/// Upper bound of the headers in a block before and between its frames, including the block's own
/// header.
const BLOCK_HEADS: usize = 256;
/// Bytes of the Ethernet header.
const ETHERNET: usize = 14;
/// Fewest blocks of a ring: one can be read while the other is filled.
const BLOCKS_LEAST: usize = 2;
/// The kernel counts the bytes of a ring in 32 bits.
const RING_MOST: usize = (1 << 32) - BLOCK_MOST;

/// Nominal frame size for the kernel's check of the ring's shape. Frames in the ring have their
/// actual length.
const FRAME: usize = 2048;

/// Hardware types with a link header that is skipped: received frames begin with IP.
const ARPHRD_RAWIP: u16 = 519;
const ARPHRD_IP6GRE: u16 = 823;

/// Opens all queues.
pub(crate) fn open(
    interface: &Interface,
    options: &Options,
    notices: &mut Vec<Notice>,
) -> Result<Vec<PacketReceiver>, OpenError> {
    let link = link_type(interface)?;
    let queues = options.queues.unwrap_or(1);
    if !(1..=fanout::QUEUES_MOST).contains(&queues) {
        return Err(OpenError::QueueCount { requested: queues, most: fanout::QUEUES_MOST });
    }
    let shape = Shape::new(options.memory, queues.into(), longest(interface, options))?;
    let hardware_time = options.hardware_time && stamped_by_hardware(interface, notices);
    let promiscuous = match options.promiscuous {
        // The loopback interface has no frames for other hosts.
        true if interface.link.hardware != libc::ARPHRD_LOOPBACK => {
            Some(Arc::new(Promiscuous::new(interface)?))
        }
        _ => None,
    };
    let setup = Setup {
        interface,
        options,
        link,
        shape,
        hardware_time,
        ignore_outgoing: !options.outgoing || interface.link.hardware == libc::ARPHRD_LOOPBACK,
    };
    let mut receivers = Vec::with_capacity(queues.into());
    for _ in 0..queues {
        let (socket, ring) = setup.socket().map_err(failed)?;
        receivers.push(PacketReceiver {
            ring,
            socket,
            link,
            snap: options.snap.map_or(usize::MAX, |snap| snap as usize),
            hardware_time,
            memory: shape.block * shape.blocks,
            whole: shape.block - BLOCK_HEADS - HEADROOM,
            counters: Counters::default(),
            counted: 0,
            unhandled: 0,
            ipv6: Path::new("/proc/sys/net/ipv6").exists(),
            _promiscuous: promiscuous.clone(),
        });
    }
    if queues > 1 {
        setup.join(&receivers).map_err(|error| match interface.state() {
            State::Down => OpenError::Down { name: interface.name().to_owned() },
            _ => failed(error),
        })?;
    }
    let snap = options.snap.unwrap_or(u32::MAX);
    for receiver in &receivers {
        socket::attach_filter(&receiver.socket, &[socket::accept_up_to(snap)]).map_err(failed)?;
    }
    Ok(receivers)
}

/// The error for a socket that could not be opened.
fn failed(source: io::Error) -> OpenError {
    OpenError::at("opening an AF_PACKET socket", Capability::PACKET)(source)
}

/// Link type of the received frames.
fn link_type(interface: &Interface) -> Result<LinkType, OpenError> {
    match interface.link.hardware {
        libc::ARPHRD_ETHER | libc::ARPHRD_LOOPBACK => Ok(LinkType::ETHERNET),
        libc::ARPHRD_NONE
        | libc::ARPHRD_PPP
        | libc::ARPHRD_TUNNEL
        | libc::ARPHRD_TUNNEL6
        | libc::ARPHRD_SIT
        | libc::ARPHRD_IPGRE
        | ARPHRD_IP6GRE
        | ARPHRD_RAWIP => Ok(LinkType::RAW),
        hardware => Err(OpenError::UnsupportedLink {
            name: interface.name().to_owned(),
            hardware,
            method: "",
        }),
    }
}

/// Longest frame that a block should hold as a whole.
fn longest(interface: &Interface, options: &Options) -> usize {
    let whole = (interface.link.longest_packet() as usize).saturating_add(ETHERNET + HEADROOM);
    options.snap.map_or(whole, |snap| whole.min(snap as usize))
}

/// Enables hardware timestamps; adds a notice and returns false if that fails.
fn stamped_by_hardware(interface: &Interface, notices: &mut Vec<Notice>) -> bool {
    let Err(error) = interface.stamp_all() else { return true };
    notices.push(Notice::SoftwareTime {
        interface: interface.name().to_owned(),
        reason: error.to_string(),
    });
    false
}

/// Block size and number of blocks of a queue's ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shape {
    block: usize,
    blocks: usize,
}

impl Shape {
    /// `longest` is the frame length that a block should hold. It applies if two such blocks fit
    /// the memory.
    fn new(memory: usize, queues: usize, longest: usize) -> Result<Self, OpenError> {
        let each = (memory / queues).min(RING_MOST);
        if each < BLOCKS_LEAST * BLOCK_LEAST {
            let needed = BLOCKS_LEAST * BLOCK_LEAST * queues;
            return Err(OpenError::TooLittleMemory { requested: memory, needed });
        }
        let mut block = BLOCK_LEAST;
        while block < longest.saturating_add(BLOCK_HEADS)
            && block < BLOCK_MOST
            && 2 * block * BLOCKS_LEAST <= each
        {
            block *= 2;
        }
        Ok(Self { block, blocks: each / block })
    }
}

struct Setup<'a> {
    interface: &'a Interface,
    options: &'a Options,
    link: LinkType,
    shape: Shape,
    hardware_time: bool,
    ignore_outgoing: bool,
}

impl Setup<'_> {
    /// Opens a socket with its ring, bound to the interface. Its filter refuses all frames.
    fn socket(&self) -> io::Result<(OwnedFd, BlockRing)> {
        // With a datagram socket each frame begins with IP, for every type of link header.
        let kind = if self.link == LinkType::RAW { libc::SOCK_DGRAM } else { libc::SOCK_RAW };
        let socket = socket::open(libc::AF_PACKET, kind, 0)?;
        let set = |name, value: c_int| socket::set(&socket, libc::SOL_PACKET, name, &value);
        set(libc::PACKET_VERSION, libc::tpacket_versions::TPACKET_V3 as c_int)?;
        set(libc::PACKET_RESERVE, HEADROOM as c_int)?;
        // Datagram sockets have no virtio header.
        let virtio = self.options.offload && kind == libc::SOCK_RAW;
        if virtio {
            set(libc::PACKET_VNET_HDR, 1)?;
        }
        set(libc::PACKET_IGNORE_OUTGOING, self.ignore_outgoing.into())?;
        if self.hardware_time {
            set(libc::PACKET_TIMESTAMP, libc::SOF_TIMESTAMPING_RAW_HARDWARE as c_int)?;
        }
        let Shape { block, blocks } = self.shape;
        let timeout_ms = self.options.block_timeout.as_millis().clamp(1, 10_000);
        let ring = libc::tpacket_req3 {
            tp_block_size: block as u32,
            tp_block_nr: blocks as u32,
            tp_frame_size: FRAME as u32,
            tp_frame_nr: (block / FRAME * blocks) as u32,
            tp_retire_blk_tov: timeout_ms as u32,
            tp_sizeof_priv: 0,
            tp_feature_req_word: 0,
        };
        socket::set(&socket, libc::SOL_PACKET, libc::PACKET_RX_RING, &ring)?;
        let ring = BlockRing::new(&socket, block, blocks, virtio)?;
        socket::attach_filter(&socket, &[socket::accept_up_to(0)])?;
        match socket::bind_packet(&socket, self.interface.link.index, libc::ETH_P_ALL as u16) {
            // The interface is down. The socket is bound nevertheless and receives once the
            // interface is up.
            Err(error) if error.raw_os_error() == Some(libc::ENETDOWN) => {}
            other => other?,
        }
        socket::take_error(&socket);
        Ok((socket, ring))
    }

    /// Puts all sockets into one fanout group, in order.
    fn join(&self, receivers: &[PacketReceiver]) -> io::Result<()> {
        let mut flags = libc::PACKET_FANOUT_CBPF;
        // The group ignores `PACKET_IGNORE_OUTGOING` of its sockets.
        if self.ignore_outgoing {
            flags |= libc::PACKET_FANOUT_FLAG_IGNORE_OUTGOING;
        }
        let mut id = 0;
        for (receiver, place) in receivers.iter().zip(0..) {
            // For the first socket the kernel chooses an unused group number.
            let unique = if place == 0 { libc::PACKET_FANOUT_FLAG_UNIQUEID } else { 0 };
            let how = (flags | unique) << 16 | id;
            socket::set(&receiver.socket, libc::SOL_PACKET, libc::PACKET_FANOUT, &how)?;
            id = socket::get(&receiver.socket, libc::SOL_PACKET, libc::PACKET_FANOUT, 0_u32)?;
            id &= 0xffff;
        }
        let Some(first) = receivers.first() else { return Ok(()) };
        let program = fanout::program(self.link == LinkType::ETHERNET, self.options.seed);
        // A CPU may still process a frame that it distributed before the group was complete, and
        // may reach the socket's filter only after that filter accepts frames. The kernel frees a
        // replaced program only when no CPU can use it any more. So the second call waits for all
        // such frames.
        for _ in 0..2 {
            let name = libc::PACKET_FANOUT_DATA;
            socket::set_program(&first.socket, libc::SOL_PACKET, name, &program)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An Ethernet frame of the usual MTU.
    const USUAL: usize = 1_518;

    #[test]
    fn a_ring_fits_its_memory() {
        for memory in [128 << 10, 1 << 20, 3_000_000, 64 << 20, 1 << 30] {
            for longest in [USUAL, 9_018, 65_554, 200_000, 600_000, usize::MAX] {
                let shape = Shape::new(memory, 1, longest).unwrap();
                let what = format!("{memory}, {longest}: {shape:?}");
                assert!(shape.block * shape.blocks <= memory, "{what}");
                assert!(shape.block * shape.blocks >= memory / 2, "{what}");
                assert!(shape.blocks >= BLOCKS_LEAST, "{what}");
                assert!(shape.block.is_power_of_two() && shape.block >= BLOCK_LEAST, "{what}");
            }
        }
    }

    #[test]
    fn a_ring_of_small_blocks_holds_seconds() {
        let shape = Shape::new(64 << 20, 2, USUAL).unwrap();
        assert_eq!(shape, Shape { block: 64 << 10, blocks: 512 });
        // 10 ms each.
        assert!(shape.blocks * 10 > 5_000);
    }

    #[test]
    fn long_frames_fit_a_block_where_there_is_memory() {
        for (longest, block) in [(9_018, 64 << 10), (65_554, 128 << 10), (200_000, 256 << 10)] {
            assert_eq!(Shape::new(64 << 20, 1, longest).unwrap().block, block, "{longest}");
        }
        let shape = Shape::new(256 << 10, 1, 600_000).unwrap();
        assert_eq!(shape, Shape { block: 128 << 10, blocks: 2 });
    }

    #[test]
    fn a_ring_is_limited_to_what_32_bits_can_count() {
        let shape = Shape::new(usize::MAX, 1, USUAL).unwrap();
        assert!(u32::try_from(shape.block * shape.blocks).is_ok(), "{shape:?}");
    }

    #[test]
    fn too_little_memory_is_an_error_with_the_minimum() {
        let error = Shape::new(1000, 2, USUAL).unwrap_err();
        assert!(error.to_string().contains("262144"), "{error}");
    }
}
