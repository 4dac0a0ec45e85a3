//! The library: [`Monitor`] runs the analyses of the command, functions, and each [`Analysis`] of another crate.
//!
//! ```text
//! Monitor ─▶ flags ─▶ run.rs ─▶ plan ─▶ workers ─┬▶ observers.rs: functions
//!                                                └▶ analysis.rs: parts ──merge──▶ Report
//! ```

mod analysis;
mod monitor;
mod observers;
pub(crate) mod run;
mod show;
mod table;
pub mod testing;

use ringtap_monitor::{Analyses, InvalidCustom};

pub use analysis::{Analysis, Room};
#[cfg(feature = "embedded")]
pub(crate) use monitor::REFUSED;
pub use monitor::{Monitor, Report};
pub use run::{Failure, Stop};
pub use table::Table;

/// Takes the analyses of a program.
#[derive(Default)]
pub struct Registrar {
    error: Option<InvalidCustom>,
}

impl Registrar {
    /// Makes an analysis one that runs by default.
    pub fn add<A: Analysis>(&mut self) {
        match Analyses::register(analysis::definition::<A>()) {
            Ok(own) => own.run_by_default(),
            Err(error) => self.error = self.error.take().or(Some(error)),
        }
    }
}

impl Registrar {
    /// The first analysis that cannot be used is an error.
    pub(crate) fn finish(self) -> Result<(), InvalidCustom> {
        self.error.map_or(Ok(()), Err)
    }
}
