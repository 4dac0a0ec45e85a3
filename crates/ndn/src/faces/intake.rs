//! What comes by the faces: waited for, taken off the link, handed on.
//!
//! ```text
//!  socket ─▶ frame ─▶ whose face? ─▶ pieces to packets ─▶ Handler::packet
//!                     (a new one)
//! ```

use std::io::{self, ErrorKind};
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::time::Duration;

use crate::packets::{
    Element, Headers, LpPacket, PACKET_MAX, Packet, Reassembler, Reassembly, kind,
};
use rustix::event::Timespec;
use rustix::event::epoll::{self, Event, EventFlags};
use rustix::io::Errno;

use crate::faces::channel::Kind;
use crate::faces::counters::Lost;
use crate::faces::face::{Face, Link};
use crate::faces::registry::Faces;
use crate::faces::stream::Next;
use crate::faces::sys::{Address, BURST, Inbox};
use crate::faces::waiting::Source;

/// Packets that wait for their other pieces, at the most, and for how long.
const REASSEMBLIES: usize = 256;
const REASSEMBLY_NS: u64 = 2_000_000_000;

/// Calls by which a socket is read before it is the next one's turn.
const TURNS: usize = 4;

/// Programs that are taken on before it is the turn of packets.
const ACCEPTS: usize = 64;

/// Sockets that are told to have something, at a time.
const READY: usize = 64;

/// Who hears of faces and packets.
pub trait Handler {
    /// There is a new face; its first packet follows.
    fn up(&mut self, faces: &mut Faces, face: u32);
    /// A face is gone.
    fn down(&mut self, faces: &mut Faces, face: u32);
    /// Packets came together, whole, in this order. What is sent by `faces` leaves soon.
    fn packets(&mut self, faces: &mut Faces, packets: &[Whole<'_>]);
}

/// A packet that is whole.
#[derive(Clone, Copy, Debug)]
pub struct Whole<'a> {
    /// The face that it came by.
    pub face: u32,
    /// What the link says about it.
    pub headers: Headers,
    /// Its bytes.
    pub packet: &'a [u8],
}

/// The most packets that are handed over at a time.
const BATCH: usize = 32;

/// Packets that wait to be handed over together. Each is handed over before anything else happens to faces.
struct Batch<'a> {
    packets: [Whole<'a>; BATCH],
    len: usize,
}

impl<'a> Batch<'a> {
    fn new() -> Self {
        let none = Whole { face: 0, headers: Headers::NONE, packet: &[] };
        Self { packets: [none; BATCH], len: 0 }
    }

    fn add(&mut self, packet: Whole<'a>, faces: &mut Faces, handler: &mut impl Handler) {
        self.packets[self.len] = packet;
        self.len += 1;
        if self.len == BATCH {
            self.hand_over(faces, handler);
        }
    }

    fn hand_over(&mut self, faces: &mut Faces, handler: &mut impl Handler) {
        let len = std::mem::take(&mut self.len);
        if len > 0 {
            handler.packets(faces, &self.packets[..len]);
        }
    }
}

/// Receives from all sockets and returns whole packets.
pub struct Intake {
    ready: Vec<(Source, EventFlags)>,
    inbox: Inbox,
    reassembler: Reassembler,
}

/// Where a frame came from.
enum From {
    Face(u32),
    Stranger(usize, Address),
    Nobody,
}

impl Default for Intake {
    fn default() -> Self {
        Self::new()
    }
}

impl Intake {
    /// With its memory.
    pub fn new() -> Self {
        Self {
            ready: Vec::with_capacity(READY),
            inbox: Inbox::new(),
            reassembler: Reassembler::new(REASSEMBLIES, REASSEMBLY_NS),
        }
    }

    /// Waits until something has come, `timeout` is over or a signal was heard.
    pub fn wait(&mut self, faces: &Faces, timeout: Duration) -> io::Result<()> {
        let timeout = Timespec::try_from(timeout).unwrap_or(Timespec { tv_sec: 1, tv_nsec: 0 });
        self.ready.clear();
        let mut room = [const { MaybeUninit::<Event>::uninit() }; READY];
        match epoll::wait(&faces.epoll, &mut room, Some(&timeout)) {
            Ok((events, _)) => {
                let ready = events.iter().map(|event| (Source::of(event.data.u64()), event.flags));
                self.ready.extend(ready);
                Ok(())
            }
            Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes what has come, and sends what is sent for it.
    pub fn receive(&mut self, faces: &mut Faces, now_ns: u64, handler: &mut impl Handler) {
        for at in 0..self.ready.len() {
            let (source, flags) = self.ready[at];
            match source {
                Source::Channel(number) => self.datagrams(faces, number as usize, now_ns, handler),
                Source::Listener => accept(faces, now_ns, handler),
                Source::Stream(face) => self.stream(faces, face, flags, now_ns, handler),
            }
            faces.flush();
        }
    }

    /// Packets given up, for their other pieces did not come.
    pub fn incomplete(&self) -> u64 {
        self.reassembler.incomplete()
    }

    fn datagrams(
        &mut self,
        faces: &mut Faces,
        channel: usize,
        now_ns: u64,
        handler: &mut impl Handler,
    ) {
        let Self { inbox, reassembler, .. } = self;
        for _ in 0..TURNS {
            // An error is of something sent before, or the interface is down: nothing came.
            let Ok(count) = inbox.receive(faces.channels[channel].socket.as_fd()) else {
                return;
            };
            let mut batch = Batch::new();
            for at in 0..count {
                let (came, bytes) = inbox.message(at);
                let mut frames = bytes.chunks(came.segment.max(1));
                // A message without bytes is a frame all the same.
                let first = frames.next().unwrap_or(&[]);
                for frame in std::iter::once(first).chain(frames) {
                    let Some((from, frame)) = whose(faces, channel, &came.from, frame) else {
                        continue;
                    };
                    let frame = if came.cut { Err(Lost::TooLong) } else { Ok(frame) };
                    take(reassembler, &mut batch, faces, now_ns, from, frame, handler);
                }
            }
            batch.hand_over(faces, handler);
            faces.flush();
            if count < BURST {
                return;
            }
        }
    }

    fn stream(
        &mut self,
        faces: &mut Faces,
        face: u32,
        flags: EventFlags,
        now_ns: u64,
        handler: &mut impl Handler,
    ) {
        if flags.contains(EventFlags::OUT) {
            faces.flush_stream(face);
        }
        let Some(Link::Stream(stream)) = faces.get_mut(face).map(|face| &mut face.link) else {
            return;
        };
        // Beside the faces, so that what comes may change them.
        let mut input = std::mem::take(&mut stream.input);
        let filled = input.fill(&stream.socket);
        let mut ends = match filled {
            Ok(came) => came == 0,
            Err(error) => !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
        };
        while !ends {
            let (frame, is_broken) = match input.next() {
                Next::Frame(frame) => (Ok(frame), false),
                Next::Wait => break,
                Next::Broken(reason) => (Err(reason), true),
            };
            // One at a time: the next frame may move this one.
            let mut batch = Batch::new();
            let from = From::Face(face);
            take(&mut self.reassembler, &mut batch, faces, now_ns, from, frame, handler);
            batch.hand_over(faces, handler);
            ends = is_broken || faces.get(face).is_none();
        }
        if let Some(Link::Stream(stream)) = faces.get_mut(face).map(|face| &mut face.link) {
            stream.input = input;
        }
        if ends && faces.close(face) {
            handler.down(faces, face);
        }
    }
}

/// Closes the faces that were not used for long, and takes programs on again.
pub fn tidy(faces: &mut Faces, now_ns: u64, handler: &mut impl Handler) {
    for face in faces.idle(now_ns) {
        faces.close(face);
        handler.down(faces, face);
    }
    faces.listen_again();
}

fn accept(faces: &mut Faces, now_ns: u64, handler: &mut impl Handler) {
    // Those that wait still are announced again.
    for _ in 0..ACCEPTS {
        let Some(listener) = &mut faces.listener else { return };
        match listener.socket.accept() {
            Ok((socket, _)) => {
                // A program that has never sent anything must not keep another one out.
                if faces.is_full()
                    && let Some(silent) = faces.silent_program()
                    && faces.close(silent)
                {
                    handler.down(faces, silent);
                }
                let face = match socket.set_nonblocking(true) {
                    Ok(()) => faces.accept(socket, now_ns),
                    Err(_) => None,
                };
                match face {
                    Some(face) => handler.up(faces, face),
                    // Dropping it closes it: the program is told at once.
                    None => {
                        faces.others.frames_in += 1;
                        faces.others.lose(Lost::NoFace, 1);
                    }
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return,
            Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
            Err(_) => {
                // No file descriptors: until the next tidying nobody is taken on, else we would try without end.
                listener.paused = true;
                let _ = epoll::delete(&faces.epoll, &listener.socket);
                return;
            }
        }
    }
}

/// Whose frame this is, and the frame without what an Ethernet pads it with; `None` if it is not for us.
fn whose<'a>(
    faces: &mut Faces,
    channel: usize,
    from: &Address,
    frame: &'a [u8],
) -> Option<(From, &'a [u8])> {
    let at = channel;
    let channel = &mut faces.channels[channel];
    if let Kind::Udp(_) = channel.kind {
        let face = channel.face_of(from);
        return Some((face.map_or(From::Stranger(at, *from), From::Face), frame));
    }
    let sender = from.ethernet()?;
    let frame = match Element::first(frame) {
        Ok((_, padding)) => &frame[..frame.len() - padding.len()],
        Err(_) => frame,
    };
    let from = match sender.kind {
        libc::PACKET_HOST => {
            let neighbour = channel.neighbour(Some(sender.from))?;
            channel.face_of(&neighbour).map_or(From::Stranger(at, neighbour), From::Face)
        }
        libc::PACKET_MULTICAST | libc::PACKET_BROADCAST => {
            channel.group.map_or(From::Nobody, From::Face)
        }
        _ => return None,
    };
    Some((from, frame))
}

/// Whether an unknown sender gets a face for this: for an Interest, a Data, or a piece that may be of one. If not, the
/// reason; there is none for a frame without a packet.
fn earns_face(packet: &LpPacket<'_>) -> Result<(), Option<Lost>> {
    let Some(payload) = packet.payload else { return Err(None) };
    let earns = match (packet.fragment.count, packet.fragment.index) {
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
    if earns { Ok(()) } else { Err(Some(Lost::Malformed)) }
}

/// A frame came: what it says is put into the batch or handed on, and it is counted, whatever becomes of it.
fn take<'a>(
    reassembler: &mut Reassembler,
    batch: &mut Batch<'a>,
    faces: &mut Faces,
    now_ns: u64,
    from: From,
    frame: Result<&'a [u8], Lost>,
    handler: &mut impl Handler,
) {
    let octets = frame.map_or(0, <[u8]>::len) as u64;
    let read = frame.and_then(|frame| LpPacket::read(frame).map_err(|_| Lost::Malformed));
    // Only senders of packets get faces.
    let (number, refused) = match (from, &read) {
        (From::Face(number), _) => (Some(number), Some(Lost::NoFace)),
        (From::Stranger(channel, address), Ok(packet)) => match earns_face(packet) {
            Ok(()) => {
                batch.hand_over(faces, handler);
                if let Some(victim) = faces.next_to_evict(channel) {
                    faces.evict(victim);
                    handler.down(faces, victim);
                }
                let number = faces.welcome(channel, address, now_ns);
                (number.inspect(|&number| handler.up(faces, number)), Some(Lost::NoFace))
            }
            Err(reason) => (None, reason),
        },
        (_, Ok(_)) => (None, Some(Lost::NoFace)),
        (_, &Err(reason)) => (None, Some(reason)),
    };
    let Some(face) = number.and_then(|number| faces.get_mut(number)) else {
        faces.others.frames_in += 1;
        faces.others.octets_in += octets;
        return match refused {
            Some(reason) => faces.others.lose(reason, 1),
            None => faces.others.idle_in += 1,
        };
    };
    face.used_ns = now_ns;
    face.counters.frames_in += 1;
    face.counters.octets_in += octets;
    let packet = match read {
        Ok(packet) => packet,
        Err(reason) => return face.counters.lose(reason, 1),
    };
    let face_number = number.unwrap_or_default();
    if packet.fragment.count == 1 {
        let Some(payload) = packet.payload else {
            face.counters.idle_in += 1;
            return;
        };
        if payload.len() > PACKET_MAX {
            return face.counters.lose(Lost::TooLong, 1);
        }
        let headers = admit(face, packet.headers, payload);
        let whole = Whole { face: face_number, headers, packet: payload };
        return batch.add(whole, faces, handler);
    }
    match reassembler.take(now_ns, face.serial, &packet) {
        Reassembly::Whole(headers, whole) => {
            face.counters.pieces_in += 1;
            face.counters.reassembled += 1;
            let headers = admit(face, headers, whole);
            // Those before it came first, and the next piece may need its place.
            batch.hand_over(faces, handler);
            handler.packets(faces, &[Whole { face: face_number, headers, packet: whole }]);
        }
        Reassembly::Waiting => face.counters.pieces_in += 1,
        Reassembly::Idle => face.counters.idle_in += 1,
        Reassembly::Malformed => face.counters.lose(Lost::Malformed, 1),
    }
}

/// Counts a whole packet of a face. The headers that count: some may be said by programs on this machine alone.
fn admit(face: &mut Face, headers: Headers, packet: &[u8]) -> Headers {
    face.count_in(&headers, packet);
    match face.is_local() {
        true => headers,
        false => Headers { next_hop_face: None, incoming_face: None, no_cache: false, ..headers },
    }
}
