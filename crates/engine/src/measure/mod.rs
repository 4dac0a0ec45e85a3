//! Measurements: the same path as the monitor's, with another application behind the same arrangement.
//!
//! ```text
//!  MeasureRequest ─▶ MeasurePlan ─▶ run over files, an interface or a Sample ─▶ MeasureOutcome
//!       └ a Request    └ a Plan      └ plan's own feeds, stamped                └ the same ledger
//! ```

mod advise;
mod design;
mod outcome;
mod request;
mod run;
mod sample;
mod stamped;

pub use advise::{Advice, AdviceError, Tried, advise};
pub use design::{Design, UnknownDesign};
pub use outcome::{MeasureOutcome, Merged};
pub use request::{MeasureError, MeasurePlan, MeasureRequest};
pub use run::{merge, run_files, run_interface, run_sample};
pub use sample::{Sample, SampleBuilder};

pub use ringtap_measure::{
    CountBy, Image, ImageError, Kind, Report as MeasureReport, Settings as MeasureSettings, State,
    Weight, report as measure_report,
};
