//! `Context`: what is needed for one header beside its bytes; `Data`: where the data is.

use std::cell::Cell;

use crate::fragments::FragmentTable;
use crate::hash::HashKey;
use crate::record::{Flags, PacketRecord};
use crate::segment::Segment;
use crate::transport;
use crate::tunnel::Watched;

/// The decoder's state that is needed for one header.
pub(crate) struct Context<'a> {
    pub(crate) key: &'a HashKey,
    pub(crate) fragments: &'a mut FragmentTable,
    /// UDP ports that need more than the common case.
    pub(crate) watched: &'a Watched,
    /// Separates the datagrams of different tunnels; 0 outside tunnels.
    pub(crate) scope: u32,
    /// Receives the segment of a TCP packet; `None` if segments are not read.
    pub(crate) segments: Option<&'a Cell<Segment>>,
}

impl Context<'_> {
    /// Reads the segment of an unfragmented TCP packet, if segments are read; `len` is the length of header and data.
    #[inline(always)]
    pub(super) fn read_segment(&self, payload: &[u8], len: u32, out: &mut PacketRecord) {
        if let Some(last) = self.segments
            && out.protocol == transport::TCP
            && let Some(segment) = transport::segment(payload, len)
        {
            last.set(segment);
            out.flags.insert(Flags::SEGMENT);
        }
    }
}

/// The bytes behind the transport header, as positions.
#[derive(Clone, Copy, Default)]
pub(crate) struct Data {
    pub(crate) at: u32,
    /// The end according to the IP header.
    pub(crate) end: u32,
}

impl Data {
    /// The positions behind a header of this length.
    #[inline(always)]
    pub(crate) fn behind(self, header_len: usize) -> Self {
        Self { at: self.at + header_len as u32, end: self.end + header_len as u32 }
    }
}
