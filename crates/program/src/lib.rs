//! What the programs `ringtap` and `ringtap-ndn` share: signals, messages to the service manager, rights that are given
//! up, output files, and pages that are generated from the flags.
//!
//! Invariants: of the project, this crate uses `base` and `terminal` alone; no packets; a file that exists is replaced
//! only on request.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod atomic_file;
pub mod config;
pub mod interrupt;
pub mod json;
pub mod leftovers;
mod named_pipe;
mod names;
pub mod notify;
pub mod open_files;
pub mod open_output;
pub mod pages;
pub mod pattern;
pub mod privileges;
pub mod rate;
pub mod retention;
pub mod roles;
pub mod run;
#[cfg_attr(not(feature = "fence"), path = "no_sandbox.rs")]
pub mod sandbox;
pub mod signals;

/// Version, commit, profile, features, target and compiler of the calling package, a line each. Its build script records them
/// (`scripts/provenance.rs`).
#[macro_export]
macro_rules! build {
    () => {
        concat!(
            env!("CARGO_PKG_VERSION"),
            "\ncommit ",
            env!("RINGTAP_COMMIT"),
            "\nprofile ",
            env!("RINGTAP_PROFILE"),
            "\nfeatures ",
            env!("RINGTAP_FEATURES"),
            "\ntarget ",
            env!("RINGTAP_TARGET"),
            "\ncompiler ",
            env!("RINGTAP_COMPILER"),
        )
    };
}
