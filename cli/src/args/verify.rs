//! Flags of `ringtap verify`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::Form;
use crate::units;

const CODES: &str = "\
Exit codes: 0 the store is whole; 1 there are gaps, or it cannot be read; 2 usage error.";

/// Flags of `ringtap verify`.
#[derive(Args)]
#[command(after_help = CODES)]
pub(crate) struct VerifyArgs {
    /// A store written by 'ringtap monitor --store', or one of its manifests: then the files of that probe
    #[arg(value_name = "STORE", value_hint = ValueHint::AnyPath)]
    pub(crate) store: PathBuf,
    /// Compare with what arrived elsewhere, by interval: JSON lines, CSV or Parquet with the names of ringtap, files of
    /// nfcapd (read by nfdump), or folders of these; - is JSON lines on stdin, as of a consumer of Kafka
    #[arg(long, value_name = "PATH", num_args = 1.., value_hint = ValueHint::AnyPath)]
    pub(crate) against: Vec<PathBuf>,
    /// Expect a line with this hash, which an earlier 'ringtap verify' printed as the last line: so a manifest is found
    /// whose end was cut off and written anew; may be repeated
    #[arg(long, value_name = "HASH", value_parser = units::line_hash)]
    pub(crate) expect_line: Vec<String>,
    /// The result on stdout: text or json
    #[arg(long, value_name = "FORMAT", default_value = "text", hide_possible_values = true)]
    pub(crate) report: Form,
}
