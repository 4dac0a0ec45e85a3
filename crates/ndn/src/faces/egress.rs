//! The sending half of the faces, for a worker: it sends datagrams itself. Packets for streams and
//! AF_XDP go back to the main thread, which owns these.
//!
//! ```text
//!  packet ─▶ Egress::send ─┬─ UDP, AF_PACKET: frames in the worker's buffers ─▶ flush
//!                          └─ streams, AF_XDP: refused, with the face's serial number
//! ```

use crate::packets::Headers;

use crate::faces::counters::{Counters, Lost};
use crate::faces::face::{Face, Link};
use crate::faces::outgoing::{Outgoing, Peer};
use crate::faces::slots::{ByFace, Slots};

/// The buffers and the faces of a worker.
#[derive(Debug)]
pub(crate) struct Egress {
    /// Number of the worker.
    worker: u8,
    /// By number; only those on which this thread can send.
    channels: Slots<Outgoing>,
    faces: ByFace<Sender>,
    /// Counters of removed faces, and of packets to faces that do not exist.
    others: Counters,
}

#[derive(Debug)]
struct Sender {
    serial: u64,
    /// The channel and receiver; `None`: a stream.
    datagrams: Option<(u32, Peer)>,
    counters: Counters,
}

/// What a worker sent on a face since the last report.
#[derive(Debug)]
pub(crate) struct Sent {
    pub(crate) face: u32,
    pub(crate) serial: u64,
    pub(crate) counters: Counters,
}

/// The sending half of a face.
#[derive(Debug)]
pub(crate) struct FaceInfo {
    serial: u64,
    datagrams: Option<(u32, Peer)>,
}

impl FaceInfo {
    pub(crate) fn of(face: &Face) -> Self {
        let datagrams = match &face.link {
            Link::Datagrams { channel, peer, .. } => Some((*channel, *peer)),
            Link::Stream(_) => None,
        };
        Self { serial: face.serial, datagrams }
    }
}

impl Egress {
    /// An egress without channels and faces; `worker` is above 0.
    pub(crate) fn new(worker: u8) -> Self {
        Self { worker, channels: Slots::new(), faces: ByFace::new(), others: Counters::default() }
    }

    /// Sets or removes the channel with this number. Frames of an earlier one are sent before.
    pub(crate) fn set_channel(&mut self, number: u32, channel: Option<Outgoing>) {
        self.flush_channel(number);
        match channel {
            Some(channel) => self.channels.set(number, channel),
            None => drop(self.channels.remove(number)),
        }
    }

    /// Adds or replaces a face.
    pub(crate) fn set_face(&mut self, number: u32, info: FaceInfo) {
        self.remove_face(number);
        // Threads must not use the same sequence numbers for different packets.
        let datagrams = info.datagrams.map(|(channel, peer)| {
            (channel, Peer { sequence: u64::from(self.worker) << 48 | peer.sequence, ..peer })
        });
        let (serial, counters) = (info.serial, Counters::default());
        self.faces.set(number, Sender { serial, datagrams, counters });
    }

    pub(crate) fn remove_face(&mut self, number: u32) {
        if let Some(sender) = self.faces.remove(number) {
            self.others.add(&sender.counters);
        }
    }

    /// Buffers a packet. Returns the face's serial number if only the main thread can send it.
    #[inline]
    pub(crate) fn send(&mut self, number: u32, headers: &Headers, packet: &[u8]) -> Option<u64> {
        let Some(sender) = self.faces.get_mut(number) else {
            self.others.frames_out += 1;
            self.others.count_lost(Lost::Gone, 1);
            return None;
        };
        let Some((channel, peer)) = &mut sender.datagrams else { return Some(sender.serial) };
        let channel = *channel;
        let Some(outgoing) = self.channels.get_mut(channel) else {
            return Some(sender.serial);
        };
        sender.counters.count_out(headers, packet);
        if outgoing.send(number, peer, &mut sender.counters, headers, packet) {
            self.flush_channel(channel);
        }
        None
    }

    /// The numbers of the faces.
    pub(crate) fn faces(&self) -> impl Iterator<Item = u32> + '_ {
        self.faces.iter().map(|(number, _)| number)
    }

    /// The serial number of a face.
    pub(crate) fn serial(&self, number: u32) -> Option<u64> {
        self.faces.get(number).map(|sender| sender.serial)
    }

    /// Sends all buffered frames.
    pub(crate) fn flush(&mut self) {
        for channel in 0..self.channels.end() {
            self.flush_channel(channel);
        }
    }

    fn flush_channel(&mut self, channel: u32) {
        let Self { channels, faces, others, .. } = self;
        let Some(outgoing) = channels.get_mut(channel) else { return };
        if outgoing.is_empty() {
            return;
        }
        outgoing.flush(|face, reason| {
            let sender = faces.get_mut(face).map(|sender| &mut sender.counters);
            sender.unwrap_or(&mut *others).count_lost(reason, 1);
        });
    }

    /// Takes the counters since the last call.
    pub(crate) fn take_sent(&mut self) -> Vec<Sent> {
        let counters = std::mem::take(&mut self.others);
        let mut sent = vec![Sent { face: 0, serial: 0, counters }];
        for (face, sender) in self.faces.iter_mut() {
            if sender.counters != Counters::default() {
                let counters = std::mem::take(&mut sender.counters);
                sent.push(Sent { face, serial: sender.serial, counters });
            }
        }
        sent
    }
}
