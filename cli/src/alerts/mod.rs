//! Where alerts go: lines on stderr, and the outputs of `--alert-to`.
//!
//! ```text
//! merger ─ Alert ─┬▶ AlertLines (lines.rs) ─▶ stderr, terminal view
//!                 └▶ Notice (notice.rs) ─▶ outputs of ringtap_export::Alerts ─▶ file, syslog, webhook
//!                                                                           ├▶ helper (helper.rs) ─▶ program
//!                                                                           └▶ PacketFiles (alert_packets.rs) ─▶ files
//! ```

mod helper;
mod lines;
mod notice;
mod running;

use std::os::unix::net::UnixStream;
use std::str::FromStr;

use ringtap_export::{AlertOutput, InvalidAlertOutput, Output};

pub(crate) use helper::{HelperArgs, NAME as HELPER_NAME, find as find_program, run as run_helper};
pub(crate) use lines::AlertLines;
pub(crate) use notice::notice;

/// A value of `--alert-to`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AlertTo {
    Stderr,
    Output(AlertOutput),
}

impl FromStr for AlertTo {
    type Err = InvalidAlertOutput;

    fn from_str(text: &str) -> Result<Self, InvalidAlertOutput> {
        match text {
            "stderr" => Ok(Self::Stderr),
            other => other.parse().map(Self::Output),
        }
    }
}

/// Whether alerts are printed on stderr: if it is given, and by default, also beside files of their packets.
pub(crate) fn are_printed(places: &[AlertTo]) -> bool {
    let has_packets =
        |place: &AlertTo| matches!(place, AlertTo::Output(output) if output.packets().is_some());
    places.iter().all(has_packets) || places.contains(&AlertTo::Stderr)
}

/// The given places but stderr.
pub(crate) fn outputs(places: &[AlertTo]) -> Vec<AlertOutput> {
    let output = |place: &AlertTo| match place {
        AlertTo::Stderr => None,
        AlertTo::Output(output) => Some(output.clone()),
    };
    places.iter().filter_map(output).collect()
}

/// Starts a helper for each program among the outputs, in their order. They must start before the process loses the right to
/// run programs. With `user`, they run programs as that user.
///
/// # Errors
/// A program that does not exist, a helper that cannot be started.
pub(crate) fn start_helpers(
    outputs: &[Output],
    user: Option<&str>,
) -> anyhow::Result<Vec<UnixStream>> {
    let program = |output: &Output| match output {
        Output::Alerts(output) => output.program().map(|program| helper::start(program, user)),
        _ => None,
    };
    outputs.iter().filter_map(program).collect()
}
