//! A linearizability checker for recorded histories of concurrent runs.
//!
//! ```text
//! packet 0  ├──────────┤                    ├ invoked: dispatched    ┤ returned: its verdict is final
//! packet 1     ├────┤
//! packet 2             ├─────────┤          0 returns before 2 is invoked; 1 may precede or follow 0
//! ```
//!
//! A history is linearizable (Herlihy and Wing, 1990) if all packets can be put in one order that
//! yields every verdict, and in which a packet that returned before another was invoked precedes
//! it.
//!
//! The search is that of Wing and Gong with Lowe's memoization of visited states. It also uses that
//! data packets change no state: a data packet that may come next, and whose verdict is right in
//! the current state, is placed at once, because moving it here from a later place of a valid order
//! keeps the order valid. So the search branches only on the order of concurrent control packets,
//! and tries the order of dispatch first. Among these it branches only on packets that depend,
//! directly or through others, on the packet that returns first: until that packet is placed, no
//! further packet becomes a candidate, so the others can be placed later.
//!
//! An error usually concerns one pair of addresses, while the orders of all packets are too many to
//! enumerate. So each pair of addresses is checked first, with its data packets and the control
//! packets that affect them: if these have no valid order, the whole history has none. If every
//! pair has one, the whole history is searched.

use std::collections::{BTreeMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::filter::accepting::Accepting;
use crate::filter::packet::{Address, Control, Packet};
use crate::filter::permissions::Permissions;

/// Records when packets are dispatched and when their verdicts are final, by a shared logical clock
/// that counts these events.
#[derive(Debug)]
pub struct Recorder {
    clock: AtomicU64,
    /// Times of invocation and return, by packet number; 0: not recorded.
    moments: Box<[[AtomicU64; 2]]>,
}

impl Recorder {
    /// A recorder of the first `packets` packets; later ones are not recorded.
    pub fn new(packets: usize) -> Self {
        let moments = (0..packets).map(|_| Default::default()).collect();
        Self { clock: AtomicU64::new(1), moments }
    }

    pub(crate) fn invoked(&self, number: u64) {
        self.note(number, 0);
    }

    pub(crate) fn returned(&self, number: u64) {
        self.note(number, 1);
    }

    fn note(&self, number: u64, which: usize) {
        if let Some(moments) = self.moments.get(number as usize) {
            // AcqRel: the clock's read-modify-writes order all moments totally. Each one is an
            // Acquire and a Release of the clock, so a packet's effects lie between its two
            // moments.
            let now = self.clock.fetch_add(1, Ordering::AcqRel);
            moments[which].store(now, Ordering::Relaxed);
        }
    }

    /// The history of a finished run. `packets`: the packets of the run in order; `passed`: the
    /// verdict by packet number. Packets without a verdict are omitted.
    pub fn history(
        &self,
        packets: impl IntoIterator<Item = Packet>,
        passed: impl Fn(u64) -> bool,
    ) -> Vec<Event> {
        let moment = |moment: &AtomicU64| moment.load(Ordering::Relaxed);
        (0..)
            .zip(packets)
            .zip(&self.moments)
            .map(|((number, packet), [invoked, returned])| Event {
                packet,
                passed: passed(number),
                invoked: moment(invoked),
                returned: moment(returned),
            })
            .filter(|event| event.returned > 0)
            .collect()
    }
}

/// A packet of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The packet.
    pub packet: Packet,
    /// The verdict, if it is a data packet.
    pub passed: bool,
    /// Time of its dispatch.
    pub invoked: u64,
    /// Time when its verdict was final, or its change was made.
    pub returned: u64,
}

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// Handling the packets in this order (indices into the history) yields the same verdicts.
    Linearizable(Vec<usize>),
    /// No order yields all verdicts.
    Wrong {
        /// The packet at which the longest valid order ends.
        stuck: usize,
    },
    /// The budget was used up.
    Undecided,
}

/// Searches an order that yields the verdicts of a history, starting from `permissions`. Each
/// search ends undecided after having placed `budget` control packets.
pub fn check(history: &[Event], mut permissions: Permissions, budget: u64) -> Judgement {
    let pairs = pair_histories(history);
    let whole = (0..history.len()).collect();
    let mut judgement = Judgement::Undecided;
    for part in pairs.into_iter().chain([whole]) {
        judgement = Search::new(history, part, &mut permissions).run(budget);
        if let Judgement::Wrong { .. } = judgement {
            break;
        }
    }
    judgement
}

/// For each pair of addresses with data packets: the indices of these and of all control packets
/// that affect them.
fn pair_histories(history: &[Event]) -> Vec<Vec<usize>> {
    let mut pairs: BTreeMap<(Address, Address), Vec<usize>> = BTreeMap::new();
    let mut controls: BTreeMap<Address, Vec<usize>> = BTreeMap::new();
    for (at, event) in history.iter().enumerate() {
        match &event.packet {
            Packet::Data(data) => pairs.entry((data.source, data.destination)).or_default(),
            Packet::Control(control) => controls.entry(control.address).or_default(),
        }
        .push(at);
    }
    let none = Vec::new();
    for ((source, destination), part) in &mut pairs {
        let data = &history[part[0]].packet;
        let about = |address| controls.get(address).unwrap_or(&none);
        let others = if source == destination { &none } else { about(destination) };
        let affects = |at: &&usize| depend(data, &history[**at].packet);
        part.extend(about(source).iter().chain(others).filter(affects));
    }
    pairs.into_values().collect()
}

struct Search<'a> {
    /// Events in the order of their dispatch.
    events: Vec<Event>,
    /// Their indices in the history.
    places: Vec<usize>,
    placed: Vec<bool>,
    /// The first event that is not placed.
    first: usize,
    sequence: Vec<usize>,
    /// The most events placed so far, and the first one that was not placed then.
    furthest: (usize, usize),
    /// Restored when the search ends.
    permissions: &'a mut Permissions,
    choices: Vec<Choice>,
    /// Hash of the difference between `permissions` and the initial ones.
    state: u64,
    /// Visited states: `first`, the events placed beyond it, and `state`.
    tried: HashSet<(usize, Vec<usize>, u64)>,
}

/// A control packet that was placed: how to undo it, and the alternatives.
struct Choice {
    control: Control,
    before: (bool, Accepting),
    state: u64,
    placed: usize,
    others: Vec<usize>,
}

impl<'a> Search<'a> {
    /// A search over some packets of a history, given by their indices.
    fn new(history: &[Event], mut places: Vec<usize>, permissions: &'a mut Permissions) -> Self {
        places.sort_by_key(|&at| history[at].invoked);
        Self {
            events: places.iter().map(|&at| history[at]).collect(),
            placed: vec![false; places.len()],
            places,
            first: 0,
            sequence: Vec::new(),
            furthest: (0, 0),
            permissions,
            choices: Vec::new(),
            state: 0,
            tried: HashSet::new(),
        }
    }

    fn run(mut self, budget: u64) -> Judgement {
        let judgement = self.search(budget);
        while let Some(choice) = self.choices.pop() {
            self.undo(choice);
        }
        judgement
    }

    fn search(&mut self, mut budget: u64) -> Judgement {
        loop {
            self.place_data();
            if self.sequence.len() == self.events.len() {
                let order = self.sequence.iter().map(|&at| self.places[at]).collect();
                return Judgement::Linearizable(order);
            }
            if self.sequence.len() >= self.furthest.0 {
                self.furthest = (self.sequence.len(), self.first);
            }
            let beyond = (self.first..self.events.len())
                .filter(|&at| self.placed[at])
                .take(self.sequence.len() - self.first)
                .collect();
            let new = self.tried.insert((self.first, beyond, self.state));
            let mut others = if new { self.controls_next() } else { Vec::new() };
            while others.is_empty() {
                let Some(choice) = self.choices.pop() else {
                    return Judgement::Wrong { stuck: self.places[self.furthest.1] };
                };
                others = self.undo(choice);
            }
            if budget == 0 {
                return Judgement::Undecided;
            }
            budget -= 1;
            let choice = self.place_control(others);
            self.choices.push(choice);
        }
    }

    /// The unplaced events that may come next: no other unplaced event returned before they were
    /// invoked.
    fn next(&self) -> Vec<usize> {
        let mut horizon = u64::MAX;
        let mut next = Vec::new();
        for (at, event) in self.events.iter().enumerate().skip(self.first) {
            if event.invoked > horizon {
                break;
            }
            if !self.placed[at] {
                horizon = horizon.min(event.returned);
                next.push(at);
            }
        }
        next.retain(|&at| self.events[at].invoked < horizon);
        next
    }

    fn place_data(&mut self) {
        loop {
            let before = self.sequence.len();
            for at in self.next() {
                let Event { packet: Packet::Data(data), passed, .. } = &self.events[at] else {
                    continue;
                };
                if self.permissions.pass(data) == *passed {
                    self.place(at);
                }
            }
            if self.sequence.len() == before {
                return;
            }
        }
    }

    fn place(&mut self, at: usize) {
        self.placed[at] = true;
        self.sequence.push(at);
        while self.placed.get(self.first) == Some(&true) {
            self.first += 1;
        }
    }

    /// Control packets that may come next and depend on the event that returns first. The last one
    /// is to be tried first.
    fn controls_next(&self) -> Vec<usize> {
        let mut rest = self.next();
        let Some(first) = rest.iter().copied().min_by_key(|&at| self.events[at].returned) else {
            return Vec::new();
        };
        rest.retain(|&at| at != first);
        let mut related = vec![first];
        let mut looked_at = 0;
        while let Some(&at) = related.get(looked_at) {
            looked_at += 1;
            let packet = &self.events[at].packet;
            rest.retain(|&other| {
                let depends = depend(packet, &self.events[other].packet);
                if depends {
                    related.push(other);
                }
                !depends
            });
        }
        related.retain(|&at| matches!(self.events[at].packet, Packet::Control(_)));
        related.sort_unstable_by_key(|&at| std::cmp::Reverse(at));
        related
    }

    /// Places the last of `others`.
    fn place_control(&mut self, mut others: Vec<usize>) -> Choice {
        let at = others.pop().unwrap_or(self.first);
        let Packet::Control(control) = self.events[at].packet else {
            unreachable!("only control packets are chosen")
        };
        let before = self.permissions.of(control.address);
        self.permissions.change(&control);
        let after = self.permissions.of(control.address);
        let state = self.state;
        self.state ^= hash(control.address, &before) ^ hash(control.address, &after);
        let choice = Choice { control, before, state, placed: self.sequence.len(), others };
        self.place(at);
        choice
    }

    /// Undoes a control packet and all events placed after it; returns the untried alternatives.
    fn undo(&mut self, choice: Choice) -> Vec<usize> {
        for at in self.sequence.drain(choice.placed..) {
            self.placed[at] = false;
            self.first = self.first.min(at);
        }
        self.permissions.put(choice.control.address, choice.before);
        self.state = choice.state;
        choice.others
    }
}

/// Whether the order of two packets can affect a verdict or the permissions.
fn depend(one: &Packet, other: &Packet) -> bool {
    match (one, other) {
        (Packet::Data(_), Packet::Data(_)) => false,
        (Packet::Data(data), Packet::Control(control))
        | (Packet::Control(control), Packet::Data(data)) => {
            let accepts = (control.begin..control.end).contains(&data.source);
            data.source == control.address || data.destination == control.address && accepts
        }
        (Packet::Control(one), Packet::Control(other)) => {
            let overlap = one.begin < other.end && other.begin < one.end;
            let differ = overlap && one.accepting != other.accepting;
            one.address == other.address && (one.banned != other.banned || differ)
        }
    }
}

fn hash(address: Address, state: &(bool, Accepting)) -> u64 {
    // Not keyed, so that a check is deterministic.
    let mut hasher = DefaultHasher::new();
    (address, state).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::packet::Data;
    use ringtap_filter::Policy;

    fn control(accepting: bool, invoked: u64, returned: u64) -> Event {
        let control = Control { address: 1, banned: false, accepting, begin: 0, end: 4 };
        Event { packet: Packet::Control(control), passed: false, invoked, returned }
    }

    fn data(passed: bool, invoked: u64, returned: u64) -> Event {
        let data = Data {
            source: 2,
            destination: 1,
            sequence: 0,
            train_size: 1,
            tag: 0,
            iterations: 0,
            seed: 0,
        };
        Event { packet: Packet::Data(data), passed, invoked, returned }
    }

    fn judge(history: &[Event]) -> Judgement {
        check(history, Permissions::new(4, Policy::Deny), 1_000)
    }

    #[test]
    fn a_packet_may_precede_or_follow_a_concurrent_one() {
        for passed in [false, true] {
            let order = if passed { vec![0, 1] } else { vec![1, 0] };
            let history = [control(true, 1, 4), data(passed, 2, 3)];
            assert_eq!(judge(&history), Judgement::Linearizable(order));
        }
    }

    #[test]
    fn a_verdict_from_the_state_too_long_before_or_after_is_wrong() {
        // Allowed before it was invoked, and yet refused: the error of a stale cache.
        let history = [control(true, 1, 2), data(false, 3, 4)];
        assert_eq!(judge(&history), Judgement::Wrong { stuck: 1 });
        // Passed before it was allowed.
        let history = [data(true, 1, 2), control(true, 3, 4)];
        assert_eq!(judge(&history), Judgement::Wrong { stuck: 0 });
    }

    #[test]
    fn concurrent_changes_take_the_order_that_yields_all_verdicts() {
        let both = [control(true, 1, 4), control(false, 2, 3)];
        let judged = |then: &[Event]| judge(&[&both[..], then].concat());
        // The second one precedes the first.
        let order = vec![1, 0, 2, 3];
        let history = [data(true, 5, 6), data(true, 7, 8)];
        assert_eq!(judged(&history), Judgement::Linearizable(order));
        // Neither order yields a refusal and then an acceptance without a change in between.
        let history = [data(false, 5, 6), data(true, 7, 8)];
        assert!(matches!(judged(&history), Judgement::Wrong { .. }));
    }

    #[test]
    fn a_search_without_budget_is_undecided() {
        let history = [control(true, 1, 2), data(true, 3, 4)];
        let permissions = Permissions::new(4, Policy::Deny);
        assert_eq!(check(&history, permissions, 0), Judgement::Undecided);
    }
}
