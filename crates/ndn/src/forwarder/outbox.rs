//! Packets that a forwarder receives and sends.

use crate::packets::Headers;

use crate::forwarder::face::FaceId;

/// A received packet: its face, link headers and bytes.
pub type Received<'a> = (FaceId, &'a Headers, &'a [u8]);

/// Receives packets to send.
pub trait Outbox {
    /// Sends a packet on a face, with link headers.
    fn send(&mut self, face: FaceId, headers: &Headers, packet: &[u8]);

    /// Sends a packet whose answers may reach another shard: after the notices so far were
    /// delivered to all shards.
    fn send_after_notices(&mut self, face: FaceId, headers: &Headers, packet: &[u8]) {
        self.send(face, headers, packet);
    }
}

impl<F: FnMut(FaceId, &Headers, &[u8])> Outbox for F {
    fn send(&mut self, face: FaceId, headers: &Headers, packet: &[u8]) {
        self(face, headers, packet);
    }
}
