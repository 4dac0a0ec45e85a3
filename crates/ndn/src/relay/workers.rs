//! The shards of the relay and the threads that run them.
//!
//! ```text
//!  received ─▶ shard of the name ─┬─ 0, and those that are home: the main thread ─▶ faces
//!                                 └─ away: batch ─ ring ─▶ worker ─▶ datagrams
//!                                             ◀─ ring ─ packets for streams, notices
//! ```
//!
//! A shard is *home*, in the main thread, until this thread has more work than time ([`Load`]). Then it
//! moves to its worker, and returns when there is little to do. So a program with few packets in
//! flight never waits for another thread to wake up, and pays for none.
//!
//! Invariants: a shard is in one thread at a time, because it moves in a batch. Packets of one face
//! and name are handled in order: those for a shard that is returning are held until it is home. No
//! lock. Packets and notices for which a worker has no room are dropped and counted. The main
//! thread waits for a worker only at the end.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use crate::faces::{FaceInfo, Faces, ReceivedPacket};
use crate::forwarder::design::Access;
use crate::forwarder::{
    Dispatch, Face, FaceId, FaceUse, Forwarder, Notice, Parallel, Strategy, TooLong,
};
use crate::packets::{Headers, NameBuf};
use ringtap_base::Clock;
use ringtap_ring::{Consumer, Producer, Vernier};

use super::batch::{Batch, Command, ShardReport};
use super::doorbell::Doorbell;
use super::load::{Load, Move};
use super::worker::{self, Shard, ShardBatch};

/// Maximum number of packets that are forwarded together.
const RUN: usize = 32;

/// Maximum number of batches of packets on the way to a worker and back.
const BATCHES_MAX: usize = 512;

/// Number of packets with which a batch is passed on at once; smaller ones at the end of a round.
const FULL: usize = 64;

/// The largest buffer of a batch that is kept for reuse, in bytes.
const KEPT_MAX: usize = 512 << 10;

/// All shards: the main thread's own and those of the workers.
pub(crate) struct Workers<A: Access> {
    own: Forwarder<A>,
    dispatch: Dispatch,
    seats: Vec<Seat<A>>,
    doorbell: Arc<Doorbell>,
    load: Load,
    /// Packets, and notices, dropped because a worker has too many batches waiting.
    dropped: u64,
    notices_dropped: u64,
    /// Number of times that a shard moved to its worker, for tests.
    #[cfg(test)]
    handed_over: u64,
}

/// The main thread's side of a worker.
struct Seat<A: Access> {
    place: Place<A>,
    to: Producer<ShardBatch<A>, Vernier>,
    from: Consumer<ShardBatch<A>, Vernier>,
    /// The batch that is being filled.
    open: Option<ShardBatch<A>>,
    /// Batches for a shard that is returning.
    held: VecDeque<ShardBatch<A>>,
    spare: Vec<ShardBatch<A>>,
    /// Returned batches that were not looked at yet.
    returned: VecDeque<ShardBatch<A>>,
    /// Number of batches that exist.
    made: usize,
    /// Number of packets for the shard since the last move of any shard.
    packets: u64,
    /// Its latest report while it is away: its counters, and its use by face.
    report: ShardReport,
    uses: HashMap<u32, FaceUse>,
    /// Number of reports that are requested and not received.
    requested: usize,
    thread: Option<JoinHandle<()>>,
}

/// Where a shard is.
enum Place<A> {
    Home(Box<Shard<A>>),
    Away,
    /// Away, and the worker has been asked to return it.
    Returning,
}

impl<A: Access> Workers<A> {
    /// Gives all `forwarders` but the first a thread. With `parallel`, they are away all the time.
    pub(crate) fn start(forwarders: Parallel<A>, parallel: bool) -> io::Result<Self> {
        let doorbell = Arc::new(Doorbell::new()?);
        let dispatch = forwarders.dispatch().clone();
        let mut shards = forwarders.into_workers();
        let own = shards.remove(0);
        let seat = |(number, shard)| Seat::start(Shard::new(shard, number), number, &doorbell);
        let seats = (1..=u8::MAX).zip(shards).map(seat).collect::<io::Result<_>>()?;
        let load = if parallel { Load::always() } else { Load::default() };
        let mut workers = Self {
            own,
            dispatch,
            seats,
            doorbell,
            load,
            dropped: 0,
            notices_dropped: 0,
            #[cfg(test)]
            handed_over: 0,
        };
        if parallel {
            (0..workers.seats.len()).for_each(|at| workers.hand_over(at));
        }
        Ok(workers)
    }

    /// The event that wakes the main thread; `None` while no shard is away.
    pub(crate) fn doorbell(&self) -> Option<&Doorbell> {
        self.is_any_away().then_some(&*self.doorbell)
    }

    /// The event that wakes the main thread, for epoll; `None` without workers.
    pub(crate) fn event(&self) -> Option<&Doorbell> {
        (!self.seats.is_empty()).then_some(&*self.doorbell)
    }

    /// Whether a worker has a shard, or is returning it.
    pub(crate) fn is_any_away(&self) -> bool {
        self.seats.iter().any(Seat::is_away)
    }

    #[cfg(test)]
    fn handed_over(&self) -> u64 {
        self.handed_over
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
        for packets in packets.chunks(RUN) {
            if self.seats.is_empty() {
                self.burst(faces, now_ns, None, packets.iter());
                continue;
            }
            let mut shards = [0; RUN];
            for (shard, one) in shards.iter_mut().zip(packets) {
                *shard = self.dispatch.worker_of(FaceId(one.face), one.packet);
            }
            let mut left = u32::MAX >> (RUN - packets.len());
            while left != 0 {
                let shard = shards[left.trailing_zeros() as usize];
                let of_shard = |at: &usize| left >> at & 1 == 1 && shards[*at] == shard;
                let indices = (0..packets.len()).filter(of_shard);
                let taken = indices.clone().fold(0, |taken, at| taken | 1 << at);
                self.pass(faces, now_ns, shard, indices.map(|at| &packets[at]));
                left &= !taken;
            }
            self.pass_on(FULL);
        }
    }

    /// Passes packets to their shard.
    fn pass<'a, 'b: 'a>(
        &mut self,
        faces: &mut Faces,
        now_ns: u64,
        shard: usize,
        packets: impl Iterator<Item = &'a ReceivedPacket<'b>>,
    ) {
        let Some(at) = shard.checked_sub(1) else {
            return self.burst(faces, now_ns, None, packets);
        };
        if let Place::Home(_) = self.seats[at].place {
            return self.burst(faces, now_ns, Some(at), packets);
        }
        for ReceivedPacket { face, headers, packet } in packets {
            let is_taken = self.seats[at].add(now_ns, *face, headers, packet);
            self.dropped += u64::from(!is_taken);
        }
    }

    /// Forwards up to [`RUN`] packets in this thread, by a shard that is home.
    fn burst<'a, 'b: 'a>(
        &mut self,
        faces: &mut Faces,
        now_ns: u64,
        seat: Option<usize>,
        packets: impl Iterator<Item = &'a ReceivedPacket<'b>>,
    ) {
        let mut run = [(FaceId(0), &Headers::NONE, &[][..]); RUN];
        let mut len = 0;
        for ReceivedPacket { face, headers, packet } in packets {
            run[len] = (FaceId(*face), headers, packet);
            len += 1;
        }
        let forwarder = match seat.map(|at| &mut self.seats[at]) {
            None => &mut self.own,
            Some(seat) => {
                seat.packets += len as u64;
                let Place::Home(shard) = &mut seat.place else { return };
                &mut shard.forwarder
            }
        };
        forwarder.burst(now_ns, &run[..len], faces);
        if forwarder.has_notices() {
            // Answers to the packets sent above are dispatched after this.
            for notice in forwarder.take_notices() {
                self.publish(faces, seat, notice);
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
    /// reports, shards. Received packets must be dispatched after this, because they may be answers.
    pub(crate) fn collect(&mut self, faces: &mut Faces) {
        for at in 0..self.seats.len() {
            while let Some(mut batch) = self.seats[at].next_returned() {
                for notice in batch.notices.drain(..) {
                    self.publish(faces, Some(at), notice);
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
                    report.sent.iter().for_each(|sent| faces.table.add_sent(sent));
                }
                let returned = batch.shard.take();
                seat.take_back(batch);
                if let Some(shard) = returned {
                    seat.place = Place::Home(shard);
                    self.handle_held(faces, at);
                }
            }
        }
    }

    /// Handles the batches that were held while a shard returned, which is home now.
    fn handle_held(&mut self, faces: &mut Faces, at: usize) {
        let seat = &mut self.seats[at];
        let open = seat.open.take();
        seat.held.extend(open);
        while let Some(mut batch) = self.seats[at].held.pop_front() {
            for command in batch.commands.drain(..) {
                self.seats[at].command(batch.now_ns, command, Some(faces));
            }
            let packets: Vec<ReceivedPacket<'_>> = batch
                .packets
                .iter()
                .map(|(face, _, &headers, packet)| ReceivedPacket { face, headers, packet })
                .collect();
            for packets in packets.chunks(RUN) {
                self.burst(faces, batch.now_ns, Some(at), packets.iter());
            }
            batch.packets.clear();
            self.seats[at].take_back(batch);
        }
    }

    /// Passes a notice to all shards but that of the seat `from`; `None` is the main thread's own.
    fn publish(&mut self, faces: &mut Faces, from: Option<usize>, notice: Notice) {
        if from.is_some() {
            self.own.notice(&notice, faces);
        }
        let notice = Arc::new(notice);
        for (at, seat) in self.seats.iter_mut().enumerate() {
            if Some(at) == from {
                continue;
            }
            match seat.has_room() {
                true => seat.command(0, Command::Notice(Arc::clone(&notice)), Some(faces)),
                false => self.notices_dropped += 1,
            }
        }
    }

    /// Removes expired entries of the shards that are home.
    pub(crate) fn advance(&mut self, now_ns: u64) {
        self.own.advance(now_ns);
        for seat in &mut self.seats {
            if let Place::Home(shard) = &mut seat.place {
                shard.forwarder.advance(now_ns);
            }
        }
    }

    /// Moves a shard to its worker or back, if the load of the main thread says so. Call it at the
    /// end of a turn, after everything was sent: whether the thread had waited, and how many packets of
    /// faces it received on which workers can send. A worker returns packets for all others, which
    /// costs as much as it saves.
    pub(crate) fn balance(&mut self, waited: bool, packets: u64) {
        if self.seats.is_empty() {
            return;
        }
        match self.load.turn(waited, packets) {
            None => {}
            Some(Move::HandOver) => {
                let seats = self.seats.iter().enumerate();
                let home = seats.filter(|(_, seat)| !seat.is_away());
                let busiest = home.max_by_key(|(_, seat)| seat.packets);
                if let Some((at, _)) = busiest {
                    self.hand_over(at);
                }
                self.seats.iter_mut().for_each(|seat| seat.packets = 0);
            }
            Some(Move::Return) => {
                let away = self.seats.iter_mut().filter(|seat| matches!(seat.place, Place::Away));
                away.for_each(Seat::recall);
            }
        }
    }

    fn hand_over(&mut self, at: usize) {
        #[cfg(test)]
        {
            self.handed_over += 1;
        }
        self.seats[at].hand_over();
    }

    /// Requests reports, which [`Workers::collect`] receives later; also of workers that have a
    /// request already.
    pub(crate) fn request_new_reports(&mut self) {
        for seat in self.seats.iter_mut().filter(|seat| seat.is_away()) {
            seat.request_report();
        }
    }

    /// Requests reports of workers that have no request.
    pub(crate) fn request_reports(&mut self) {
        for seat in self.seats.iter_mut().filter(|seat| seat.is_away() && seat.requested == 0) {
            seat.request_report();
        }
    }

    /// Whether all requested reports were received.
    pub(crate) fn has_reported(&self) -> bool {
        self.seats.iter().all(|seat| seat.requested == 0)
    }

    /// Waits until all workers have handled all packets so far and have reported. Returns false
    /// if a worker did not report within `timeout`.
    pub(crate) fn report(&mut self, faces: &mut Faces, timeout: Duration) -> bool {
        self.request_new_reports();
        let clock = Clock::start();
        loop {
            self.collect(faces);
            if self.has_reported() {
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
        let ended = |seat: &Seat<A>| seat.thread.as_ref().is_none_or(JoinHandle::is_finished);
        self.seats.iter().any(ended)
    }

    /// The latest counters of each shard.
    pub(crate) fn shards(&self) -> Vec<ShardReport> {
        let own = ShardReport::of(&self.own);
        let latest = |seat: &Seat<A>| match &seat.place {
            Place::Home(shard) => ShardReport::of(&shard.forwarder),
            Place::Away | Place::Returning => seat.report,
        };
        std::iter::once(own).chain(self.seats.iter().map(latest)).collect()
    }

    /// The sum of the latest counters of all shards.
    pub(crate) fn total(&self) -> ShardReport {
        let mut total = ShardReport::default();
        for ShardReport { counters, pending, kept, kept_bytes } in self.shards() {
            total.counters.add(&counters);
            total.pending += pending;
            total.kept += kept;
            total.kept_bytes += kept_bytes;
        }
        total
    }

    /// Notices dropped for the same reason.
    pub(crate) fn notices_dropped(&self) -> u64 {
        self.notices_dropped
    }

    /// Packets dropped because a worker had too many batches waiting.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Whether a shard that is home has pending Interests.
    pub(crate) fn has_pending(&self) -> bool {
        let is_pending = |seat: &Seat<A>| match &seat.place {
            Place::Home(shard) => shard.forwarder.pending() > 0,
            Place::Away | Place::Returning => false,
        };
        self.own.pending() > 0 || self.seats.iter().any(is_pending)
    }

    /// The latest use of all tables by a face.
    pub(crate) fn face_use(&self, face: u32) -> FaceUse {
        let mut sum = self.own.face_use(FaceId(face));
        for seat in &self.seats {
            match &seat.place {
                Place::Home(shard) => sum.add(&shard.forwarder.face_use(FaceId(face))),
                Place::Away | Place::Returning => {
                    seat.uses.get(&face).into_iter().for_each(|usage| sum.add(usage));
                }
            }
        }
        sum
    }

    /// Adds or changes a face in all shards.
    pub(crate) fn set_face(&mut self, faces: &mut Faces, number: u32, face: Face) {
        self.own.set_face(FaceId(number), face);
        self.pass_channels(faces);
        for seat in &mut self.seats {
            if let Some(info) = faces.get(number).map(FaceInfo::of) {
                seat.command(0, Command::SetFace(number, face, info), None);
            }
        }
    }

    /// Passes opened channels to the workers, and removes closed ones.
    fn pass_channels(&mut self, faces: &mut Faces) {
        for number in faces.channels.take_changed() {
            self.command(|| Command::SetChannel(number, faces.channels.outgoing(number)));
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
        self.own.add_route(now_ns, &prefix.as_name(), face, cost, faces)?;
        let prefix = Arc::new(prefix.clone());
        for seat in &mut self.seats {
            let prefix = Arc::clone(&prefix);
            let command = Command::AddRoute { prefix, face, cost };
            seat.command(now_ns, command, Some(faces));
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

    /// Adds a command that sends nothing, for all workers.
    fn command(&mut self, make: impl Fn() -> Command) {
        self.seats.iter_mut().for_each(|seat| seat.command(0, make(), None));
    }
}

impl<A: Access> Drop for Workers<A> {
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

impl<A: Access> Seat<A> {
    fn start(shard: Shard<A>, number: u8, doorbell: &Arc<Doorbell>) -> io::Result<Self> {
        let ring = || ringtap_ring::spsc(2 * BATCHES_MAX).map_err(io::Error::other);
        let ((to, from_main), (to_main, from)) = (ring()?, ring()?);
        let doorbell = Arc::clone(doorbell);
        let thread = std::thread::Builder::new()
            .name(format!("worker {number}"))
            .spawn(move || worker::run(&doorbell, from_main, to_main))?;
        Ok(Self {
            place: Place::Home(Box::new(shard)),
            to,
            from,
            open: None,
            held: VecDeque::new(),
            spare: Vec::new(),
            returned: VecDeque::new(),
            made: 0,
            packets: 0,
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

    fn is_away(&self) -> bool {
        !matches!(self.place, Place::Home(_))
    }

    /// Adds a command, after the packets so far; executes it at once if the shard is home. `now_ns`
    /// is 0 for one without a time. `faces` is needed if it may send packets.
    fn command(&mut self, now_ns: u64, command: Command, faces: Option<&mut Faces>) {
        if let Place::Home(shard) = &mut self.place {
            return shard.execute(now_ns, command, faces);
        }
        if self.open.as_ref().is_some_and(|open| !open.packets.is_empty()) {
            self.pass_on();
        }
        let batch = self.open();
        batch.now_ns = batch.now_ns.max(now_ns);
        batch.commands.push(command);
    }

    fn open(&mut self) -> &mut Batch<Shard<A>> {
        let Self { open, spare, made, .. } = self;
        open.get_or_insert_with(|| {
            spare.pop().unwrap_or_else(|| {
                *made += 1;
                Box::default()
            })
        })
    }

    fn request_report(&mut self) {
        // A shard that is returning reports anyway.
        if let Place::Away = self.place {
            self.requested += 1;
            self.command(0, Command::Report, None);
            self.pass_on();
        }
    }

    /// Moves the shard to the worker.
    fn hand_over(&mut self) {
        match std::mem::replace(&mut self.place, Place::Away) {
            Place::Home(shard) => {
                self.report = ShardReport::of(&shard.forwarder);
                self.open().shard = Some(shard);
                self.pass_on();
            }
            other => self.place = other,
        }
    }

    /// Asks the worker to return the shard, with a report.
    fn recall(&mut self) {
        self.requested += 1;
        self.command(0, Command::Report, None);
        self.open().returns = true;
        self.pass_on();
        self.place = Place::Returning;
    }

    /// Passes the open batch on, and wakes the worker.
    fn pass_on(&mut self) {
        let Some(mut batch) = self.open.take() else { return };
        if let Place::Returning = self.place {
            return self.held.push_back(batch);
        }
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
    fn next_returned(&mut self) -> Option<ShardBatch<A>> {
        self.returned.pop_front().or_else(|| self.from.pop())
    }

    /// Keeps an emptied batch for reuse.
    fn take_back(&mut self, mut batch: ShardBatch<A>) {
        if self.made > BATCHES_MAX {
            self.made -= 1;
            return;
        }
        (batch.now_ns, batch.returns) = (0, false);
        batch.packets.shrink_above(KEPT_MAX);
        self.spare.push(batch);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::faces::Settings as FaceSettings;
    use crate::forwarder::Settings;
    use crate::forwarder::design::OwnTables;
    use crate::forwarder::{Counters, LinkKind};
    use crate::packets::{NewData, NewInterest};

    /// Packets in a turn, and turns.
    const PACKETS: u32 = 80;
    const TURNS: u32 = 400;

    /// What a run of two programs left behind: its counters, and the bytes that each received.
    #[derive(Debug, PartialEq, Eq)]
    struct Outcome {
        counters: Counters,
        received: [usize; 2],
    }

    struct Run {
        faces: Faces,
        workers: Workers<OwnTables>,
        programs: [(u32, UnixStream); 2],
        received: [usize; 2],
    }

    impl Run {
        fn new(count: usize) -> Self {
            let mut faces = Faces::open(FaceSettings::default()).unwrap();
            let settings = Settings { dispatch_components: 3, seed: 7, ..Settings::default() };
            let mut workers = Workers::start(Parallel::new(&settings, count), false).unwrap();
            workers.set_strategy(&NameBuf::default(), Strategy::BestRoute).unwrap();
            let programs = [0, 1].map(|_| {
                let (far, near) = UnixStream::pair().unwrap();
                near.set_nonblocking(true).unwrap();
                far.set_nonblocking(true).unwrap();
                let face = faces
                    .streams
                    .add_program(&mut faces.table, "unix://test".into(), near.into(), 1)
                    .unwrap();
                let properties = Face { local: true, link: LinkKind::PointToPoint };
                workers.set_face(&mut faces, face, properties);
                (face, far)
            });
            let producer = FaceId(programs[1].0);
            let prefix = "/p".parse().unwrap();
            workers.add_route(&mut faces, 1, &prefix, producer, 0).unwrap();
            Self { faces, workers, programs, received: [0; 2] }
        }

        /// A turn of the main loop with Interests of one program and the Data of the other.
        fn turn(&mut self, now_ns: u64, first: u32, waited: bool) {
            let wire = |number: u32, is_data: bool| {
                let name: NameBuf = format!("/p/{number}/{}", number / 7).parse().unwrap();
                let (name, mut wire) = (name.as_name(), Vec::new());
                match is_data {
                    true => NewData { name, freshness_ms: None, content: b"1" }.write(&mut wire),
                    false => NewInterest::new(name, number).write(&mut wire),
                }
                wire
            };
            let Self { faces, workers, programs, .. } = self;
            workers.collect(faces);
            for is_data in [false, true] {
                let wires: Vec<_> = (first..first + PACKETS).map(|n| wire(n, is_data)).collect();
                let face = programs[usize::from(is_data)].0;
                let received: Vec<_> = wires
                    .iter()
                    .map(|packet| ReceivedPacket { face, headers: Headers::NONE, packet })
                    .collect();
                workers.handle(faces, now_ns, &received);
            }
            workers.collect(faces);
            faces.flush();
            workers.pass_on(0);
            workers.balance(waited, 2 * u64::from(PACKETS));
            self.receive();
        }

        /// Reads what the programs received, so that their sockets have room.
        fn receive(&mut self) {
            use std::io::Read;
            for ((_, far), received) in self.programs.iter_mut().zip(&mut self.received) {
                while let Ok(count) = far.read(&mut [0; 1 << 16]) {
                    *received += count;
                }
            }
        }

        /// Waits until the workers have returned all shards.
        fn wait_until_home(&mut self) {
            while self.workers.is_any_away() {
                self.workers.collect(&mut self.faces);
                self.faces.flush();
                self.receive();
                assert!(!self.workers.has_failed());
                std::thread::yield_now();
            }
        }

        fn outcome(mut self) -> Outcome {
            assert!(self.workers.report(&mut self.faces, Duration::from_secs(60)));
            self.receive();
            assert_eq!((self.workers.dropped(), self.workers.notices_dropped()), (0, 0));
            Outcome { counters: self.workers.total().counters, received: self.received }
        }
    }

    /// Turns of any kind: `waited` decides which turns found nothing to do at first.
    fn run(count: usize, waited: impl Fn(u32) -> bool) -> (u64, Outcome) {
        let mut run = Run::new(count);
        for turn in 0..TURNS {
            run.turn(u64::from(turn) * 1_000, turn * PACKETS, waited(turn));
        }
        (run.workers.handed_over(), run.outcome())
    }

    #[test]
    fn a_thread_that_waits_for_packets_wakes_no_worker() {
        let (_, reference) = run(1, |_| true);
        assert_eq!(reference.counters.satisfied, u64::from(PACKETS * TURNS));
        // A busy turn now and then is not a busy thread.
        assert_eq!(run(3, |turn| turn % 10 == 0), (0, reference));
    }

    #[test]
    fn shards_move_to_workers_and_back_without_any_difference() {
        let (_, reference) = run(1, |_| true);
        // Busy all the time; and busy and quiet in turns, so that shards return while packets arrive.
        assert_eq!(run(3, |_| false), (2, reference));
        let (_, reference) = run(1, |_| true);
        let (handed_over, outcome) = run(3, |turn| turn % 128 >= 48);
        assert_eq!(outcome, reference);
        assert!(handed_over >= 4, "{handed_over}");
    }

    #[test]
    fn shards_return_when_the_thread_waits() {
        let mut run = Run::new(3);
        for turn in 0..40 {
            run.turn(u64::from(turn), turn * PACKETS, false);
        }
        assert!(run.workers.is_any_away());
        for turn in 40..200 {
            run.turn(u64::from(turn), turn * PACKETS, true);
        }
        run.wait_until_home();
        assert_eq!(run.workers.handed_over(), 2);
        assert_eq!(run.outcome().counters.satisfied, u64::from(200 * PACKETS));
    }
}
