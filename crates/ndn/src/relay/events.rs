//! Events of faces as a stream of notifications, as in NFD: `/localhost/nfd/faces/events/seq=N`.
//!
//! ```text
//!  event ─▶ kept: the last 256 ─▶ Data, for requests of a number
//!    └────▶ waiting: requests of the next event, or of a number that does not exist yet
//! ```
//!
//! A request of the prefix is answered with the newest event; with MustBeFresh only within a second
//! of it, otherwise it waits.
//!
//! Invariants: both lists are bounded. A request waits at most for its lifetime.

use std::collections::{HashMap, VecDeque};

use crate::faces::{Face, Faces};
use crate::forwarder::FaceUse;
use crate::packets::management::{FaceEvent, FaceEventKind};
use crate::packets::{Headers, Interest, Name, NameBuf, NewData, PitToken};

use crate::relay::status::status_of;

/// Maximum number of events that are kept.
const KEPT_MAX: usize = 256;

/// Maximum number of requests that wait: in total, and of one face.
const WAITING_MAX: usize = 256;
const WAITING_PER_FACE: usize = 8;

/// The longest wait, whatever lifetime a request has, in milliseconds.
const LIFETIME_MAX_MS: u64 = 60_000;

/// Time for which an event is fresh, in milliseconds.
const FRESHNESS_MS: u64 = 1_000;

/// The events, and the requests that wait for them.
#[derive(Debug, Default)]
pub(crate) struct FaceEvents {
    /// The number of the next event.
    next: u64,
    /// The last events and their times, the newest last.
    kept: VecDeque<(u64, FaceEvent)>,
    waiting: Vec<Waiting>,
    /// All faces by number, as they were described last: a closed face has no properties.
    faces: HashMap<u32, FaceEvent>,
    /// Number of requests that were answered, and of those that ended without an answer.
    pub(crate) answered: u64,
    pub(crate) unanswered: u64,
}

/// A request that waits for an event.
#[derive(Debug)]
struct Waiting {
    face: u32,
    token: PitToken,
    /// The number of the event; `None`: the next one.
    number: Option<u64>,
    ends_ns: u64,
}

/// The response to a request.
#[derive(Debug, PartialEq, Eq)]
enum Response {
    /// A Data.
    Data(Vec<u8>),
    Waits,
    /// There is none, because the event is no longer kept or too many requests wait.
    None,
}

impl FaceEvents {
    /// Whether a name is the prefix of the notifications or under it.
    pub(crate) fn has(name: &Name<'_>) -> bool {
        let prefix: NameBuf = FaceEvent::PREFIX.parse().unwrap_or_default();
        prefix.as_name().is_prefix_of(name)
    }

    /// Number of requests that wait.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Handles a request. A request that waits replaces an equal one of the same face.
    fn request(
        &mut self,
        now_ns: u64,
        face: u32,
        token: PitToken,
        interest: &Interest<'_>,
    ) -> Response {
        let number = FaceEvent::number(&interest.name);
        let is_prefix = interest.name.as_bytes().len() == prefix_len();
        let newest = match number {
            Some(number) if FaceEvent::name(number).as_name() == interest.name => number,
            None if is_prefix && interest.can_be_prefix => self.next.wrapping_sub(1),
            _ => return Response::None,
        };
        let first = self.next - self.kept.len() as u64;
        let kept = newest.checked_sub(first).and_then(|at| self.kept.get(at as usize));
        if let Some((at_ns, event)) = kept {
            let is_fresh = now_ns.saturating_sub(*at_ns) <= FRESHNESS_MS * 1_000_000;
            if number.is_some() || is_fresh || !interest.must_be_fresh {
                return Response::Data(to_data(newest, event));
            }
        }
        if number.is_some_and(|number| number < self.next) {
            return Response::None;
        }
        self.waiting.retain(|one| one.ends_ns > now_ns && (one.face, one.number) != (face, number));
        let of_face = self.waiting.iter().filter(|one| one.face == face).count();
        if self.waiting.len() >= WAITING_MAX || of_face >= WAITING_PER_FACE {
            return Response::None;
        }
        let lifetime_ns = interest.lifetime_ms.min(LIFETIME_MAX_MS) * 1_000_000;
        let ends_ns = now_ns.saturating_add(lifetime_ns);
        self.waiting.push(Waiting { face, token, number, ends_ns });
        Response::Waits
    }

    /// Adds an event. Returns its Data and the requests that it answers: faces and tokens.
    fn add(&mut self, now_ns: u64, event: FaceEvent) -> (Vec<u8>, Vec<(u32, PitToken)>) {
        let number = self.next;
        self.next += 1;
        let mut answered = Vec::new();
        self.waiting.retain(|one| {
            let is_answered = one.number.is_none_or(|requested| requested == number);
            if is_answered && one.ends_ns > now_ns {
                answered.push((one.face, one.token));
            }
            !is_answered && one.ends_ns > now_ns
        });
        // Signing takes longer than all else: a Data is made only on request.
        let data = if answered.is_empty() { Vec::new() } else { to_data(number, &event) };
        if self.kept.len() == KEPT_MAX {
            self.kept.pop_front();
        }
        self.kept.push_back((now_ns, event));
        (data, answered)
    }

    /// Updates the description of a face.
    pub(crate) fn describe(&mut self, number: u32, face: &Face) {
        let status = status_of(number, face, FaceUse::default());
        let event = FaceEvent {
            kind: FaceEventKind::Created,
            face: status.face,
            uri: status.uri,
            local_uri: status.local_uri,
            scope: status.scope,
            persistency: status.persistency,
            link_type: status.link_type,
            flags: status.flags,
        };
        self.faces.insert(number, event);
    }

    /// Answers a request of a notification, or lets it wait for the event.
    pub(crate) fn take(
        &mut self,
        now_ns: u64,
        faces: &mut Faces,
        from: u32,
        headers: &Headers,
        interest: &Interest<'_>,
    ) {
        let waited = self.waiting();
        match self.request(now_ns, from, headers.token, interest) {
            Response::Data(data) => {
                self.answered += 1;
                let headers = Headers { token: headers.token, ..Headers::default() };
                faces.send(from, &headers, &data);
            }
            Response::Waits => self.count_ended(waited + 1),
            Response::None => {
                self.unanswered += 1;
                self.count_ended(waited);
            }
        }
    }

    /// Notifies of an event of a face, which exists unless it was closed.
    pub(crate) fn notify(
        &mut self,
        now_ns: u64,
        faces: &mut Faces,
        face: u32,
        kind: FaceEventKind,
    ) {
        if let Some(existing) = faces.get(face) {
            self.describe(face, existing);
        }
        let described = match kind {
            FaceEventKind::Destroyed => self.faces.remove(&face),
            _ => self.faces.get(&face).cloned(),
        };
        let Some(described) = described else { return };
        let waited = self.waiting();
        if kind == FaceEventKind::Destroyed {
            // Its number may be given to another face.
            self.waiting.retain(|one| one.face != face);
        }
        let (data, answered) = self.add(now_ns, FaceEvent { kind, ..described });
        self.answered += answered.len() as u64;
        self.count_ended(waited - answered.len());
        for (face, token) in answered {
            faces.send(face, &Headers { token, ..Headers::default() }, &data);
        }
    }

    /// Counts requests that no longer wait and were not answered; `waited` did before.
    fn count_ended(&mut self, waited: usize) {
        self.unanswered += (waited - self.waiting()) as u64;
    }
}

fn prefix_len() -> usize {
    let prefix: NameBuf = FaceEvent::PREFIX.parse().unwrap_or_default();
    prefix.as_bytes().len()
}

fn to_data(number: u64, event: &FaceEvent) -> Vec<u8> {
    let (mut content, mut data) = (Vec::new(), Vec::new());
    event.write(&mut content);
    let name = FaceEvent::name(number);
    let freshness_ms = Some(FRESHNESS_MS);
    NewData { name: name.as_name(), freshness_ms, content: &content }.write(&mut data);
    data
}

#[cfg(test)]
mod tests {
    use crate::packets::{Data, NewInterest};

    use super::*;

    const MS: u64 = 1_000_000;

    fn event(face: u64) -> FaceEvent {
        FaceEvent {
            kind: FaceEventKind::Created,
            face,
            uri: format!("udp4://192.0.2.1:{face}"),
            local_uri: "udp4://0.0.0.0:6363".into(),
            scope: 0,
            persistency: 1,
            link_type: 0,
            flags: 0,
        }
    }

    /// Requests `name`; with `can_be_prefix` the newest, fresh.
    fn request(
        events: &mut FaceEvents,
        now_ns: u64,
        face: u32,
        name: &NameBuf,
        can_be_prefix: bool,
        lifetime_ms: u64,
    ) -> Response {
        let mut wire = Vec::new();
        let new = NewInterest::new(name.as_name(), 1);
        let must_be_fresh = can_be_prefix;
        let lifetime_ms = Some(lifetime_ms);
        NewInterest { can_be_prefix, must_be_fresh, lifetime_ms, ..new }.write(&mut wire);
        let interest = Interest::read(&wire).unwrap();
        events.request(now_ns, face, PitToken::default(), &interest)
    }

    fn numbers(response: &Response) -> Option<(u64, u64)> {
        let Response::Data(wire) = response else { return None };
        let data = Data::read(wire).unwrap();
        let event = FaceEvent::read(data.content).unwrap();
        Some((FaceEvent::number(&data.name).unwrap(), event.face))
    }

    #[test]
    fn a_request_is_answered_with_a_fresh_event_or_waits_for_the_next() {
        let mut events = FaceEvents::default();
        let prefix: NameBuf = FaceEvent::PREFIX.parse().unwrap();
        assert_eq!(request(&mut events, 0, 1, &prefix, true, 100), Response::Waits);
        // As a name of a Data, the prefix does not exist.
        assert_eq!(request(&mut events, 0, 1, &prefix, false, 100), Response::None);
        let (data, answered) = events.add(99 * MS, event(300));
        assert_eq!(answered, [(1, PitToken::default())]);
        assert_eq!(numbers(&Response::Data(data)), Some((0, 300)));
        let now = 1_099 * MS;
        assert_eq!(numbers(&request(&mut events, now, 2, &prefix, true, 5)), Some((0, 300)));
        assert_eq!(request(&mut events, now + 1, 2, &prefix, true, 5), Response::Waits);
        // Its lifetime has expired.
        assert_eq!(events.add(now + 6 * MS, event(301)).1, []);
        assert_eq!(events.waiting(), 0);
    }

    #[test]
    fn old_events_are_kept_and_future_ones_waited_for() {
        let mut events = FaceEvents::default();
        for face in 0..300 {
            events.add(0, event(face));
        }
        let now = 1 << 40;
        let mut number = |number| {
            let name = FaceEvent::name(number);
            request(&mut events, now, 1, &name, false, 1_000)
        };
        assert_eq!((number(0), number(43)), (Response::None, Response::None));
        assert_eq!(
            (numbers(&number(44)), numbers(&number(299))),
            (Some((44, 44)), Some((299, 299)))
        );
        assert_eq!((number(300), number(302)), (Response::Waits, Response::Waits));
        assert_eq!(events.add(now, event(300)).1.len(), 1);
        assert_eq!(events.add(now, event(301)).1.len(), 0);
        assert_eq!(events.add(now, event(302)).1.len(), 1);
        for wrong in ["seq=5/a", "a/seq=5", "a", "58=%00%05"] {
            let name: NameBuf = format!("{}/{wrong}", FaceEvent::PREFIX).parse().unwrap();
            assert_eq!(request(&mut events, now, 1, &name, true, 1_000), Response::None, "{wrong}");
        }
    }

    #[test]
    fn the_requests_that_wait_are_bounded() {
        let mut events = FaceEvents::default();
        let mut waits = 0;
        for face in 0..100 {
            for number in 0..10 {
                let name = FaceEvent::name(number);
                let response = request(&mut events, 0, face, &name, false, 1_000);
                waits += usize::from(response == Response::Waits);
            }
        }
        assert_eq!((waits, events.waiting()), (WAITING_MAX, WAITING_MAX));
        assert_eq!(events.waiting.iter().filter(|one| one.face == 7).count(), WAITING_PER_FACE);
        // An equal request of the same face replaces the earlier one.
        let again = request(&mut events, 0, 7, &FaceEvent::name(3), false, 1_000);
        assert_eq!((again, events.waiting()), (Response::Waits, WAITING_MAX));
        // Expired ones make room.
        let late = request(&mut events, 1_000 * MS, 99, &FaceEvent::name(3), false, u64::MAX);
        assert_eq!((late, events.waiting()), (Response::Waits, 1));
        assert_eq!(events.waiting[0].ends_ns, (1_000 + LIFETIME_MAX_MS) * MS);
    }
}
