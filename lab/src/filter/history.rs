//! Recorded histories of concurrent runs, and whether they are linearizable.
//!
//! ```text
//! packet 0  ├──────────┤                    ├ invoked: dispatched    ┤ returned: its verdict stands
//! packet 1     ├────┤
//! packet 2             ├─────────┤          0 is over before 2 begins; 1 may come before or after 0
//! ```
//!
//! A history is linearizable (Herlihy and Wing, 1990) if all packets can be put in one order that
//! explains every verdict and in which no packet stands before one that was over when it began.
//!
//! The search is that of Wing and Gong, with Lowe's memory of what was tried, and one thing more: data
//! packets change nothing. So a data packet that may come next, and whose verdict is right now, can
//! come now: moving it here from a later place of any order breaks nothing. Only the order of
//! concurrent control packets is guessed at, the order of their dispatch first. Of these, only such
//! as have to do, directly or through others, with the packet that is over first: the rest can wait, for
//! before that packet has its place nothing else joins those that may come next.
//!
//! A wrong history is wrong in some corner, while the orders of all else are beyond number. So each pair
//! of addresses is judged first, with the control packets that matter to it and nothing else: what cannot
//! be explained there cannot be explained at all. What can, in each corner, is then searched as a whole.

use std::collections::{BTreeMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::filter::accepting::Accepting;
use crate::filter::packet::{Address, Control, Packet};
use crate::filter::permissions::Permissions;

/// Notes when packets are dispatched and when their verdicts stand, by one shared clock that counts
/// these moments.
#[derive(Debug)]
pub struct Recorder {
    clock: AtomicU64,
    /// Invoked and returned, by the packet's number; 0 is never.
    moments: Box<[[AtomicU64; 2]]>,
}

impl Recorder {
    /// For the first so many packets; later ones are not recorded.
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
            // All moments have one total order, that of the clock's read-modify-writes. A packet's
            // effects lie between its two, for each is also an Acquire and a Release of the clock.
            let now = self.clock.fetch_add(1, Ordering::AcqRel);
            moments[which].store(now, Ordering::Relaxed);
        }
    }

    /// The history of a run that is over, and whose packets are known. Without packets that have no
    /// verdict.
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

/// What happened to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The packet.
    pub packet: Packet,
    /// Of data: its verdict.
    pub passed: bool,
    /// When it was dispatched.
    pub invoked: u64,
    /// When its verdict stood, or its change was made.
    pub returned: u64,
}

/// What a check found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// In this order (indices into the history) packets one after the other have the same verdicts.
    Linearizable(Vec<usize>),
    /// No order explains all verdicts.
    Wrong {
        /// The packet that the longest explanation ends before.
        stuck: usize,
    },
    /// So many orders were tried that the check gave up.
    Undecided,
}

/// Looks for an order that explains a history, beginning with `permissions`. Gives up on an order of all
/// after having placed `patience` control packets.
pub fn check(history: &[Event], mut permissions: Permissions, patience: u64) -> Judgement {
    let corners = corners(history);
    let whole = (0..history.len()).collect();
    let mut judgement = Judgement::Undecided;
    for part in corners.into_iter().chain([whole]) {
        judgement = Search::new(history, part, &mut permissions).run(patience);
        if let Judgement::Wrong { .. } = judgement {
            break;
        }
    }
    judgement
}

/// For each pair of addresses with data: where its data and all control that matters to it stand.
fn corners(history: &[Event]) -> Vec<Vec<usize>> {
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
        let matters = |at: &&usize| depend(data, &history[**at].packet);
        part.extend(about(source).iter().chain(others).filter(matters));
    }
    pairs.into_values().collect()
}

struct Search<'a> {
    /// In the order of their dispatch, with their places in the history.
    events: Vec<Event>,
    places: Vec<usize>,
    placed: Vec<bool>,
    /// All before this one are placed.
    first: usize,
    sequence: Vec<usize>,
    /// How many were placed at best, and the first that was not.
    furthest: (usize, usize),
    /// As they were, again, when the search is over.
    permissions: &'a mut Permissions,
    choices: Vec<Choice>,
    /// A hash of what `permissions` differ in from those at first.
    state: u64,
    /// What was tried in vain: what was placed beyond `first`, and `state`.
    tried: HashSet<(usize, Vec<usize>, u64)>,
}

/// A control packet about to be placed: what undoes it, and what else could be placed.
struct Choice {
    control: Control,
    before: (bool, Accepting),
    state: u64,
    placed: usize,
    others: Vec<usize>,
}

impl<'a> Search<'a> {
    /// Of some packets of a history, given by their places in it.
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

    fn run(mut self, patience: u64) -> Judgement {
        let judgement = self.search(patience);
        while let Some(choice) = self.choices.pop() {
            self.undo(choice);
        }
        judgement
    }

    fn search(&mut self, mut patience: u64) -> Judgement {
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
            if patience == 0 {
                return Judgement::Undecided;
            }
            patience -= 1;
            let choice = self.place_control(others);
            self.choices.push(choice);
        }
    }

    /// Those not placed that may come next: nothing else was over when they began.
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

    /// Control packets that may come next and have to do with the one that is over first; that to be
    /// tried first is the last.
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

    /// Takes back a control packet and all that was placed behind it; what is left to be tried.
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

/// Whether it may matter which of two packets comes first.
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
    // Without a key, so that a check takes the same steps every time.
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
    fn a_verdict_may_fall_before_or_after_what_is_concurrent() {
        for passed in [false, true] {
            let order = if passed { vec![0, 1] } else { vec![1, 0] };
            let history = [control(true, 1, 4), data(passed, 2, 3)];
            assert_eq!(judge(&history), Judgement::Linearizable(order));
        }
    }

    #[test]
    fn a_verdict_that_is_too_late_or_too_early_is_wrong() {
        // Allowed before it began, and yet refused: what a stale cache does.
        let history = [control(true, 1, 2), data(false, 3, 4)];
        assert_eq!(judge(&history), Judgement::Wrong { stuck: 1 });
        // Passed before it was allowed.
        let history = [data(true, 1, 2), control(true, 3, 4)];
        assert_eq!(judge(&history), Judgement::Wrong { stuck: 0 });
    }

    #[test]
    fn concurrent_changes_take_the_order_that_explains_all() {
        let both = [control(true, 1, 4), control(false, 2, 3)];
        let explained = |then: &[Event]| judge(&[&both[..], then].concat());
        // The second one first.
        let order = vec![1, 0, 2, 3];
        let history = [data(true, 5, 6), data(true, 7, 8)];
        assert_eq!(explained(&history), Judgement::Linearizable(order));
        // Neither order explains a refusal and then a passing without a change between.
        let history = [data(false, 5, 6), data(true, 7, 8)];
        assert!(matches!(explained(&history), Judgement::Wrong { .. }));
    }

    #[test]
    fn it_says_when_it_gives_up() {
        let history = [control(true, 1, 2), data(true, 3, 4)];
        let permissions = Permissions::new(4, Policy::Deny);
        assert_eq!(check(&history, permissions, 0), Judgement::Undecided);
    }
}
