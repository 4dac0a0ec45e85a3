//! Offload: work on a frame that its sender left to the network card, done in software instead.
//!
//! On a veth or in a virtual machine a frame may arrive before its checksum is computed, and
//! several TCP or UDP packets may arrive as one super-frame of up to 64 KiB. The kernel describes
//! both in a virtio header before the frame.
//!
//! ```text
//!  virtio header  | flags 1 | kind 1 | header 2 | size 2 | checksum start 2 | checksum offset 2 |
//!
//!  super-frame    | headers |  payload of several packets             |
//!  segments       | headers | size |  | headers | size |  | headers | rest |
//! ```
//!
//! Code that forwards such a frame computes the checksum ([`complete`]) or cuts the segments
//! ([`Segments`]), or leaves that to the kernel: it sends the frame with [`Marks`], a virtio header that
//! is made from the frame's own headers. Source of the header: Virtual I/O Device (VIRTIO) 1.2,
//! section 5.1.6.
//!
//! Invariant: no input causes a panic. A frame that cannot be completed is an error and is not
//! changed.

mod checksum;
mod headers;
mod marks;
mod segments;
mod sum;
mod virtio;

pub use checksum::complete;
pub use marks::Marks;
pub use segments::Segments;
pub(crate) use virtio::VIRTIO;
pub use virtio::{Offload, OffloadError};
