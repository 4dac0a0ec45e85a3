//! Receives frames from all sockets, and delivers packets to a handler.
//!
//! ```text
//!  socket ─▶ frame ─▶ find the face ─▶ reassemble ─▶ Handler::packets
//!                     (or create it)
//! ```

use std::hash::{BuildHasher, RandomState};
use std::io::{self, ErrorKind};
use std::time::Duration;

use rustix::event::epoll::EventFlags;

use crate::packets::{
    Element, Headers, LpPacket, PACKET_MAX, Packet, Reassembler, Reassembly, kind,
};

use crate::faces::channel::Kind;
use crate::faces::counters::Lost;
use crate::faces::face::{Face, Link};
use crate::faces::handler::{Handler, ReceivedPacket};
use crate::faces::lifecycle::{accept, disconnect, finish_opening};
use crate::faces::queue::DATAGRAMS_PER_TURN;
use crate::faces::registry::Faces;
use crate::faces::stream::Input;
use crate::faces::sys::{Address, BURST, Inbox};
use crate::faces::waiting::{READY, Source};

/// Maximum number of packets in reassembly, and their time limit.
const REASSEMBLIES: usize = 256;
const REASSEMBLY_NS: u64 = 2_000_000_000;

/// Maximum number of packets in one call of [`Handler::packets`].
const BATCH: usize = 32;

/// Packets that are delivered together. A batch is delivered before faces change.
struct Batch<'a> {
    packets: [ReceivedPacket<'a>; BATCH],
    len: usize,
}

impl<'a> Batch<'a> {
    fn new() -> Self {
        let none = ReceivedPacket { face: 0, headers: Headers::NONE, packet: &[] };
        Self { packets: [none; BATCH], len: 0 }
    }

    fn add(&mut self, packet: ReceivedPacket<'a>, faces: &mut Faces, handler: &mut impl Handler) {
        self.packets[self.len] = packet;
        self.len += 1;
        if self.len == BATCH {
            self.deliver(faces, handler);
        }
    }

    fn deliver(&mut self, faces: &mut Faces, handler: &mut impl Handler) {
        let len = std::mem::take(&mut self.len);
        if len > 0 {
            handler.packets(faces, &self.packets[..len]);
        }
    }
}

/// Receives from all sockets, and delivers complete packets.
pub struct Intake {
    ready: Vec<(Source, EventFlags)>,
    inbox: Inbox,
    input: Input,
    fragments: Fragments,
}

/// Reassembly by sender.
struct Fragments {
    reassembler: Reassembler,
    /// Of the neighbours of a group.
    hasher: RandomState,
}

/// The sender of a frame.
enum Sender {
    /// A face, by number.
    Face(u32),
    /// The face of a group, and one of its neighbours.
    Group(u32, Address),
    /// A sender without a face: its channel and address.
    New(u32, Address),
    /// A sender that cannot have a face.
    Unknown,
}

impl Default for Intake {
    fn default() -> Self {
        Self::new()
    }
}

impl Intake {
    /// Allocates all buffers.
    pub fn new() -> Self {
        Self {
            ready: Vec::with_capacity(READY),
            inbox: Inbox::new(),
            input: Input::new(),
            fragments: Fragments {
                reassembler: Reassembler::new(REASSEMBLIES, REASSEMBLY_NS),
                hasher: RandomState::new(),
            },
        }
    }

    /// Waits until a socket is ready, the timeout expires or a signal arrives.
    pub fn wait(&mut self, faces: &Faces, timeout: Duration) -> io::Result<()> {
        faces.poller.wait(&mut self.ready, timeout)
    }

    /// Whether the last wait found something.
    pub(crate) fn is_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Receives from the sockets that are ready, and sends the packets that result.
    pub fn receive(&mut self, faces: &mut Faces, now_ns: u64, handler: &mut impl Handler) {
        for at in 0..self.ready.len() {
            let (source, flags) = self.ready[at];
            match source {
                Source::Channel(_) => self.datagrams(faces, source, now_ns, handler),
                Source::Neighbour(_) => {
                    // The others have every second turn, however many queues are full.
                    let channel = faces.queue(source).map(|(channel, _)| channel);
                    self.datagrams(faces, source, now_ns, handler);
                    if let Some(channel) = channel.map(Source::Channel) {
                        self.datagrams(faces, channel, now_ns, handler);
                    }
                }
                Source::Listener(at) => accept(faces, at as usize, now_ns, handler),
                Source::Stream(face) => self.stream(faces, face, flags, now_ns, handler),
                Source::Doorbell => {}
            }
            faces.flush();
        }
    }

    /// Number of packets dropped because fragments were missing.
    pub fn incomplete(&self) -> u64 {
        self.fragments.reassembler.incomplete()
    }

    /// Handles a frame as if it was received, without its socket: a datagram of a neighbour on the
    /// first channel, or a frame of the program with this face.
    #[cfg(any(test, feature = "fuzz"))]
    pub(crate) fn frame(
        &mut self,
        faces: &mut Faces,
        now_ns: u64,
        from: Result<std::net::SocketAddr, u32>,
        frame: &[u8],
        handler: &mut impl Handler,
    ) {
        let sender = match from {
            Err(program) => Sender::Face(program),
            Ok(neighbour) => {
                let address = Address::of(&neighbour);
                let face = faces.channels[0].face_of(&address);
                face.map_or(Sender::New(0, address), Sender::Face)
            }
        };
        let mut batch = Batch::new();
        handle_frame(&mut self.fragments, &mut batch, faces, now_ns, sender, Ok(frame), handler);
        batch.deliver(faces, handler);
        faces.flush();
    }

    fn datagrams(
        &mut self,
        faces: &mut Faces,
        source: Source,
        now_ns: u64,
        handler: &mut impl Handler,
    ) {
        let Self { inbox, fragments, .. } = self;
        let (mut handled, mut last) = (0, None);
        loop {
            let Some((channel, queue)) = faces.queue(source) else { return };
            let Ok(count) = queue.receive(inbox) else {
                // It is empty, the error belongs to an earlier send, or the interface is down.
                queue.end_turn(0, now_ns);
                return;
            };
            let mut batch = Batch::new();
            let before = handled;
            for at in 0..count {
                let (received, bytes) = inbox.message(at);
                handled += bytes.len().div_ceil(received.segment.max(1)).max(1);
                let mut frames = bytes.chunks(received.segment.max(1));
                // A message without bytes counts as a frame.
                let first = frames.next().unwrap_or(&[]);
                for frame in std::iter::once(first).chain(frames) {
                    let Some((from, frame)) = sender_of(faces, channel, &received.from, frame)
                    else {
                        continue;
                    };
                    if let Sender::Face(face) = from {
                        last = Some((face, received.to));
                    }
                    let frame = if received.truncated { Err(Lost::TooLong) } else { Ok(frame) };
                    handle_frame(fragments, &mut batch, faces, now_ns, from, frame, handler);
                }
            }
            batch.deliver(faces, handler);
            faces.flush();
            // A message may be many datagrams.
            let each = (handled - before).div_ceil(count.max(1)).max(1);
            let Some((_, queue)) = faces.queue(source) else { return };
            let was_full = count >= queue.messages;
            queue.messages = (DATAGRAMS_PER_TURN / each).clamp(1, BURST);
            if was_full && handled < DATAGRAMS_PER_TURN {
                continue;
            }
            let is_backlog = queue.end_turn(if was_full { handled } else { 0 }, now_ns);
            // One that sends much is likely to have sent the last datagram.
            if let Some((face, to)) = last.filter(|_| is_backlog) {
                faces.separate(face, to, now_ns);
            }
            return;
        }
    }

    /// Receives once from a stream, so that each stream has its turn.
    fn stream(
        &mut self,
        faces: &mut Faces,
        face: u32,
        flags: EventFlags,
        now_ns: u64,
        handler: &mut impl Handler,
    ) {
        if !finish_opening(faces, face, handler) {
            return disconnect(faces, face, now_ns, handler);
        }
        if flags.contains(EventFlags::OUT) {
            faces.streams.flush_one(&mut faces.table, face);
        }
        let Some(receiving) = faces.table.get_mut(face) else { return };
        let serial = receiving.serial;
        let Link::Stream(stream) = &mut receiving.link else { return };
        let Some(socket) = stream.connection.socket() else { return };
        let Self { input, fragments, .. } = self;
        let mut ends = match input.fill(&stream.rest, socket) {
            Ok(received) => {
                if let Some(retries) = stream.retries.as_mut().filter(|_| received > 0) {
                    retries.reset();
                }
                received == 0
            }
            Err(error) => !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
        };
        let mut rest = &[][..];
        if let Some(websocket) = &mut stream.websocket {
            let mut messages = Vec::new();
            ends |= websocket.receive(input.bytes(), &mut messages);
            // Replies to a handshake, a ping or a close.
            faces.streams.flush_one(&mut faces.table, face);
            let frames = messages.iter().map(|message| message.as_deref().map_err(|lost| *lost));
            handle_frames(fragments, faces, (face, serial), frames, now_ns, handler);
        } else {
            let mut frames = input.frames();
            handle_frames(fragments, faces, (face, serial), frames.by_ref(), now_ns, handler);
            ends |= frames.is_broken();
            rest = frames.unread();
        }
        if !faces.table.is_same(face, serial) {
            return;
        }
        if let Some(Link::Stream(stream)) = faces.table.get_mut(face).map(|face| &mut face.link) {
            stream.rest = rest.to_vec();
        }
        if ends {
            disconnect(faces, face, now_ns, handler);
        }
    }
}

/// Handles the frames of a face, which is given by its number and serial number. If it is closed
/// meanwhile, the rest is counted.
fn handle_frames<'a>(
    fragments: &mut Fragments,
    faces: &mut Faces,
    (face, serial): (u32, u64),
    frames: impl Iterator<Item = Result<&'a [u8], Lost>>,
    now_ns: u64,
    handler: &mut impl Handler,
) {
    let mut batch = Batch::new();
    for frame in frames {
        let is_open = faces.table.is_same(face, serial);
        let from = if is_open { Sender::Face(face) } else { Sender::Unknown };
        handle_frame(fragments, &mut batch, faces, now_ns, from, frame, handler);
    }
    batch.deliver(faces, handler);
}

/// The sender of a frame, and the frame without Ethernet padding. `None` if the frame is not
/// addressed to this host or a group.
fn sender_of<'a>(
    faces: &mut Faces,
    channel: u32,
    from: &Address,
    frame: &'a [u8],
) -> Option<(Sender, &'a [u8])> {
    let at = channel;
    let Some(channel) = faces.channels.open.get_mut(channel) else {
        return Some((Sender::Unknown, frame));
    };
    if let Kind::Udp(_) = channel.kind {
        let face = channel.face_of(from);
        return Some((face.map_or(Sender::New(at, *from), Sender::Face), frame));
    }
    if let Kind::Multicast { .. } = channel.kind {
        let sender = channel.group.map_or(Sender::Unknown, |face| Sender::Group(face, *from));
        return Some((sender, frame));
    }
    let sender = from.ethernet()?;
    if sender.from.is_group() {
        return Some((Sender::Unknown, frame));
    }
    let frame = match Element::first(frame) {
        Ok((_, padding)) => &frame[..frame.len() - padding.len()],
        Err(_) => frame,
    };
    let from = match sender.kind {
        libc::PACKET_HOST => {
            let neighbour = channel.neighbour(Some(sender.from))?;
            channel.face_of(&neighbour).map_or(Sender::New(at, neighbour), Sender::Face)
        }
        libc::PACKET_MULTICAST | libc::PACKET_BROADCAST => {
            let from = channel.neighbour(Some(sender.from))?;
            channel.group.map_or(Sender::Unknown, |face| Sender::Group(face, from))
        }
        _ => return None,
    };
    Some((from, frame))
}

/// Whether a packet gives an unknown sender a face: it must be an Interest, a Data, or a fragment
/// that may belong to one. The error is the reason of the loss, or `None` for a frame without a
/// packet.
fn check_new_sender(from: &Address, packet: &LpPacket<'_>) -> Result<(), Option<Lost>> {
    // Nothing can be sent to port 0.
    if from.udp().is_some_and(|from| from.port() == 0) {
        return Err(Some(Lost::NoFace));
    }
    let Some(payload) = packet.payload else { return Err(None) };
    let is_valid = match (packet.fragment.count, packet.fragment.index) {
        (1, _) => {
            if payload.len() > PACKET_MAX {
                return Err(Some(Lost::TooLong));
            }
            Packet::read(payload).is_ok()
        }
        (_, 0) => payload
            .first()
            .is_some_and(|&first| [kind::INTEREST, kind::DATA].contains(&first.into())),
        _ => !payload.is_empty(),
    };
    if is_valid { Ok(()) } else { Err(Some(Lost::Malformed)) }
}

/// Handles and counts a frame: adds its packet to the batch, or passes it to reassembly.
fn handle_frame<'a>(
    fragments: &mut Fragments,
    batch: &mut Batch<'a>,
    faces: &mut Faces,
    now_ns: u64,
    from: Sender,
    frame: Result<&'a [u8], Lost>,
    handler: &mut impl Handler,
) {
    let octets = frame.map_or(0, <[u8]>::len) as u64;
    let read = frame.and_then(|frame| LpPacket::read(frame).map_err(|_| Lost::Malformed));
    // Only senders of valid packets get faces.
    let mut neighbour = None;
    let (number, refused) = match (from, &read) {
        (Sender::Face(number), _) => (Some(number), Some(Lost::NoFace)),
        (Sender::Group(number, from), _) => {
            neighbour = Some(from);
            (Some(number), Some(Lost::NoFace))
        }
        (Sender::New(channel, address), Ok(packet)) => match check_new_sender(&address, packet) {
            Ok(()) => {
                batch.deliver(faces, handler);
                if let Some(victim) = faces.next_to_evict(channel) {
                    faces.evict(victim);
                    handler.down(faces, victim);
                }
                let number = faces.add_on_demand(channel, address, now_ns);
                (number.inspect(|&number| handler.up(faces, number)), Some(Lost::NoFace))
            }
            Err(reason) => (None, reason),
        },
        (_, Ok(_)) => (None, Some(Lost::NoFace)),
        (_, &Err(reason)) => (None, Some(reason)),
    };
    let Some(face) = number.and_then(|number| faces.table.get_mut(number)) else {
        faces.table.others.frames_in += 1;
        faces.table.others.octets_in += octets;
        return match refused {
            Some(reason) => faces.table.others.count_lost(reason, 1),
            None => faces.table.others.idle_in += 1,
        };
    };
    face.used_ns = now_ns;
    face.counters.frames_in += 1;
    face.counters.octets_in += octets;
    let packet = match read {
        Ok(packet) => packet,
        Err(reason) => return face.counters.count_lost(reason, 1),
    };
    let face_number = number.unwrap_or_default();
    if packet.fragment.count == 1 {
        let Some(payload) = packet.payload else {
            face.counters.idle_in += 1;
            return;
        };
        if payload.len() > PACKET_MAX {
            return face.counters.count_lost(Lost::TooLong, 1);
        }
        let headers = count_and_filter(face, packet.headers, payload);
        let whole = ReceivedPacket { face: face_number, headers, packet: payload };
        return batch.add(whole, faces, handler);
    }
    // Neighbours of a group may use the same sequence numbers.
    let sender = match neighbour {
        Some(neighbour) => fragments.hasher.hash_one((face.serial, neighbour)),
        None => face.serial,
    };
    match fragments.reassembler.take(now_ns, sender, &packet) {
        Reassembly::Complete(headers, whole) => {
            face.counters.fragments_in += 1;
            face.counters.reassembled += 1;
            let headers = count_and_filter(face, headers, whole);
            // Earlier packets are delivered first. The packet is delivered before the next fragment
            // overwrites the reassembly buffer.
            batch.deliver(faces, handler);
            handler.packets(faces, &[ReceivedPacket { face: face_number, headers, packet: whole }]);
        }
        Reassembly::Waiting => face.counters.fragments_in += 1,
        Reassembly::Idle => face.counters.idle_in += 1,
        Reassembly::Malformed => face.counters.count_lost(Lost::Malformed, 1),
    }
}

/// Counts a complete packet of a face. Returns its headers without those that only local programs
/// may set.
fn count_and_filter(face: &mut Face, headers: Headers, packet: &[u8]) -> Headers {
    face.counters.count_in(&headers, packet);
    match face.is_local() {
        true => headers,
        false => Headers { next_hop_face: None, incoming_face: None, no_cache: false, ..headers },
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use crate::faces::face::Persistence;
    use crate::faces::remote::{Mac, Remote};
    use crate::faces::settings::{EthernetMethod, EthernetSettings, Settings};

    use super::*;

    struct Ignore;

    impl Handler for Ignore {
        fn up(&mut self, _: &mut Faces, _: u32) {}
        fn down(&mut self, _: &mut Faces, _: u32) {}
        fn packets(&mut self, _: &mut Faces, _: &[ReceivedPacket<'_>]) {}
    }

    #[test]
    fn a_sender_to_which_nothing_can_be_sent_gets_no_face() {
        let udp = vec!["127.0.0.1:0".parse().unwrap()];
        let settings = Settings { udp, on_demand_max: Some(1), ..Settings::default() };
        let mut faces = Faces::open(settings).unwrap();
        let mut intake = Intake::new();
        let interest = [5, 11, 7, 3, 8, 1, b'a', 10, 4, 0, 0, 0, 1];
        for port in [7, 0] {
            let from = SocketAddr::from(([127, 0, 0, 1], port));
            intake.frame(&mut faces, 1, Ok(from), &interest, &mut Ignore);
        }
        // It does not evict another one either.
        assert_eq!((faces.len(), faces.evicted()), (1, 0));
        assert_eq!((faces.total().interests_in, faces.total().lost(Lost::NoFace)), (1, 1));
    }

    #[test]
    fn a_frame_with_a_group_as_its_source_is_not_of_the_group() {
        let interface = "lo".to_owned();
        let ethernet = vec![EthernetSettings {
            interface,
            strangers: true,
            mtu: None,
            method: EthernetMethod::default(),
        }];
        let Ok(mut faces) = Faces::open(Settings { ethernet, ..Settings::default() }) else {
            return eprintln!("SKIPPED: packet sockets need root");
        };
        let group = Remote::Ethernet { interface: "lo".into(), to: None };
        faces.add(&group, Persistence::Permanent).unwrap();
        for (from, is_known) in
            [(Mac::NDN_GROUP, false), (Mac([0xff; 6]), false), (Mac([2; 6]), true)]
        {
            let from = faces.channels[0].neighbour(Some(from)).unwrap();
            let (sender, _) = sender_of(&mut faces, 0, &from, &[]).unwrap();
            assert_eq!(matches!(sender, Sender::New(..)), is_known);
            assert_eq!(matches!(sender, Sender::Unknown), !is_known);
        }
    }
}
