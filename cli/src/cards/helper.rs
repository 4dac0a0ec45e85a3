//! The process that sets up the cards of a run, and undoes it when the run has ended, however that ends: the run itself
//! gives up its rights before it reads packets. It reads nothing but the end of the connection.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use ringtap_program::privileges::{self, CapabilitySet};
use ringtap_terminal::console::{note, print_message};

use super::{Step, check_rights, open_all};
use crate::helper;

/// The name of the subcommand.
pub(crate) const NAME: &str = "set-up-cards";

/// The longest wait for the end of undoing: a card that gets other rings is without link for seconds.
const UNDO_TIME: Duration = Duration::from_secs(30);

#[derive(Args)]
pub(crate) struct HelperArgs {
    #[arg(long)]
    queues: Option<u32>,
    interfaces: Vec<String>,
}

/// Cards that are set up until this is dropped.
pub(crate) struct Setup(UnixStream);

impl Setup {
    /// Sets up the cards of interfaces.
    ///
    /// # Errors
    /// No interface has such a name, or this process may not change interfaces.
    pub(crate) fn start(interfaces: &[String], queues: Option<u32>) -> anyhow::Result<Self> {
        open_all(interfaces, queues)?;
        check_rights()?;
        let mut command = helper::command(NAME);
        command.args(queues.map(|queues| format!("--queues={queues}")));
        command.arg("--").args(interfaces);
        let context = "the process that sets up the network cards";
        let mut connection = helper::start(command).context(context)?;
        connection.read_exact(&mut [0]).context(context)?;
        Ok(Self(connection))
    }
}

impl Drop for Setup {
    fn drop(&mut self) {
        let Self(connection) = self;
        let mut done = [0];
        let undone = connection
            .shutdown(Shutdown::Write)
            .and_then(|()| connection.set_read_timeout(Some(UNDO_TIME)))
            .and_then(|()| connection.read_exact(&mut done));
        if let Err(error) = undone {
            let text = format!("the settings of the interfaces may not be undone: {error}");
            print_message("warning", &text);
        }
    }
}

/// The process.
pub(crate) fn run(args: &HelperArgs) -> anyhow::Result<ExitCode> {
    privileges::keep(CapabilitySet::NET_ADMIN)?;
    privileges::forbid_new();
    let mut connection = helper::connection().context("the connection")?;
    let interfaces = open_all(&args.interfaces, args.queues)?;
    let made: Vec<_> = interfaces.iter().map(|one| one.apply(|step| say("set", &step))).collect();
    // The run may have ended. Whatever happens to the connection, all changes are undone.
    let _ = connection.write_all(&[0]);
    let _ = io::copy(&mut connection, &mut io::sink());
    for (interface, made) in interfaces.iter().zip(&made).rev() {
        interface.undo(made, |step| say("undone", &step));
    }
    let _ = connection.write_all(&[0]);
    Ok(ExitCode::SUCCESS)
}

fn say(what: &str, Step { advice, error, .. }: &Step) {
    let (interface, command) = (&advice.interface, &advice.command);
    match error {
        Some(error) => print_message("warning", &format!("{interface}: {command}: {error}")),
        None => note(&format!("{interface}: {what}: {command}")),
    }
}
