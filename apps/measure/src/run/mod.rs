//! Measurements on the engine.
//!
//! ```text
//!  Options ─▶ plan ─▶ run over files, an interface or a Sample ─▶ MeasureOutcome
//!                       └ the engine's feeds, stamped
//! ```

mod advise;
mod design;
mod drive;
mod options;
mod outcome;
mod sample;
mod stamped;

pub use advise::{Advice, AdviceError, Fixed, Tried, advise};
pub use design::Design;
pub use drive::{merge, run_files, run_interface, run_sample};
pub use options::{MeasureError, Options, plan};
pub use outcome::{MeasureOutcome, Merged};
pub use sample::{Sample, SampleBuilder};
