//! What would improve the settings of a card for monitoring: a table of rules.

use serde::Serialize;

use super::card::{Card, Queues, Setting, Size, hexadecimal};

/// Frames that the ring of a queue should hold, if the card allows it.
const RING: u32 = 4096;

/// Bytes of a key whose period makes Toeplitz hashes symmetric: Woo and Park, Scalable TCP session monitoring with
/// symmetric receive-side scaling, KAIST 2012.
const SYMMETRIC: [u8; 2] = [0x6d, 0x5a];

/// What the user of a card wants.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    /// Queues that receive.
    pub(crate) queues: u32,
    /// Cores for the interrupts: those that this process may use, near the card.
    pub(crate) cores: Vec<usize>,
}

/// A setting that should change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) why: &'static str,
    pub(crate) to: Setting,
    pub(crate) from: Setting,
}

/// A change as text.
#[derive(Debug, Serialize)]
pub(crate) struct Advice {
    pub(crate) interface: String,
    pub(crate) why: &'static str,
    pub(crate) command: String,
    pub(crate) undo: String,
}

impl Change {
    pub(crate) fn of(&self, interface: &str) -> Advice {
        Advice {
            interface: interface.to_owned(),
            why: self.why,
            command: self.to.command(interface),
            undo: self.from.command(interface),
        }
    }
}

/// The settings of a card that a rule changes, each as it is and as it should be.
type Rule = fn(&Card, &Wanted) -> Vec<(Setting, Setting)>;

const JOINED: &str = "joined segments have other lengths and counts than on the wire";

/// In this order they are applied: the number of queues resets others, and hardware GRO needs GRO.
const RULES: &[(&str, Rule)] = &[
    ("one queue for each core that reads", queues),
    ("a longer ring holds the frames of a burst", ring),
    (JOINED, |card, _| off(card, "rx-gro-hw")),
    (JOINED, |card, _| off(card, "lro")),
    (JOINED, |card, _| off(card, "gro")),
    ("AF_XDP gets no tag that the card takes out", |card, _| off(card, "rxvlan")),
    ("both directions of a pair need one queue: a symmetric key", key),
    ("both directions of a pair, and fragments, need one queue: addresses alone", fields),
    ("each queue's interrupt on a core of its own, near the card (without irqbalance)", affinity),
];

/// The changes that improve a card.
pub(crate) fn changes(card: &Card, wanted: &Wanted) -> Vec<Change> {
    let of = |&(why, rule): &(&'static str, Rule)| {
        rule(card, wanted).into_iter().map(move |(from, to)| Change { why, to, from })
    };
    RULES.iter().flat_map(of).collect()
}

fn queues(card: &Card, wanted: &Wanted) -> Vec<(Setting, Setting)> {
    let Some(Queues { combined, rx, .. }) = &card.queues else { return Vec::new() };
    let target = |size: &Size| size.most.min(wanted.queues);
    if combined.now > 0 && combined.now != target(combined) {
        return vec![(Setting::Combined(combined.now), Setting::Combined(target(combined)))];
    }
    // Never fewer: a veth needs as many for AF_XDP as its peer has to send.
    if combined.most == 0 && rx.now < target(rx) {
        return vec![(Setting::RxQueues(rx.now), Setting::RxQueues(target(rx)))];
    }
    Vec::new()
}

fn ring(card: &Card, _: &Wanted) -> Vec<(Setting, Setting)> {
    let Some(Size { now, most }) = card.rings.as_ref().map(|rings| rings.rx) else {
        return Vec::new();
    };
    let change = || (Setting::RxRing(now), Setting::RxRing(most.min(RING)));
    (now < most.min(RING)).then(change).into_iter().collect()
}

fn off(card: &Card, name: &'static str) -> Vec<(Setting, Setting)> {
    let is_on = card.offloads.get(name).is_some_and(|offload| offload.on && !offload.fixed);
    let change = || (Setting::Offload(name, true), Setting::Offload(name, false));
    is_on.then(change).into_iter().collect()
}

fn key(card: &Card, _: &Wanted) -> Vec<(Setting, Setting)> {
    let Some(hash) = card.hash.as_ref().filter(|hash| !hash.is_symmetric) else {
        return Vec::new();
    };
    let (before, function) = match hash.function {
        Some("toeplitz") => (None, None),
        other => (other, Some("toeplitz")),
    };
    let key: Vec<_> = SYMMETRIC.into_iter().cycle().take(hash.key.split(':').count()).collect();
    let change =
        || (Setting::Key(before, hash.key.clone()), Setting::Key(function, hexadecimal(&key)));
    (card.rx_queues() > 1).then(change).into_iter().collect()
}

fn fields(card: &Card, _: &Wanted) -> Vec<(Setting, Setting)> {
    const ADDRESSES: &str = "sd";
    let change = |(flow, fields): (&&'static str, &String)| {
        (Setting::Fields(flow, fields.clone()), Setting::Fields(flow, ADDRESSES.to_owned()))
    };
    let others = card.hash_fields.iter().filter(|one| one.1 != ADDRESSES && card.rx_queues() > 1);
    others.map(change).collect()
}

fn affinity(card: &Card, wanted: &Wanted) -> Vec<(Setting, Setting)> {
    let cores = &wanted.cores;
    if card.interrupts.len() < 2 || cores.len() < 2 {
        return Vec::new();
    }
    let mut now: Vec<usize> =
        card.interrupts.iter().filter_map(|one| one.cores.parse().ok()).collect();
    let is_near = now.len() == card.interrupts.len() && now.iter().all(|core| cores.contains(core));
    now.sort_unstable();
    now.dedup();
    if is_near && now.len() == card.interrupts.len().min(cores.len()) {
        return Vec::new();
    }
    let each = card.interrupts.iter().zip(cores.iter().cycle());
    let changed = each.filter(|(interrupt, core)| interrupt.cores != core.to_string());
    changed
        .map(|(interrupt, core)| {
            let of = |cores| Setting::Affinity(interrupt.number, cores);
            (of(interrupt.cores.clone()), of(core.to_string()))
        })
        .collect()
}
