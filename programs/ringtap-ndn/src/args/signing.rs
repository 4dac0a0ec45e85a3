//! Flags of the key that signs commands.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use ringtap_ndn::packets::NameBuf;

/// The key of commands.
#[derive(Args)]
pub(crate) struct SigningArgs {
    /// Sign commands with this private key or secret; its type is that of the file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) key: Option<PathBuf>,
    /// Name of the key in signatures, by which the forwarder finds its [[anchor]]
    #[arg(long, value_name = "NAME", value_parser = key_name, requires = "key")]
    pub(crate) key_name: Option<NameBuf>,
}

fn key_name(text: &str) -> Result<NameBuf, String> {
    if text.is_empty() {
        return Err("the name of the key is empty: use one as /owner/KEY/1".into());
    }
    text.parse().map_err(|error| format!("{error}"))
}
