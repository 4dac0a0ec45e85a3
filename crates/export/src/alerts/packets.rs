//! The packets of alerts: for each alert that begins a file, written by the caller's [`WritePackets`].
//!
//! At most [`MOST_FILES`] files begin in a [`TURN`]. Alerts beyond are lost and counted.

use std::io;
use std::time::{Duration, Instant};

use super::{Notice, Target, count_lost, count_sent};
use crate::Reason;
use crate::shared::{Shared, now};

/// Most files of a turn, and its length.
const MOST_FILES: u32 = 60;
const TURN: Duration = Duration::from_secs(60);

/// Writes the packets of alerts.
pub trait WritePackets: Send {
    /// Writes the packets of an alert to a file that gets its name when it is complete. Returns its octets.
    ///
    /// # Errors
    /// The file cannot be written; then there is none.
    fn write(&mut self, notice: &Notice) -> io::Result<u64>;
}

pub(crate) struct Packets {
    writer: Box<dyn WritePackets>,
    /// When the turn began, and its files.
    turn: Option<(Instant, u32)>,
}

impl Packets {
    pub(crate) fn new(writer: Box<dyn WritePackets>) -> Self {
        Self { writer, turn: None }
    }

    /// Whether a further file may begin in this turn.
    fn has_room(&mut self) -> bool {
        let running = self.turn.as_mut().filter(|(since, _)| since.elapsed() < TURN);
        match running {
            Some((_, MOST_FILES..)) => false,
            Some((_, files)) => {
                *files += 1;
                true
            }
            None => {
                self.turn = Some((now(), 1));
                true
            }
        }
    }
}

impl Target for Packets {
    fn deliver(&mut self, notice: &Notice, shared: &Shared) {
        if notice.packets_of.is_empty() {
            return count_sent(0, shared);
        }
        if !self.has_room() {
            return count_lost(Reason::TooMany, shared);
        }
        match self.writer.write(notice) {
            Ok(octets) => {
                shared.works();
                count_sent(octets as usize, shared);
            }
            // The packets will be overwritten, so it is not tried again.
            Err(error) => {
                shared.fails(&error);
                count_lost(Reason::Failed, shared);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alerts::tests::{notice, shared};

    /// Writes 7 octets, or fails.
    struct Files;

    impl WritePackets for Files {
        fn write(&mut self, notice: &Notice) -> io::Result<u64> {
            match &notice.text[..] {
                "fails" => Err(io::Error::other("no space")),
                _ => Ok(7),
            }
        }
    }

    #[test]
    fn an_alert_that_begins_is_a_file_and_too_many_are_counted() {
        let shared = shared();
        let mut packets = Packets::new(Box::new(Files));
        let begins = |text| Notice { packets_of: vec![[10, 0, 0, 1].into()], ..notice(text) };
        packets.deliver(&begins("fails"), &shared);
        assert!(shared.is_failing());
        (0..MOST_FILES + 5).for_each(|_| packets.deliver(&begins("works"), &shared));
        packets.deliver(&notice("ends"), &shared);
        let (status, sent) = (shared.status(), shared.sent());
        let lost = [Reason::Failed, Reason::TooMany].map(|reason| status.lost(reason));
        assert_eq!((lost, status.failing), ([1, 6], false));
        let files = u64::from(MOST_FILES) - 1;
        assert_eq!((sent.flows.records, sent.message_octets), (files + 1, 7 * files));
        // The next turn.
        packets.turn = packets.turn.map(|(since, files)| (since - TURN, files));
        packets.deliver(&begins("works"), &shared);
        assert_eq!(shared.sent().flows.records, files + 2);
    }
}
