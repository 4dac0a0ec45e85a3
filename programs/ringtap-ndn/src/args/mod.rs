//! Command-line flags of `ringtap-ndn`. Help, man pages and completions are generated from them.

mod forward;
mod signing;
mod tools;
mod url;

use clap::{Parser, Subcommand};
use ringtap_program::pages::Pages;

pub(crate) use forward::{ForwardAction, ForwardArgs, ForwardCtl, ForwardCtlArgs};
pub(crate) use ringtap_terminal::Form;
pub(crate) use signing::SigningArgs;
pub(crate) use tools::{
    GenerateKeyArgs, KeyAction, KeyArgs, LoadArgs, Names, PingArgs, ServerArgs,
};
pub(crate) use url::Url;

/// An NDN forwarder, and tools for NDN
#[derive(Parser)]
#[command(
    name = "ringtap-ndn",
    version,
    long_version = ringtap_program::build!(),
    args_override_self = true,
    disable_help_subcommand = true,
    max_term_width = 100,
    after_help = "Try it:\n  \
        ringtap-ndn server /example\n  \
        ringtap-ndn ping /example -c 3\n\n\
        'ringtap-ndn COMMAND --help' lists the flags of a command."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Forward NDN packets between neighbours and programs
    Forward(Box<ForwardArgs>),
    /// Send Interests for NAME/ping/NUMBER and print the time of each answer
    Ping(PingArgs),
    /// Answer each Interest under PREFIX with a Data of the same name
    Server(ServerArgs),
    /// Send many Interests and report answers, losses and latency
    Load(LoadArgs),
    /// Create keys for signed commands
    Key(KeyArgs),
    #[command(flatten)]
    Pages(Pages),
}
