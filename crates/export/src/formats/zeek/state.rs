//! `conn_state`, by Zeek's definitions, from the state of each end of a connection. Source: Zeek's `conn_state`
//! (`base/protocols/conn/main.zeek`) over the states of its TCP analyzer.
//!
//! ```text
//!             s              h seen by the peer          f
//! Inactive ──────▶ SynSent ──────────▶ Established ──────────▶ Closed
//!     │  no SYN                                           │ r, if the peer has not closed
//!     └───────────────▶ Partial ────────▶ …               ▼
//!                       r from anywhere ──────────────▶ Reset
//! ```
//!
//! Zeek processes packets; this processes the letters of a history, each at its first time in its direction. A later
//! packet with the same letter never changes the state, except for retransmissions, which Zeek recognises by sequence
//! numbers.

use ringtap_flow::{FlowRecord, History};

use crate::formats::protocol::{TCP, UDP};

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Inactive,
    SynSent,
    /// The originator sent a SYN with ACK.
    SynAckSent,
    /// Sent packets without a SYN.
    Partial,
    Established,
    Closed,
    Reset,
}

pub(super) fn of(record: &FlowRecord) -> &'static str {
    match record.key.protocol {
        TCP => tcp(record.history),
        UDP => match record.packets.map(|packets| packets > 0) {
            [true, true] => "SF",
            [true, false] => "S0",
            [false, true] => "SHR",
            [false, false] => "OTH",
        },
        _ => "OTH",
    }
}

fn tcp(history: History) -> &'static str {
    use End::{Closed, Established, Inactive, Partial, Reset, SynAckSent, SynSent};

    let [originator, responder] = ends(history);
    let silent = |end| matches!(end, Inactive | Partial);
    let data = history.has('D') || history.has('d');
    match (originator, responder) {
        (SynSent | SynAckSent, Reset) => "REJ",
        (Reset, Reset) if !data => "REJ",
        (_, Reset) if silent(originator) => "RSTRH",
        (_, Reset) => "RSTR",
        (Reset, _) if silent(responder) && gave_up(history) => "RSTOS0",
        (Reset, _) if silent(responder) => "OTH",
        (Reset, _) => "RSTO",
        (Closed, Closed) => "SF",
        (Closed, _) if silent(responder) => "SH",
        (Closed, _) => "S2",
        (_, Closed) if silent(originator) => "SHR",
        (_, Closed) => "S3",
        (SynSent, Inactive) => "S0",
        (Established, Established) => "S1",
        _ => "OTH",
    }
}

/// A SYN and then a RST of the originator, with nothing significant between them.
fn gave_up(history: History) -> bool {
    let mut letters = history.iter();
    letters.next() == Some('S') && letters.find(|letter| "HAFR".contains(*letter)) == Some('R')
}

/// The states of originator and responder.
fn ends(history: History) -> [End; 2] {
    use End::{Closed, Established, Inactive, Partial, Reset, SynAckSent, SynSent};

    let mut ends = [Inactive; 2];
    // True for an end that sent its RST after its FIN.
    let mut closed_first = [false; 2];
    for letter in history.iter() {
        let side = usize::from(letter.is_ascii_lowercase());
        let (own, peer) = (ends[side], ends[1 - side]);
        ends[side] = match (own, letter.to_ascii_lowercase()) {
            (Inactive, 's') if side == 0 => SynSent,
            (Inactive, 'h') if side == 0 => SynAckSent,
            (Inactive, 's' | 'h') => {
                if peer == SynSent {
                    ends[0] = Established;
                }
                Established
            }
            // Some hosts answer a SYN with an ACK before their own SYN.
            (Inactive, 'a') if side == 1 && peer == SynSent => Inactive,
            (Inactive, 'a' | 'd') if peer == Established => Established,
            (Inactive, 'a' | 'd') => Partial,
            (Partial, 's') if peer == Inactive => SynSent,
            (Reset, _) => Reset,
            (Closed, 'r') if peer == Closed => Closed,
            (Closed, 'r') => {
                closed_first[side] = true;
                Reset
            }
            (Established | Partial, 'f') => {
                // FIN and RST, then the other's FIN: a normal end.
                if peer == Reset && closed_first[1 - side] {
                    ends[1 - side] = Closed;
                }
                Closed
            }
            (_, 'f') => Closed,
            (_, 'r') => Reset,
            _ => own,
        };
    }
    ends
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each state with a history that leads to it, and similar states that must differ.
    #[test]
    fn every_state_of_tcp() {
        for (history, state) in [
            ("S", "S0"),
            ("Sa", "S0"),
            ("Sh", "S1"),
            ("ShADad", "S1"),
            ("ShADadFf", "SF"),
            ("ShAfF", "SF"),
            ("ShADadFfR", "SF"),
            ("ShADFRf", "SF"),
            ("Sr", "REJ"),
            ("SrR", "REJ"),
            ("Hr", "REJ"),
            ("ShARr", "REJ"),
            ("ShADRr", "RSTR"),
            ("ShADF", "S2"),
            ("ShAFa", "S2"),
            ("ShAdf", "S3"),
            ("ShADR", "RSTO"),
            ("ShR", "RSTO"),
            ("ShADFR", "RSTO"),
            ("ShADr", "RSTR"),
            ("ShAdfr", "RSTR"),
            ("SR", "RSTOS0"),
            ("SDR", "RSTOS0"),
            ("SaR", "RSTOS0"),
            ("R", "OTH"),
            ("DR", "OTH"),
            ("SAR", "OTH"),
            ("hr", "RSTRH"),
            ("r", "RSTRH"),
            ("SF", "SH"),
            ("F", "SH"),
            ("hf", "SHR"),
            ("f", "SHR"),
            ("h", "OTH"),
            ("hA", "S1"),
            ("AhS", "OTH"),
            ("DdAa", "OTH"),
            ("DdAaFf", "SF"),
            ("H", "OTH"),
            ("", "OTH"),
        ] {
            assert_eq!(tcp(History::of(history)), state, "{history}");
        }
    }

    /// Any history has a state, and a longer history never returns to an attempt without answer.
    #[test]
    fn every_pair_of_letters_has_a_state() {
        const STATES: [&str; 13] = [
            "S0", "S1", "SF", "REJ", "S2", "S3", "RSTO", "RSTR", "RSTOS0", "RSTRH", "SH", "SHR",
            "OTH",
        ];
        let letters = "SHADFRshadfr";
        for first in letters.chars() {
            for second in letters.chars() {
                for third in letters.chars() {
                    let text: String = [first, second, third].iter().collect();
                    let state = tcp(History::of(&text));
                    assert!(STATES.contains(&state), "{text}");
                    assert!(state != "S0" || !text.contains(['F', 'f', 'R', 'r', 'h']), "{text}");
                }
            }
        }
    }
}
