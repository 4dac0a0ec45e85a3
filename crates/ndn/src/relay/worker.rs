//! A worker: the thread that runs one shard while the main thread is busy, and sends its datagrams.
//!
//! ```text
//!  batch ─▶ commands ─▶ Forwarder::burst ─┬─▶ datagrams
//!    └▶ the shard, at first               └─▶ the batch, back: packets for streams, notices,
//!                                             the shard, at the end
//! ```
//!
//! A [`Shard`] belongs to the thread that holds it. It moves in a batch, so no other thread has it.

use std::sync::Arc;
use std::time::Duration;

use crate::faces::{Egress, Faces};
use crate::forwarder::design::Access;
use crate::forwarder::{FaceId, FaceUse, Forwarder, Outbox};
use crate::packets::Headers;
use ringtap_ring::{Consumer, Producer, Vernier};

use super::batch::{Batch, Command, Packets, ShardReport, WorkerReport};
use super::doorbell::Doorbell;

/// Maximum number of packets that are forwarded together.
const RUN: usize = 32;

/// Maximum wait for a batch: while Interests are pending, and while none are.
const WAIT_PENDING: Duration = Duration::from_millis(5);
const WAIT_IDLE: Duration = Duration::from_millis(200);

/// Batches after which frames are sent, even if more batches wait.
const BATCHES_PER_FLUSH: u32 = 8;

/// Attempts to get a batch, each after other threads had their turn, before the thread sleeps.
const YIELDS: u32 = 2;

/// A batch ring's ends.
pub(super) type ToWorker<A> = Consumer<ShardBatch<A>, Vernier>;
pub(super) type FromWorker<A> = Producer<ShardBatch<A>, Vernier>;

/// What goes through the rings.
pub(super) type ShardBatch<A> = Box<Batch<Shard<A>>>;

/// A shard of the tables, and what its worker needs to send packets.
#[derive(Debug)]
pub(super) struct Shard<A> {
    pub(super) forwarder: Forwarder<A>,
    egress: Egress,
    /// Packets that only the main thread can send.
    returned: Packets,
}

/// The packets that a shard sends in a worker.
struct WorkerOutbox<'a> {
    egress: &'a mut Egress,
    returned: &'a mut Packets,
}

impl Outbox for WorkerOutbox<'_> {
    #[inline]
    fn send(&mut self, face: FaceId, headers: &Headers, packet: &[u8]) {
        if let Some(serial) = self.egress.send(face.0, headers, packet) {
            self.returned.push(face.0, serial, headers, packet);
        }
    }

    fn send_after_notices(&mut self, face: FaceId, headers: &Headers, packet: &[u8]) {
        match self.egress.serial(face.0) {
            Some(serial) => self.returned.push(face.0, serial, headers, packet),
            None => self.send(face, headers, packet),
        }
    }
}

/// The packets that a shard sends in the main thread, which publishes its notices before it receives
/// packets again.
impl Outbox for Faces {
    #[inline]
    fn send(&mut self, face: FaceId, headers: &Headers, packet: &[u8]) {
        self.send(face.0, headers, packet);
    }
}

/// Runs the shard that the main thread hands over, until the ring is closed and empty.
pub(super) fn run<A: Access>(
    doorbell: &Arc<Doorbell>,
    mut from_main: ToWorker<A>,
    mut to_main: FromWorker<A>,
) {
    let mut shard: Option<Box<Shard<A>>> = None;
    let (mut attempts, mut handled) = (0, 0);
    loop {
        let closed = from_main.is_closed();
        let round_ns = doorbell.round_ns();
        if let Some(mut batch) = from_main.pop() {
            attempts = 0;
            shard = batch.shard.take().or(shard);
            let needs_main = match &mut shard {
                Some(shard) => shard.handle(&mut batch),
                None => false,
            };
            handled += 1;
            if batch.returns {
                // Its frames precede those that the main thread sends for it.
                if let Some(shard) = &mut shard {
                    shard.egress.flush();
                }
                batch.shard = shard.take();
            } else if let Some(shard) = shard.as_mut().filter(|_| handled >= BATCHES_PER_FLUSH) {
                shard.egress.flush();
                handled = 0;
            }
            let needs_main = needs_main || batch.shard.is_some();
            let mut unsent = Some(batch);
            while let Some(batch) = unsent.take() {
                unsent = to_main.push(batch).err();
                if unsent.is_some() {
                    // The main thread empties this ring in each round.
                    doorbell.ring();
                    std::thread::yield_now();
                }
            }
            to_main.flush();
            if needs_main {
                doorbell.ring();
            }
            continue;
        }
        handled = 0;
        if let Some(shard) = &mut shard {
            // Frames of several batches are sent together.
            shard.egress.flush();
        }
        if closed {
            return;
        }
        let Some(running) = &mut shard else {
            // Without a shard there is nothing to do until the main thread hands it over.
            from_main.park(WAIT_IDLE);
            continue;
        };
        attempts += 1;
        if attempts <= YIELDS {
            std::thread::yield_now();
            continue;
        }
        running.forwarder.advance(round_ns);
        let wait = if running.forwarder.pending() > 0 { WAIT_PENDING } else { WAIT_IDLE };
        from_main.park(wait);
    }
}

impl<A: Access> Shard<A> {
    /// A shard with this number, above 0.
    pub(super) fn new(forwarder: Forwarder<A>, number: u8) -> Self {
        Self { forwarder, egress: Egress::new(number), returned: Packets::default() }
    }

    /// Handles a batch in a worker. Returns whether the main thread must look at it.
    fn handle(&mut self, batch: &mut Batch<Self>) -> bool {
        let now_ns = batch.now_ns;
        for command in batch.commands.drain(..) {
            if let Command::Report = command {
                batch.report = Some(Box::new(self.report()));
                continue;
            }
            self.execute(now_ns, command, None);
        }
        let Self { forwarder, egress, returned } = self;
        let mut outbox = WorkerOutbox { egress, returned };
        let mut run = [(FaceId(0), &Headers::NONE, &[][..]); RUN];
        let mut len = 0;
        for (face, _, headers, packet) in batch.packets.iter() {
            run[len] = (FaceId(face), headers, packet);
            len += 1;
            if len == RUN {
                forwarder.burst(now_ns, &run, &mut outbox);
                len = 0;
            }
        }
        if len > 0 {
            forwarder.burst(now_ns, &run[..len], &mut outbox);
        }
        batch.packets.clear();
        std::mem::swap(&mut batch.packets, returned);
        if forwarder.has_notices() {
            batch.notices = forwarder.take_notices();
        }
        !batch.notices.is_empty() || !batch.packets.is_empty() || batch.report.is_some()
    }

    /// Executes a command. Packets are sent on `faces` in the main thread; else by the worker.
    pub(super) fn execute(&mut self, now_ns: u64, command: Command, faces: Option<&mut Faces>) {
        let Self { forwarder, egress, returned } = self;
        match command {
            Command::SetChannel(number, channel) => egress.set_channel(number, channel),
            Command::SetFace(number, face, info) => {
                egress.set_face(number, info);
                forwarder.set_face(FaceId(number), face);
            }
            Command::RemoveFace(number) => {
                egress.remove_face(number);
                forwarder.remove_face(FaceId(number));
            }
            Command::AddRoute { prefix, face, cost } => {
                let prefix = prefix.as_name();
                // The main thread has checked the length of the prefix.
                let _ = match faces {
                    Some(faces) => forwarder.add_route(now_ns, &prefix, face, cost, faces),
                    None => {
                        let mut outbox = WorkerOutbox { egress, returned };
                        forwarder.add_route(now_ns, &prefix, face, cost, &mut outbox)
                    }
                };
            }
            Command::RemoveRoute { prefix, face } => {
                forwarder.remove_route(&prefix.as_name(), face);
            }
            Command::SetStrategy { prefix, strategy } => {
                let _ = forwarder.set_strategy(&prefix.as_name(), strategy);
            }
            Command::UnsetStrategy { prefix } => {
                forwarder.unset_strategy(&prefix.as_name());
            }
            Command::Notice(notice) => match faces {
                Some(faces) => forwarder.notice(&notice, faces),
                None => forwarder.notice(&notice, &mut WorkerOutbox { egress, returned }),
            },
            // Handled by the caller, which has the batch.
            Command::Report => {}
        }
    }

    fn report(&mut self) -> WorkerReport {
        // Frames that cannot be sent are counted then.
        self.egress.flush();
        let uses = self.egress.faces().map(|face| (face, self.forwarder.face_use(FaceId(face))));
        let uses = uses.filter(|(_, usage)| *usage != FaceUse::default()).collect();
        let shard = ShardReport::of(&self.forwarder);
        WorkerReport { shard, uses, sent: self.egress.take_sent() }
    }
}

impl ShardReport {
    pub(super) fn of(forwarder: &Forwarder<impl Access>) -> Self {
        Self {
            counters: forwarder.counters(),
            pending: forwarder.pending(),
            kept: forwarder.stored(),
            kept_bytes: forwarder.stored_bytes(),
        }
    }
}
