//! The shards of the relay and the threads that own them.
//!
//! ```text
//!  received ─▶ shard of the name ─┬─ 0: the main thread's own ─▶ faces
//!                                 ├─ 1: batch ─ ring ─▶ worker 1 ─▶ datagrams
//!                                 │          ◀─ ring ─ packets for streams, notices
//!                                 └─ 2: …
//! ```
//!
//! Invariants: packets of one face and name are handled in order, because they use the same ring.
//! No lock. Packets and notices for which a worker has no room are dropped and counted. The main
//! thread waits for a worker only for commands, and for reports of the management.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use crate::faces::{FaceInfo, Faces, ReceivedPacket};
use crate::forwarder::{
    Counters, Dispatch, Face, FaceId, FaceUse, Forwarder, Notice, Parallel, Settings, Sharing,
    Strategy, TooLong,
};
use crate::packets::{Headers, NameBuf};
use ringtap_base::Clock;
use ringtap_ring::{Consumer, Producer, Vernier};

use super::batch::{Batch, Command, ShardReport};
use super::doorbell::Doorbell;
use super::worker::Worker;

/// Maximum number of packets that are forwarded together.
const RUN: usize = 32;

/// Maximum number of batches of packets on the way to a worker and back.
const BATCHES_MAX: usize = 512;

/// Number of packets with which a batch is passed on at once; smaller ones at the end of a round.
const FULL: usize = 64;

/// The largest buffer of a batch that is kept for reuse, in bytes.
const KEPT_MAX: usize = 512 << 10;

/// All shards: the main thread's own and those of the workers.
pub(crate) struct Workers {
    own: Forwarder,
    dispatch: Dispatch,
    seats: Vec<Seat>,
    doorbell: Arc<Doorbell>,
    /// Packets, and notices, dropped because a worker has too many batches waiting.
    dropped: u64,
    notices_dropped: u64,
}

/// The main thread's side of a worker.
struct Seat {
    to: Producer<Box<Batch>, Vernier>,
    from: Consumer<Box<Batch>, Vernier>,
    /// The batch that is being filled.
    open: Option<Box<Batch>>,
    #[expect(clippy::vec_box, reason = "the boxes go through the rings")]
    spare: Vec<Box<Batch>>,
    /// Returned batches that were not looked at yet.
    returned: VecDeque<Box<Batch>>,
    /// Number of batches that exist.
    made: usize,
    /// Its latest report: its counters, and its use by face.
    report: ShardReport,
    uses: HashMap<u32, FaceUse>,
    /// Number of reports that are requested and not received.
    requested: usize,
    thread: Option<JoinHandle<()>>,
}

impl Workers {
    /// Starts `count` workers; all but the first get a thread.
    pub(crate) fn start(settings: &Settings, count: usize, sharing: Sharing) -> io::Result<Self> {
        let doorbell = Arc::new(Doorbell::new()?);
        let parallel = Parallel::new(settings, count, sharing);
        let dispatch = parallel.dispatch().clone();
        let mut shards = parallel.into_workers().into_iter();
        let own = shards.next().unwrap_or_else(|| Forwarder::new(settings.clone()));
        let seat = |(number, shard)| Seat::start(number, shard, &doorbell);
        let seats = (1..=u8::MAX).zip(shards).map(seat).collect::<io::Result<_>>()?;
        Ok(Self { own, dispatch, seats, doorbell, dropped: 0, notices_dropped: 0 })
    }

    /// The event that wakes the main thread; `None` without other threads.
    pub(crate) fn doorbell(&self) -> Option<&Doorbell> {
        (!self.seats.is_empty()).then_some(&*self.doorbell)
    }

    /// Whether the main thread has work without a socket that is ready. Call it after
    /// [`Doorbell::announce`].
    pub(crate) fn has_returned(&mut self) -> bool {
        self.seats.iter_mut().any(Seat::has_returned)
    }

    /// Passes received packets to their shards.
    pub(crate) fn handle(
        &mut self,
        faces: &mut Faces,
        now_ns: u64,
        packets: &[ReceivedPacket<'_>],
    ) {
        let mut run = [(FaceId(0), &Headers::NONE, &[][..]); RUN];
        for packets in packets.chunks(RUN) {
            let mut len = 0;
            for ReceivedPacket { face, headers, packet } in packets {
                let shard = match self.seats.is_empty() {
                    true => 0,
                    false => self.dispatch.worker_of(FaceId(*face), packet),
                };
                match shard.checked_sub(1) {
                    None => {
                        run[len] = (FaceId(*face), headers, packet);
                        len += 1;
                    }
                    Some(seat) => {
                        let is_taken = self.seats[seat].add(now_ns, *face, headers, packet);
                        self.dropped += u64::from(!is_taken);
                    }
                }
            }
            self.pass_on(FULL);
            let mut send =
                |to: FaceId, headers: &Headers, packet: &[u8]| faces.send(to.0, headers, packet);
            self.own.burst(now_ns, &run[..len], &mut send);
            // Answers to the packets sent above are dispatched after this.
            for notice in self.own.take_notices() {
                self.publish(notice, None);
            }
        }
    }

    /// Passes on the open batches with at least `least` packets.
    pub(crate) fn pass_on(&mut self, least: usize) {
        for seat in &mut self.seats {
            if seat.open.as_ref().is_some_and(|batch| batch.packets.len() >= least) {
                seat.pass_on();
            }
        }
    }

    /// Takes what the workers returned: notices for the other shards, packets to send on streams,
    /// reports. Received packets must be dispatched after this, because they may be answers.
    pub(crate) fn collect(&mut self, faces: &mut Faces) {
        for at in 0..self.seats.len() {
            while let Some(mut batch) = self.seats[at].next_returned() {
                for notice in batch.notices.drain(..) {
                    let mut send = |to: FaceId, headers: &Headers, packet: &[u8]| {
                        faces.send(to.0, headers, packet);
                    };
                    self.own.notice(&notice, &mut send);
                    self.publish(notice, Some(at));
                }
                for (face, serial, headers, packet) in batch.packets.iter() {
                    faces.send_if_same(face, serial, headers, packet);
                }
                batch.packets.clear();
                let seat = &mut self.seats[at];
                if let Some(report) = batch.report.take() {
                    seat.report = report.shard;
                    seat.uses = report.uses.into_iter().collect();
                    seat.requested -= 1;
                    report.sent.iter().for_each(|sent| faces.add_sent(sent));
                }
                seat.take_back(batch);
            }
        }
    }

    /// Passes a notice to all shards but the main thread's and that of the seat `except`.
    fn publish(&mut self, notice: Notice, except: Option<usize>) {
        let notice = Arc::new(notice);
        for (at, seat) in self.seats.iter_mut().enumerate() {
            if Some(at) == except {
                continue;
            }
            match seat.has_room() {
                true => seat.command(0, Command::Notice(Arc::clone(&notice))),
                false => self.notices_dropped += 1,
            }
        }
    }

    /// Removes expired entries of the main thread's shard.
    pub(crate) fn advance(&mut self, now_ns: u64) {
        self.own.advance(now_ns);
    }

    /// Requests reports, which [`Workers::collect`] receives later.
    pub(crate) fn request_reports(&mut self) {
        for seat in self.seats.iter_mut().filter(|seat| seat.requested == 0) {
            seat.requested += 1;
            seat.command(0, Command::Report);
            seat.pass_on();
        }
    }

    /// Waits until all workers have handled all packets so far and have reported. Returns false
    /// if a worker did not report within `timeout`.
    pub(crate) fn report(&mut self, faces: &mut Faces, timeout: Duration) -> bool {
        for seat in &mut self.seats {
            seat.requested += 1;
            seat.command(0, Command::Report);
            seat.pass_on();
        }
        let clock = Clock::start();
        loop {
            self.collect(faces);
            if self.seats.iter().all(|seat| seat.requested == 0) {
                faces.flush();
                return true;
            }
            if clock.elapsed() > timeout || self.has_failed() {
                return false;
            }
            std::thread::yield_now();
        }
    }

    /// Whether a worker's thread has ended.
    pub(crate) fn has_failed(&self) -> bool {
        let ended = |seat: &Seat| seat.thread.as_ref().is_none_or(JoinHandle::is_finished);
        self.seats.iter().any(ended)
    }

    /// The latest counters of each shard.
    pub(crate) fn shards(&self) -> Vec<ShardReport> {
        let own = ShardReport::of(&self.own);
        std::iter::once(own).chain(self.seats.iter().map(|seat| seat.report)).collect()
    }

    /// Notices dropped for the same reason.
    pub(crate) fn notices_dropped(&self) -> u64 {
        self.notices_dropped
    }

    /// Packets dropped because a worker had too many batches waiting.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// The sum of the latest counters of all shards.
    pub(crate) fn counters(&self) -> Counters {
        let mut sum = Counters::default();
        self.shards().iter().for_each(|shard| sum.add(&shard.counters));
        sum
    }

    /// Number of pending Interests of all shards.
    pub(crate) fn pending(&self) -> usize {
        self.shards().iter().map(|shard| shard.pending).sum()
    }

    /// Whether the main thread's shard has pending Interests.
    pub(crate) fn has_pending(&self) -> bool {
        self.own.pending() > 0
    }

    /// The latest use of all tables by a face.
    pub(crate) fn face_use(&self, face: u32) -> FaceUse {
        let mut sum = self.own.face_use(FaceId(face));
        let others = self.seats.iter().filter_map(|seat| seat.uses.get(&face));
        others.for_each(|usage| sum.add(usage));
        sum
    }

    /// Number of Data in the content stores of all shards.
    pub(crate) fn stored(&self) -> usize {
        self.shards().iter().map(|shard| shard.kept).sum()
    }

    /// Number of bytes that they need.
    pub(crate) fn stored_bytes(&self) -> usize {
        self.shards().iter().map(|shard| shard.kept_bytes).sum()
    }

    /// Adds or changes a face in all shards.
    pub(crate) fn set_face(&mut self, faces: &mut Faces, number: u32, face: Face) {
        self.own.set_face(FaceId(number), face);
        self.pass_channels(faces);
        for seat in &mut self.seats {
            if let Some(info) = faces.get(number).map(FaceInfo::of) {
                seat.command(0, Command::SetFace(number, face, info));
            }
        }
    }

    /// Passes opened channels to the workers, and removes closed ones.
    fn pass_channels(&mut self, faces: &mut Faces) {
        for number in faces.take_changed_channels() {
            self.command(|| Command::SetChannel(number, faces.outgoing(number)));
        }
    }

    /// Removes a closed face from all shards. Returns whether it had routes.
    pub(crate) fn remove_face(&mut self, faces: &mut Faces, number: u32) -> bool {
        self.seats.iter_mut().for_each(|seat| {
            seat.uses.remove(&number);
        });
        self.command(|| Command::RemoveFace(number));
        self.pass_channels(faces);
        self.own.remove_face(FaceId(number))
    }

    /// Adds a route to all shards, or changes its cost; sends pending Interests as
    /// [`Forwarder::add_route`] does.
    pub(crate) fn add_route(
        &mut self,
        faces: &mut Faces,
        now_ns: u64,
        prefix: &NameBuf,
        face: FaceId,
        cost: u64,
    ) -> Result<(), TooLong> {
        let mut send =
            |to: FaceId, headers: &Headers, packet: &[u8]| faces.send(to.0, headers, packet);
        self.own.add_route(now_ns, &prefix.as_name(), face, cost, &mut send)?;
        let prefix = Arc::new(prefix.clone());
        for seat in &mut self.seats {
            let prefix = Arc::clone(&prefix);
            seat.command(now_ns, Command::AddRoute { prefix, face, cost });
        }
        Ok(())
    }

    pub(crate) fn remove_route(&mut self, prefix: &NameBuf, face: FaceId) {
        self.own.remove_route(&prefix.as_name(), face);
        let prefix = Arc::new(prefix.clone());
        self.command(|| Command::RemoveRoute { prefix: Arc::clone(&prefix), face });
    }

    pub(crate) fn set_strategy(
        &mut self,
        prefix: &NameBuf,
        strategy: Strategy,
    ) -> Result<(), TooLong> {
        self.own.set_strategy(&prefix.as_name(), strategy)?;
        let prefix = Arc::new(prefix.clone());
        self.command(|| Command::SetStrategy { prefix: Arc::clone(&prefix), strategy });
        Ok(())
    }

    pub(crate) fn unset_strategy(&mut self, prefix: &NameBuf) {
        self.own.unset_strategy(&prefix.as_name());
        let prefix = Arc::new(prefix.clone());
        self.command(|| Command::UnsetStrategy { prefix: Arc::clone(&prefix) });
    }

    /// Adds a command for all workers.
    fn command(&mut self, make: impl Fn() -> Command) {
        self.seats.iter_mut().for_each(|seat| seat.command(0, make()));
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        for seat in &mut self.seats {
            seat.to.close();
            seat.to.wake();
        }
        for seat in &mut self.seats {
            // A worker may wait for room in the ring to the main thread.
            while seat.thread.as_ref().is_some_and(|thread| !thread.is_finished()) {
                while seat.from.pop().is_some() {}
                seat.to.wake();
                std::thread::sleep(Duration::from_micros(100));
            }
            if let Some(thread) = seat.thread.take() {
                // A panic was reported when the run noticed that the thread had ended.
                let _ = thread.join();
            }
        }
    }
}

impl Seat {
    fn start(number: u8, shard: Forwarder, doorbell: &Arc<Doorbell>) -> io::Result<Self> {
        let ring = || ringtap_ring::spsc(2 * BATCHES_MAX).map_err(io::Error::other);
        let ((to, from_main), (to_main, from)) = (ring()?, ring()?);
        let worker = Worker::new(shard, number, Arc::clone(doorbell));
        let thread = std::thread::Builder::new()
            .name(format!("worker {number}"))
            .spawn(move || worker.run(from_main, to_main))?;
        Ok(Self {
            to,
            from,
            open: None,
            spare: Vec::new(),
            returned: VecDeque::new(),
            made: 0,
            report: ShardReport::default(),
            uses: HashMap::new(),
            requested: 0,
            thread: Some(thread),
        })
    }

    /// Adds a packet to the open batch; returns false if there is no batch for it.
    #[inline]
    fn add(&mut self, now_ns: u64, face: u32, headers: &Headers, packet: &[u8]) -> bool {
        // All packets of a batch have one time.
        if self.open.as_ref().is_some_and(|open| open.now_ns != now_ns && !open.packets.is_empty())
        {
            self.pass_on();
        }
        if !self.has_room() {
            return false;
        }
        let batch = self.open();
        batch.now_ns = now_ns;
        batch.packets.push(face, 0, headers, packet);
        true
    }

    /// Whether there is a batch for a packet.
    fn has_room(&self) -> bool {
        self.open.is_some() || self.made - self.spare.len() < BATCHES_MAX
    }

    /// Adds a command, after the packets so far. `now_ns` is 0 for one without a time.
    fn command(&mut self, now_ns: u64, command: Command) {
        if self.open.as_ref().is_some_and(|open| !open.packets.is_empty()) {
            self.pass_on();
        }
        let batch = self.open();
        batch.now_ns = batch.now_ns.max(now_ns);
        batch.commands.push(command);
    }

    fn open(&mut self) -> &mut Batch {
        let Self { open, spare, made, .. } = self;
        open.get_or_insert_with(|| {
            spare.pop().unwrap_or_else(|| {
                *made += 1;
                Box::default()
            })
        })
    }

    /// Passes the open batch on, and wakes the worker.
    fn pass_on(&mut self) {
        let Some(mut batch) = self.open.take() else { return };
        // The ring has room for all batches but those of many commands in a row. A worker that has
        // failed takes none.
        while let Err(unsent) = self.to.push(batch) {
            if self.to.is_abandoned() {
                return;
            }
            batch = unsent;
            self.returned.extend(self.from.pop());
            std::thread::yield_now();
        }
        self.to.wake();
    }

    /// Whether the worker has returned a batch.
    fn has_returned(&mut self) -> bool {
        // The newest batches become visible by this.
        self.from.flush();
        !self.returned.is_empty() || !self.from.peek(1).is_empty()
    }

    /// The next batch that the worker returned.
    fn next_returned(&mut self) -> Option<Box<Batch>> {
        self.returned.pop_front().or_else(|| self.from.pop())
    }

    /// Keeps an emptied batch for reuse.
    fn take_back(&mut self, mut batch: Box<Batch>) {
        if self.made > BATCHES_MAX {
            self.made -= 1;
            return;
        }
        batch.now_ns = 0;
        batch.packets.shrink_above(KEPT_MAX);
        self.spare.push(batch);
    }
}
