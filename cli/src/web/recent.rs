//! The flows of the last minutes as text, for the terminal view: the same tables as on the page.
#![cfg_attr(not(feature = "tui"), expect(dead_code, reason = "the terminal view alone shows it"))]

use ringtap_flow::Sinks;

use super::flows::Flows;
use super::pace::SECOND_NS;
use super::tables::{Kind, Times};
use super::view::View;

/// The time that is shown, nanoseconds.
const TIME_NS: u64 = 300 * SECOND_NS;

/// The flows of the last five minutes.
pub(crate) struct Recent(Flows);

impl Recent {
    /// Adds a sink to those of each worker; flows are sliced by this time, nanoseconds.
    pub(crate) fn new(sinks: &mut [Sinks], slice_ns: u64) -> Self {
        Self(super::followed(sinks, slice_ns))
    }

    /// Takes what the workers have handed on.
    pub(crate) fn receive(&mut self) {
        self.0.receive();
    }

    /// The lines of a table, at most this number of rows.
    pub(crate) fn lines(&self, word: &str, rows: usize) -> Vec<String> {
        let Some(kind) = Kind::of(word) else { return Vec::new() };
        let from_ns = self.0.latest_ns.saturating_sub(TIME_NS);
        let slices = self.0.slices_in(from_ns, u64::MAX);
        let time = Times { ended: (from_ns, u64::MAX), slices, begun_ns: 0, is_live: true };
        let view = View::default();
        kind.rows(&self.0, &view, time).0.table(&view, rows).lines().collect()
    }
}
