//! Joins messages to one event each, for formats with one line an exchange: a request of HTTP and its response, the
//! messages of a TLS handshake, a question of DNS and its answer.
//!
//! ```text
//! client    | request 1 | request 2 |                              key: the client's direction
//! server                    | response 1 | … body | response 2 |
//! events                                 ▲ if its length is known, otherwise at the end of the body
//!
//! client    | hello |                                  | question 7 | question 8 |
//! server               | hello | certificate |                          | answer 8 | answer 7 |
//! events                           ▲ or at the hello, if nothing follows            ▲          ▲
//! ```
//!
//! A request is an event of its own if no response comes within [`LIFETIME_NS`], by the times of both packets, or before
//! the end; so is a response without a request.
//!
//! Bounds: [`parts::REQUESTS_MAX`] requests of a connection, and the memory given to [`Exchanges::new`]. What exceeds them is an
//! event of its own, too early, and counted.
//!
//! Invariant: an event depends on the packets of its connection and on the places of the marks alone, as long as nothing
//! exceeds a bound.

mod parts;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::hash::RandomState;

use parts::{Part, Protocol, Role};
use ringtap_base::Aged;
use ringtap_flow::{Event, FlowKey, Kind, Values};

/// Longest time from a request to its response, nanoseconds.
const LIFETIME_NS: u64 = 60_000_000_000;
/// Most connections.
const MOST: usize = 1 << 18;

/// A message that waits for the rest of its exchange.
struct Message {
    time_ns: u64,
    ingress: u32,
    values: Values,
}

impl Message {
    /// Whether another packet, of this time, may belong to the same exchange.
    fn lives(&self, time_ns: u64) -> bool {
        self.time_ns.abs_diff(time_ns) <= LIFETIME_NS
    }
}

/// What a connection waits for.
#[derive(Default)]
struct Connection {
    /// Requests without a response, the oldest first.
    requests: VecDeque<Message>,
    /// The latest exchange with a response, if more of it may come.
    answered: Option<Message>,
}

impl Connection {
    fn bytes(&self) -> usize {
        let messages = self.requests.iter().chain(&self.answered);
        let values: usize = messages.map(|message| message.values.capacity()).sum();
        values + self.requests.capacity() * size_of::<Message>()
    }

    fn is_empty(&self) -> bool {
        self.requests.is_empty() && self.answered.is_none()
    }

    fn messages(self) -> impl Iterator<Item = Message> {
        self.answered.into_iter().chain(self.requests)
    }
}

/// The key of the client's direction. A connection may have several protocols, such as HTTP and TLS behind a proxy.
type Key = (FlowKey, Protocol);

type Table = Aged<Key, Connection, RandomState>;

/// Receives the joined events.
type Out<'a> = &'a mut dyn FnMut(&Event);

/// The exchanges of a worker that are not complete.
pub(crate) struct Exchanges {
    all: Table,
    /// Bytes of the messages.
    bytes: usize,
    bytes_max: usize,
    /// The mark of the latest turn.
    turned_ns: u64,
    /// Messages that were not joined for lack of room.
    without_room: u64,
    event: Event,
}

impl Exchanges {
    /// No exchanges; all together take at most `bytes_max` bytes.
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self {
            all: Aged::new((bytes_max / Table::ENTRY_BYTES).min(MOST), RandomState::new()),
            bytes: 0,
            bytes_max,
            turned_ns: 0,
            without_room: 0,
            event: Event::default(),
        }
    }

    /// Messages that were not joined for lack of room.
    pub(crate) fn without_room(&self) -> u64 {
        self.without_room
    }

    /// Takes a message. A response to a known request of HTTP gets its response time. Calls `out` with the exchanges that
    /// end by this.
    pub(crate) fn add(&mut self, event: &mut Event, out: Out<'_>) {
        let Some(Part { protocol, role, from_client }) = Part::of(&event.values) else { return };
        let side = if from_client { event.key } else { event.key.reversed() };
        let key = (side, protocol);
        match role {
            Role::Request => self.request(key, event, out),
            Role::Response => self.response(key, event, out),
            Role::Rest => self.rest(key, event, out),
            Role::RequestLength => self.request_length(&key, event),
            Role::Alone => {
                let values = protocol.joined(&event.values);
                self.pass(
                    &key,
                    Message { values, time_ns: event.time_ns, ingress: event.ingress },
                    out,
                );
            }
        }
    }

    fn request(&mut self, key: Key, event: &Event, out: Out<'_>) {
        let mut own = self.take(&key);
        self.expire(&key, &mut own, event.time_ns, out);
        let protocol = key.1;
        let again = protocol == Protocol::Tls
            && own
                .requests
                .back()
                .is_some_and(|last| parts::is_same_hello(&last.values, &event.values));
        if !again {
            let full = own.requests.len() >= protocol.requests_max();
            if full && let Some(oldest) = own.requests.pop_front() {
                self.without_room += u64::from(protocol != Protocol::Tls);
                self.pass(&key, oldest, out);
            }
            let Event { time_ns, ingress, .. } = *event;
            let values = protocol.joined(&event.values);
            own.requests.push_back(Message { time_ns, ingress, values });
        }
        self.put(key, own, out);
    }

    fn response(&mut self, key: Key, event: &mut Event, out: Out<'_>) {
        let mut own = self.take(&key);
        self.expire(&key, &mut own, event.time_ns, out);
        if let Some(earlier) = own.answered.take() {
            self.pass(&key, earlier, out);
        }
        let protocol = key.1;
        let at = own
            .requests
            .iter()
            .position(|request| protocol.answers(&event.values, &request.values));
        let request = at.and_then(|at| own.requests.remove(at));
        let asked_ns = request.as_ref().map(|request| request.time_ns);
        let Event { time_ns, ingress, .. } = *event;
        let mut answered = match request {
            Some(mut request) => {
                protocol.add_response(&mut request.values, &event.values);
                request
            }
            None => Message { time_ns, ingress, values: protocol.joined(&event.values) },
        };
        if protocol == Protocol::Http {
            (answered.time_ns, answered.ingress) = (time_ns, ingress);
            // The difference of both times as they are written.
            if let Some(time_us) =
                asked_ns.and_then(|asked_ns| (time_ns / 1_000).checked_sub(asked_ns / 1_000))
            {
                let digits = time_us.to_string();
                answered.values.push(Kind::HttpResponseTime, digits.as_bytes());
                event.values.push(Kind::HttpResponseTime, digits.as_bytes());
            }
        }
        if protocol.is_complete(&answered.values) {
            self.pass(&key, answered, out);
        } else {
            own.answered = Some(answered);
        }
        self.put(key, own, out);
    }

    /// What follows a response, and ends the exchange.
    fn rest(&mut self, key: Key, event: &Event, out: Out<'_>) {
        let mut own = self.take(&key);
        // A handshake may end without a server's hello.
        let refused = || own.requests.pop_front().filter(|_| key.1 == Protocol::Tls);
        if let Some(mut answered) = own.answered.take().or_else(refused) {
            parts::push_rest(&mut answered.values, &event.values);
            self.pass(&key, answered, out);
        } else if key.1 == Protocol::Tls {
            let Event { time_ns, ingress, .. } = *event;
            let values = key.1.joined(&event.values);
            self.pass(&key, Message { time_ns, ingress, values }, out);
        }
        self.put(key, own, out);
    }

    /// The body of a request ended.
    fn request_length(&mut self, key: &Key, event: &Event) {
        let Some(own) = self.all.get_mut(key) else { return };
        let Some(request) = own.requests.back_mut() else { return };
        let before = request.values.capacity();
        if request.values.first(Kind::HttpRequestLength).is_none() {
            parts::push_rest(&mut request.values, &event.values);
        }
        self.bytes = self.bytes - before + request.values.capacity();
    }

    /// Ends what is too old for a packet of this time.
    fn expire(&mut self, key: &Key, own: &mut Connection, time_ns: u64, out: Out<'_>) {
        while let Some(old) = own.requests.pop_front_if(|request| !request.lives(time_ns)) {
            self.pass(key, old, out);
        }
    }

    /// Takes a connection out of the table.
    fn take(&mut self, key: &Key) -> Connection {
        let own = self.all.remove(key).unwrap_or_default();
        self.bytes -= own.bytes();
        own
    }

    /// Puts a connection into the table if it waits for something.
    fn put(&mut self, key: Key, own: Connection, out: Out<'_>) {
        if own.is_empty() {
            return;
        }
        self.bytes += own.bytes();
        let (_, evicted) = self.all.insert(key, own);
        if let Some((key, own)) = evicted {
            self.evict(&key, own, out);
        }
        while self.bytes + self.all.len() * Table::ENTRY_BYTES > self.bytes_max
            && let Some((key, own)) = self.all.pop_oldest()
        {
            self.evict(&key, own, out);
        }
    }

    fn evict(&mut self, key: &Key, own: Connection, out: Out<'_>) {
        self.bytes -= own.bytes();
        for message in own.messages() {
            self.without_room += 1;
            self.pass(key, message, out);
        }
    }

    /// Passes a message, joined or not.
    fn pass(&mut self, key: &Key, message: Message, out: Out<'_>) {
        let Message { time_ns, ingress, values } = message;
        self.event = Event { key: key.0, time_ns, ingress, values };
        out(&self.event);
    }

    /// A mark at this time: what has waited for longer than the lifetime, by marks, ends.
    pub(crate) fn on_mark(&mut self, time_ns: u64, out: Out<'_>) {
        if time_ns.abs_diff(self.turned_ns) < LIFETIME_NS {
            return;
        }
        self.turned_ns = time_ns;
        self.all.turn();
        while let Some((key, own)) = self.all.pop_old() {
            self.end_of(&key, own, out);
        }
    }

    /// Ends all exchanges.
    pub(crate) fn end(&mut self, out: Out<'_>) {
        while let Some((key, own)) = self.all.pop_oldest() {
            self.end_of(&key, own, out);
        }
    }

    fn end_of(&mut self, key: &Key, own: Connection, out: Out<'_>) {
        self.bytes -= own.bytes();
        own.messages().for_each(|message| self.pass(key, message, out));
    }
}
