//! What receives packets, and is notified of faces.

use crate::faces::registry::Faces;
use crate::packets::Headers;

/// Handles received packets, and the creation and closing of faces.
pub trait Handler {
    /// Called after a face was created, and before its first packet.
    fn up(&mut self, faces: &mut Faces, face: u32);
    /// Called after a face was closed.
    fn down(&mut self, faces: &mut Faces, face: u32);
    /// Called after the connection of a permanent face was established or ended. It is established
    /// for the first time after [`Handler::up`].
    fn link_changed(&mut self, _faces: &mut Faces, _face: u32, _is_up: bool) {}
    /// Called with complete packets that were received together, in order. The caller flushes
    /// packets that are sent by [`Faces::send`].
    fn packets(&mut self, faces: &mut Faces, packets: &[ReceivedPacket<'_>]);
}

/// A received complete packet.
#[derive(Clone, Copy, Debug)]
pub struct ReceivedPacket<'a> {
    /// The number of the receiving face.
    pub face: u32,
    /// The link headers.
    pub headers: Headers,
    /// The bytes of the packet.
    pub packet: &'a [u8],
}
