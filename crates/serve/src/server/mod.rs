//! A server for one listening socket: one thread serves many clients and waits for none of them.
//!
//! ```text
//! accept ─▶ Receiving ── a request is complete ─▶ Sending ─┬─▶ Idle ── next request ─▶ Receiving
//!                                                          ├─▶ Following, until the client leaves
//!                                                          └─▶ Closing ─▶ closed
//! ```
//!
//! Each state has one total deadline, however slowly bytes arrive or leave. When the connection
//! limit is reached, a new client replaces the one that has been idle longest. A client that follows
//! a topic gets an event at each [`Server::publish`], unless it has not read the one before.
//!
//! Clients take turns: in each, a client gets at most [`Limits::requests`] answers, however many requests it sent at once.
//!
//! Invariant: connections and buffered bytes are bounded. A client that sends nothing, sends slowly
//! or reads slowly delays no other; one that sends many requests delays each other by a turn. Time in which the server itself is busy does not count against
//! clients.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use ringtap_base::Clock;

/// Bytes read from a client at a time.
const CHUNK: usize = 64 << 10;

/// After the last answer, a client has this long to close; what it still sends is discarded.
const CLOSING: Duration = Duration::from_secs(1);

/// Pause after a failed accept, usually for lack of file descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// Limits of clients.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections at a time.
    pub connections: usize,
    /// Connections that follow a topic, at a time.
    pub followers: usize,
    /// Answers to a client in each turn.
    pub requests: usize,
    /// Longest time from the first byte of a request (for the first one, from the connection) to
    /// its last.
    pub request: Duration,
    /// Longest time to read an answer.
    pub response: Duration,
    /// Longest time between an answer and the next request.
    pub idle: Duration,
    /// A deadline is extended by one second for each this many bytes transferred.
    pub bytes_per_second: u64,
    /// Most bytes of all buffered requests, and of all buffered answers.
    pub buffered_bytes: usize,
}

/// The application protocol.
pub trait Protocol {
    /// Takes a complete request out of `received` and executes it. `ended` is set when the client
    /// sends no more.
    fn read(&mut self, received: &mut Vec<u8>, ended: bool) -> Next;

    /// The answer to a client whose request is abandoned.
    fn refuse(&mut self, refusal: Refusal) -> Vec<u8>;

    /// The next event of a topic, for a client that follows it.
    fn event(&mut self, _topic: &str) -> Vec<u8> {
        Vec::new()
    }
}

/// The result of reading received bytes.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    /// The request is not complete.
    More,
    /// The answer to a request.
    Answer(Vec<u8>, After),
    /// The beginning of an answer without end: events of a topic.
    Follow(Vec<u8>, String),
}

/// What follows an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    /// The client may send another request.
    KeepOpen,
    /// The server closes the connection.
    Close,
    /// Events of the connection's topic.
    Events,
}

/// Why a request is abandoned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The request was not complete in time.
    Late,
    /// Too many bytes of requests are buffered, or too many clients follow a topic.
    Full,
}

/// A listening socket.
pub trait Listener: AsFd {
    /// A connection.
    type Stream: Read + Write + AsFd;

    /// The next client, as a non-blocking socket.
    fn next(&self) -> io::Result<Self::Stream>;

    /// Shuts down the sending side of the connection.
    fn end(stream: &mut Self::Stream);
}

impl Listener for TcpListener {
    type Stream = TcpStream;

    fn next(&self) -> io::Result<TcpStream> {
        let (stream, _) = self.accept()?;
        stream.set_nonblocking(true)?;
        Ok(stream)
    }

    fn end(stream: &mut TcpStream) {
        // Ignore the error if the client is gone.
        let _ = stream.shutdown(Shutdown::Write);
    }
}

impl Listener for UnixListener {
    type Stream = UnixStream;

    fn next(&self) -> io::Result<UnixStream> {
        let (stream, _) = self.accept()?;
        stream.set_nonblocking(true)?;
        Ok(stream)
    }

    fn end(stream: &mut UnixStream) {
        // Ignore the error if the client is gone.
        let _ = stream.shutdown(Shutdown::Write);
    }
}

/// A listening socket and its clients.
pub struct Server<L: Listener> {
    listener: L,
    limits: Limits,
    clock: Clock,
    /// Time spent on requests.
    busy_ns: u64,
    /// No client is accepted before this time.
    paused_until_ns: u64,
    /// The number of the latest event.
    event: u64,
    connections: Vec<Connection<L::Stream>>,
    chunk: Vec<u8>,
}

struct Connection<S> {
    stream: S,
    state: State,
    /// When the state began.
    since_ns: u64,
    received: Vec<u8>,
    /// The client sends no more.
    ended: bool,
    /// Whether it got all its answers of the last turn; the buffer may have further requests.
    waits: bool,
    answer: Vec<u8>,
    sent: usize,
    after: After,
    topic: String,
    /// The number of the latest event that it got.
    event: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Between an answer and the first byte of the next request.
    Idle,
    Receiving,
    Sending,
    /// Between two events of a topic.
    Following,
    /// The last answer was sent; the client has not closed yet.
    Closing,
    /// To be removed.
    Closed,
}

impl<L: Listener> Server<L> {
    /// A server of `listener`, which must be non-blocking.
    pub fn new(listener: L, limits: Limits) -> Self {
        Self {
            listener,
            limits,
            clock: Clock::start(),
            busy_ns: 0,
            paused_until_ns: 0,
            event: 0,
            connections: Vec::new(),
            chunk: vec![0; CHUNK],
        }
    }

    /// Waits until a client can be served, `wake` is readable or closed, or `most` is over; then
    /// serves the clients that are ready. Returns whether `wake` ended the wait.
    pub fn turn(
        &mut self,
        most: Duration,
        wake: Option<BorrowedFd<'_>>,
        protocol: &mut impl Protocol,
    ) -> bool {
        let now_ns = self.now_ns();
        let ready = self.wait(most, wake, now_ns);
        for (at, flags) in ready.clients.into_iter().enumerate() {
            if !flags.is_empty() || self.connections[at].waits {
                self.serve(at, protocol);
            }
        }
        let now_ns = self.now_ns();
        for at in 0..self.connections.len() {
            let one = &self.connections[at];
            if !one.waits && self.limits.deadline_ns(one) <= now_ns {
                self.expire(at, protocol);
            }
        }
        self.connections.retain(|one| one.state != State::Closed);
        if ready.listener {
            self.accept();
        }
        ready.wake
    }

    /// Sends the next event to clients that follow a topic and have read the one before, in turn, until this time is over.
    /// Returns whether all of them were reached.
    pub fn publish(&mut self, most: Duration, protocol: &mut impl Protocol) -> bool {
        let end_ns = self.clock.now_ns().saturating_add(most.as_nanos() as u64);
        let waiting = |server: &Self| {
            let waits = |one: &Connection<L::Stream>| {
                one.state == State::Following && one.event < server.event
            };
            server.connections.iter().position(waits)
        };
        if waiting(self).is_none() {
            self.event += 1;
        }
        while let Some(at) = waiting(self) {
            let before_ns = self.clock.now_ns();
            if before_ns >= end_ns {
                return false;
            }
            let event = protocol.event(&self.connections[at].topic);
            self.busy_ns += self.clock.now_ns() - before_ns;
            let now_ns = self.now_ns();
            self.connections[at].event = self.event;
            self.connections[at].begin_to_send(event, After::Events, now_ns);
            self.send(at);
        }
        true
    }

    /// The time that counts towards deadlines: without the time spent on requests.
    fn now_ns(&self) -> u64 {
        self.clock.now_ns().saturating_sub(self.busy_ns)
    }

    fn wait(&self, most: Duration, wake: Option<BorrowedFd<'_>>, now_ns: u64) -> Ready {
        let paused = now_ns < self.paused_until_ns;
        let deadlines = self.connections.iter().map(|one| self.limits.deadline_ns(one));
        let until_ns = deadlines.chain(paused.then_some(self.paused_until_ns)).min();
        let waits = self.connections.iter().any(|one| one.waits);
        let most_ns = if waits { 0 } else { most.as_nanos() as u64 };
        // A millisecond more, because a wait until the deadline could end just before it.
        let wait_ns = until_ns.map_or(most_ns, |until_ns| {
            most_ns.min(until_ns.saturating_sub(now_ns).saturating_add(1_000_000))
        });
        let flags = |one: &Connection<L::Stream>| match one.state {
            State::Sending => PollFlags::OUT,
            State::Idle | State::Receiving | State::Following | State::Closing | State::Closed => {
                PollFlags::IN
            }
        };
        let mut polled: Vec<PollFd<'_>> =
            self.connections.iter().map(|one| PollFd::new(&one.stream, flags(one))).collect();
        let clients = polled.len();
        polled.push(PollFd::new(
            &self.listener,
            if paused { PollFlags::empty() } else { PollFlags::IN },
        ));
        if let Some(wake) = wake {
            polled.push(PollFd::from_borrowed_fd(wake, PollFlags::IN));
        }
        let timeout = Timespec::try_from(Duration::from_nanos(wait_ns));
        let timeout = timeout.unwrap_or(Timespec { tv_sec: 1, tv_nsec: 0 });
        match poll(&mut polled, Some(&timeout)) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ready::default(),
            Err(_) => {
                // The kernel is out of memory; the pause prevents spinning.
                std::thread::sleep(PAUSE);
                return Ready::default();
            }
        }
        let events: Vec<PollFlags> = polled.iter().map(PollFd::revents).collect();
        let is_set = |at: usize| events.get(at).is_some_and(|flags| !flags.is_empty());
        Ready {
            listener: is_set(clients) && !paused,
            wake: is_set(clients + 1),
            clients: events[..clients].to_vec(),
        }
    }

    /// Reads from a client, executes its requests and sends answers, until it would block or the client had its share of
    /// the turn.
    fn serve(&mut self, at: usize, protocol: &mut impl Protocol) {
        // What the buffer has comes first.
        let mut may_read = !std::mem::take(&mut self.connections[at].waits);
        let mut answers = 0;
        loop {
            match self.connections[at].state {
                State::Idle | State::Receiving => {
                    if std::mem::take(&mut may_read) && !self.receive(at, protocol) {
                        return;
                    }
                    if self.connections[at].state == State::Sending {
                        continue;
                    }
                    if answers == self.limits.requests {
                        let one = &mut self.connections[at];
                        one.waits = !one.received.is_empty() || one.ended;
                        return;
                    }
                    if !self.answer(at, protocol) {
                        return;
                    }
                    answers += 1;
                }
                State::Sending => {
                    if !self.send(at) {
                        return;
                    }
                    // Further bytes are read in the next turn.
                    may_read = false;
                }
                State::Following | State::Closing => return self.discard(at),
                State::Closed => return,
            }
        }
    }

    /// Reads once. Returns false if the connection is over.
    fn receive(&mut self, at: usize, protocol: &mut impl Protocol) -> bool {
        let buffered: usize = self.connections.iter().map(|one| one.received.len()).sum();
        let now_ns = self.now_ns();
        let one = &mut self.connections[at];
        if buffered > self.limits.buffered_bytes && one.received.len() > CHUNK {
            one.begin_to_send(protocol.refuse(Refusal::Full), After::Close, now_ns);
            return true;
        }
        match one.stream.read(&mut self.chunk) {
            Ok(0) => one.ended = true,
            Ok(length) => {
                if one.state == State::Idle {
                    one.change(State::Receiving, now_ns);
                }
                one.received.extend_from_slice(&self.chunk[..length]);
            }
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(_) => {
                one.state = State::Closed;
                return false;
            }
        }
        true
    }

    /// Executes a request if one is complete. Returns whether there is an answer to send.
    fn answer(&mut self, at: usize, protocol: &mut impl Protocol) -> bool {
        let before_ns = self.clock.now_ns();
        let one = &mut self.connections[at];
        let next = protocol.read(&mut one.received, one.ended);
        self.busy_ns += self.clock.now_ns() - before_ns;
        let now_ns = self.now_ns();
        let one = &mut self.connections[at];
        match next {
            Next::More => {
                if one.ended {
                    one.state = State::Closed;
                }
                false
            }
            Next::Answer(answer, after) => {
                one.begin_to_send(answer, after, now_ns);
                self.drop_unread_answers(at);
                true
            }
            Next::Follow(head, topic) => {
                let followers = self.connections.iter().filter(|one| one.follows()).count();
                let one = &mut self.connections[at];
                if followers < self.limits.followers {
                    one.topic = topic;
                    one.begin_to_send(head, After::Events, now_ns);
                } else {
                    one.begin_to_send(protocol.refuse(Refusal::Full), After::Close, now_ns);
                }
                true
            }
        }
    }

    /// Bounds the buffered answers: closes the connections whose answers have been unread longest.
    fn drop_unread_answers(&mut self, newest: usize) {
        let mut buffered: usize = self.connections.iter().map(|one| one.answer.len()).sum();
        while buffered > self.limits.buffered_bytes {
            let others = self.connections.iter_mut().enumerate();
            let sending = others.filter(|(at, one)| *at != newest && one.state == State::Sending);
            let Some((_, oldest)) = sending.min_by_key(|(_, one)| one.since_ns) else { return };
            buffered -= oldest.answer.len();
            oldest.close();
        }
    }

    /// Sends until it would block. Returns whether the whole answer was sent and another request
    /// may follow.
    fn send(&mut self, at: usize) -> bool {
        let now_ns = self.now_ns();
        let one = &mut self.connections[at];
        while one.sent < one.answer.len() {
            match one.stream.write(&one.answer[one.sent..]) {
                Ok(0) => return one.close(),
                Ok(sent) => one.sent += sent,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
                Err(_) => return one.close(),
            }
        }
        match one.stream.flush() {
            Ok(()) => {}
            // The next turn flushes the rest.
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) =>
            {
                return false;
            }
            Err(_) => return one.close(),
        }
        // Free the memory: the next answer may be short.
        (one.answer, one.sent) = (Vec::new(), 0);
        match one.after {
            After::KeepOpen if one.received.is_empty() => one.change(State::Idle, now_ns),
            After::KeepOpen => one.change(State::Receiving, now_ns),
            After::Events => {
                one.change(State::Following, now_ns);
                return false;
            }
            After::Close => {
                L::end(&mut one.stream);
                one.received = Vec::new();
                one.change(State::Closing, now_ns);
                return false;
            }
        }
        true
    }

    /// Discards bytes that a client sends after the last answer, or while it follows a topic. Closing at once could lose the
    /// answer: the kernel resets a connection with unread bytes.
    fn discard(&mut self, at: usize) {
        let one = &mut self.connections[at];
        match one.stream.read(&mut self.chunk) {
            Ok(1..) => {}
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Ok(0) | Err(_) => one.state = State::Closed,
        }
    }

    /// Refuses a partial request or closes the connection, after the deadline of its state.
    fn expire(&mut self, at: usize, protocol: &mut impl Protocol) {
        let now_ns = self.now_ns();
        let one = &mut self.connections[at];
        if one.state == State::Receiving && !one.received.is_empty() {
            one.received = Vec::new();
            one.begin_to_send(protocol.refuse(Refusal::Late), After::Close, now_ns);
            self.send(at);
        } else {
            one.state = State::Closed;
        }
    }

    /// Accepts new clients, at most [`Limits::connections`] per turn, so that others are served.
    fn accept(&mut self) {
        for _ in 0..self.limits.connections {
            match self.listener.next() {
                Ok(stream) => {
                    if self.connections.len() >= self.limits.connections {
                        self.evict();
                    }
                    let since_ns = self.now_ns();
                    self.connections.push(Connection {
                        stream,
                        state: State::Receiving,
                        since_ns,
                        received: Vec::new(),
                        ended: false,
                        waits: false,
                        answer: Vec::new(),
                        sent: 0,
                        after: After::Close,
                        topic: String::new(),
                        event: 0,
                    });
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error)
                    if matches!(
                        error.kind(),
                        ErrorKind::Interrupted | ErrorKind::ConnectionAborted
                    ) => {}
                Err(_) => {
                    // Out of file descriptors: the next attempt reuses that of an evicted client.
                    self.evict();
                    self.paused_until_ns = self.now_ns() + PAUSE.as_nanos() as u64;
                    return;
                }
            }
        }
    }

    /// Closes a connection: one that was answered, else the one idle or receiving longest, else the
    /// one sending or following longest.
    fn evict(&mut self) {
        let rank = |one: &Connection<L::Stream>| match one.state {
            State::Closed | State::Closing => 0,
            State::Idle | State::Receiving => 1,
            State::Sending | State::Following => 2,
        };
        let places = self.connections.iter().enumerate();
        let oldest = places.min_by_key(|(_, one)| (rank(one), one.since_ns));
        if let Some((oldest, _)) = oldest {
            self.connections.swap_remove(oldest);
        }
    }
}

/// The events that ended a wait.
#[derive(Default)]
struct Ready {
    clients: Vec<PollFlags>,
    listener: bool,
    wake: bool,
}

impl Limits {
    /// Deadline of a connection's current state.
    fn deadline_ns<S>(&self, one: &Connection<S>) -> u64 {
        let (time, bytes) = match one.state {
            State::Idle => (self.idle, 0),
            State::Receiving => (self.request, one.received.len()),
            State::Sending => (self.response, one.sent),
            State::Closing => (CLOSING, 0),
            State::Following | State::Closed => return u64::MAX,
        };
        let more_ns = u128::from(bytes as u64) * 1_000_000_000 / u128::from(self.bytes_per_second);
        let time_ns = (time.as_nanos() + more_ns).min(u64::MAX.into()) as u64;
        one.since_ns.saturating_add(time_ns)
    }
}

impl<S> Connection<S> {
    fn change(&mut self, state: State, now_ns: u64) {
        self.state = state;
        self.since_ns = now_ns;
    }

    fn begin_to_send(&mut self, answer: Vec<u8>, after: After, now_ns: u64) {
        self.answer = answer;
        self.sent = 0;
        self.after = after;
        self.change(State::Sending, now_ns);
    }

    /// Whether it follows a topic.
    fn follows(&self) -> bool {
        self.after == After::Events && self.state != State::Closed
    }

    /// Closes the connection; returns false, the result of the callers.
    fn close(&mut self) -> bool {
        self.state = State::Closed;
        self.answer = Vec::new();
        false
    }
}

#[cfg(test)]
mod tests;
