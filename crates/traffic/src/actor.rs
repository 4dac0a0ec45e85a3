//! Actors: scanners and flooders, each of which sends a fixed script once.
//!
//! ```text
//! scan   SYN 0 … SYN 7, SYN 8, answer 0, SYN 9, answer 1, …     attempts and early answers
//!        SYN a, SYN b, …                                        resent, if not answered or answered
//!                                                               with a RST that is not accepted
//!        SYN-ACK c, SYN-ACK d, …                                late answers
//! flood  a SYN from each forged source, or an answer to it
//! ```
//!
//! Over UDP SYNs and SYN-ACKs are datagrams.
//!
//! A script depends only on its specification, so the state after any number of steps is found by replaying it: no
//! counters are updated while frames are generated.

use crate::address::{Address, Role};
use crate::frame::{ACK, Body, Packet, RST, SYN, WINDOW};
use crate::keyed::mix;
use crate::profile::{FORGED_PORTS, FloodSpec, ScanSpec, Seen};

/// Attempts without an answer yet, at any time.
const ROUND_TRIP: u32 = 8;

/// A frame of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// The attempt, 0 ≤ attempt < targets × ports, or the forged source.
    pub(crate) attempt: u32,
    pub(crate) act: Act,
}

/// The frame of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    Syn,
    SynAgain,
    SynAck,
    Reset,
}

/// The parameters of an actor.
#[derive(Clone, Debug)]
pub(crate) enum Cast {
    /// Scanner number `source`.
    Scan { spec: ScanSpec, source: u32, first_target: u32 },
    /// Victim number `victim`; forged sources from number `first_source` on.
    Flood { spec: FloodSpec, victim: u32, first_source: u32, frames: u32 },
}

/// An actor and its progress.
#[derive(Clone, Debug)]
pub(crate) struct Actor {
    pub(crate) cast: Cast,
    /// Frames sent.
    pub(crate) sent: u32,
    /// Frames still to send.
    pub(crate) left: u32,
    /// The planned tick of its last frame.
    pub(crate) end: u32,
    cursor: Cursor,
}

/// The position in a script.
#[derive(Clone, Debug, Default)]
struct Cursor {
    /// 0: attempts and early answers; then the passes of resends; the late answers come last.
    pass: u32,
    at: u32,
    /// In pass 0, attempt `at` was made, and the answer to an earlier one comes next.
    answering: bool,
}

impl Actor {
    pub(crate) fn new(cast: Cast) -> Self {
        let frames = match &cast {
            Cast::Scan { spec, .. } => spec.frames() as u32,
            Cast::Flood { frames, .. } => *frames,
        };
        Self { cast, sent: 0, left: frames, end: 0, cursor: Cursor::default() }
    }

    /// Returns the next step; `None` at the end of the script.
    #[inline]
    pub(crate) fn step(&mut self) -> Option<Step> {
        let step = match &self.cast {
            Cast::Scan { spec, .. } => self.cursor.scan(spec),
            Cast::Flood { spec, frames, .. } => self.cursor.flood(spec, *frames),
        }?;
        self.sent += 1;
        self.left -= 1;
        Some(step)
    }

    /// Replays the steps taken so far.
    pub(crate) fn replay(&self) -> impl Iterator<Item = Step> + use<> {
        let mut again = Self::new(self.cast.clone());
        (0..self.sent).map_while(move |_| again.step())
    }

    /// The packet of a step.
    #[inline]
    pub(crate) fn packet(&self, step: Step) -> Packet {
        let forth = matches!(step.act, Act::Syn | Act::SynAgain);
        let (active, port, passive, passive_port) = self.parties(step.attempt);
        let first = mix(u64::from(step.attempt) << 32 | u64::from(port)) as u32;
        let (flags, seq, ack) = match step.act {
            Act::Syn | Act::SynAgain => (SYN, first, 0),
            Act::SynAck => (SYN | ACK, !first, first.wrapping_add(1)),
            Act::Reset => (RST | ACK, 0, first.wrapping_add(1)),
        };
        let (source, source_port, destination, destination_port) = if forth {
            (active, port, passive, passive_port)
        } else {
            (passive, passive_port, active, port)
        };
        let body = match &self.cast {
            Cast::Scan { spec, .. } if spec.udp => Body::Udp,
            _ => Body::Tcp { flags, seq, ack, window: WINDOW },
        };
        Packet {
            source,
            destination,
            source_port,
            destination_port,
            vlan: 0,
            ident: self.sent,
            body,
            payload: 0,
        }
    }

    /// Source and destination (address, port) of an attempt. Attempts of an actor differ in the last three fields;
    /// those of different actors in the first.
    #[inline]
    pub(crate) fn parties(&self, attempt: u32) -> (Address, u16, Address, u16) {
        match &self.cast {
            Cast::Scan { spec, source, .. } => (
                Address::of(Role::Scanner, *source, spec.ipv6),
                40_000 + (source % 20_000) as u16,
                self.target(attempt % spec.targets),
                spec.first_port + (attempt / spec.targets) as u16,
            ),
            Cast::Flood { spec, victim, first_source, .. } => {
                let number = first_source + attempt % spec.sources;
                // Each round uses every address with another port.
                let port = (mix(number.into()) % u64::from(FORGED_PORTS)) as u32;
                let round = attempt / spec.sources;
                (
                    Address::of(Role::Spoofed, number, spec.ipv6),
                    1024 + ((port + round) % FORGED_PORTS) as u16,
                    Address::of(Role::Victim, *victim, spec.ipv6),
                    spec.port,
                )
            }
        }
    }

    /// Address of a scan's target, or of the victim.
    #[inline]
    pub(crate) fn target(&self, index: u32) -> Address {
        match &self.cast {
            Cast::Scan { spec, first_target, .. } => {
                Address::of(Role::Target, first_target.wrapping_add(index) & 0xf_ffff, spec.ipv6)
            }
            Cast::Flood { spec, victim, .. } => Address::of(Role::Victim, *victim, spec.ipv6),
        }
    }
}

impl Cursor {
    #[inline]
    fn scan(&mut self, spec: &ScanSpec) -> Option<Step> {
        let attempts = spec.attempts() as u32;
        loop {
            if self.pass == 0 {
                if self.at == attempts + ROUND_TRIP {
                    (self.pass, self.at) = (1, 0);
                    continue;
                }
                self.answering = !self.answering;
                if self.answering {
                    if self.at < attempts {
                        return Some(Step { attempt: self.at, act: Act::Syn });
                    }
                    continue;
                }
                self.at += 1;
                let Some(elder) = (self.at - 1).checked_sub(ROUND_TRIP) else { continue };
                if let Some(act) = prompt(spec, elder) {
                    return Some(Step { attempt: elder, act });
                }
            } else {
                if self.at == attempts {
                    (self.pass, self.at) = (self.pass + 1, 0);
                }
                if self.pass > spec.resends + 1 {
                    return None;
                }
                let attempt = self.at;
                self.at += 1;
                if self.pass <= spec.resends {
                    if tried_again(spec, attempt) {
                        return Some(Step { attempt, act: Act::SynAgain });
                    }
                } else if spec.late && answered(spec, attempt) {
                    return Some(Step { attempt, act: Act::SynAck });
                }
            }
        }
    }

    fn flood(&mut self, spec: &FloodSpec, frames: u32) -> Option<Step> {
        let attempt = self.at;
        self.at += 1;
        let act = match spec.seen {
            Seen::Attack => Act::Syn,
            Seen::Backscatter if attempt.is_multiple_of(2) => Act::SynAck,
            Seen::Backscatter => Act::Reset,
        };
        (attempt < frames).then_some(Step { attempt, act })
    }
}

/// Returns true if an attempt is made again after all were made.
#[inline]
fn tried_again(spec: &ScanSpec, attempt: u32) -> bool {
    match prompt(spec, attempt) {
        None => true,
        Some(answer) => spec.insist && answer == Act::Reset,
    }
}

/// The answer that arrives after a round trip.
#[inline]
fn prompt(spec: &ScanSpec, attempt: u32) -> Option<Act> {
    match answered(spec, attempt) {
        true => (!spec.late).then_some(Act::SynAck),
        false => spec.reset.then_some(Act::Reset),
    }
}

/// True for `spec.answered` of the attempts, spread evenly.
#[inline]
fn answered(spec: &ScanSpec, attempt: u32) -> bool {
    let upto = |attempt: u64| attempt * u64::from(spec.answered) / spec.attempts();
    upto(u64::from(attempt) + 1) != upto(attempt.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_script_has_the_planned_frames_and_answers(
            targets in 1u32..40, ports in 1u32..40, part in 0.0..=1.0f64,
            late: bool, reset: bool, insist: bool, resends in 0u32..4,
        ) {
            let answered = (f64::from(targets * ports) * part) as u32;
            let spec = ScanSpec {
                targets, ports, answered, late, reset, insist, resends, ..ScanSpec::default()
            };
            let frames = spec.frames();
            let mut actor = Actor::new(Cast::Scan { spec, source: 0, first_target: 0 });
            let mut played = Vec::new();
            while let Some(step) = actor.step() {
                played.push(step);
            }
            prop_assert_eq!(played.len() as u64, frames);
            prop_assert_eq!(actor.left, 0);
            let count = |act| played.iter().filter(|step| step.act == act).count() as u32;
            prop_assert_eq!(count(Act::Syn), targets * ports);
            prop_assert_eq!(count(Act::SynAck), answered);
            prop_assert_eq!(count(Act::Reset), if reset { targets * ports - answered } else { 0 });
            let again: Vec<Step> = actor.replay().collect();
            prop_assert_eq!(again, played);
        }
    }
}
