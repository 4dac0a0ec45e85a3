//! Helpers of all tests: the program.

use assert_cmd::Command;

/// The program under test.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_ringtap-ndn");

/// The program, without colours and log settings of the environment.
pub(crate) fn ndn() -> Command {
    let mut command = Command::new(PROGRAM);
    command.env_remove("RINGTAP_LOG").env_remove("CLICOLOR_FORCE").env("NO_COLOR", "1");
    command
}
