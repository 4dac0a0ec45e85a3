//! The C interface: flow records while a run goes on. Its reference is `include/ringtap.h`.
//!
//! ```text
//! ringtap_open ─▶ options.rs ─▶ thread of the run ─▶ ringtap::embedded::stream
//!                                                        │ record batches, a bounded number
//! ringtap_next ◀─ flow.rs: ringtap_flow ◀─ run.rs: reader ◀┘
//! ```
//!
//! Invariant: no panic and no invalid pointer but a dangling one crosses the interface; every run ends, and closing waits for
//! it. Nothing is computed here: flags become options of the run, and columns become members and texts.
#![deny(unsafe_code)]

#[allow(unsafe_code, reason = "pointers of C are dereferenced in this module alone")]
mod abi;
mod flow;
mod options;
mod run;

pub use abi::{
    ringtap_close, ringtap_error, ringtap_lost, ringtap_next, ringtap_number, ringtap_open,
    ringtap_report, ringtap_stop, ringtap_text, ringtap_version,
};
pub use flow::Flow;
pub use run::Run;
