//! The traffic profile of the flags.

use std::io;

use anyhow::Context;
use ringtap_traffic::Profile;

use super::Rate;
use crate::args::GenerateArgs;
use ringtap_program::config::toml_error;
use ringtap_terminal::Usage;

/// The profile of `--profile`, changed by the other flags.
pub(super) fn of_flags(args: &GenerateArgs) -> anyhow::Result<Profile> {
    let mut profile = named(args.profile.as_deref().unwrap_or("mix"))?;
    profile.packets = args.packets.unwrap_or(profile.packets);
    profile.flows = args.flows.unwrap_or(profile.flows);
    profile.zipf = args.zipf.unwrap_or(profile.zipf);
    profile.size = args.size.unwrap_or(profile.size);
    if let Some(Rate::Packets(rate)) = args.rate {
        profile.packets_per_second = rate.get();
    }
    Ok(profile)
}

/// A profile by name, or from a file of TOML or JSON.
pub(crate) fn named(name: &str) -> anyhow::Result<Profile> {
    if let Some(profile) = Profile::named(name) {
        return Ok(profile);
    }
    let text = match std::fs::read_to_string(name) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(Usage::of(format!(
                "unknown profile {name:?}, and no such file: use {}",
                Profile::NAMES.join(", "),
            )));
        }
        Err(error) => return Err(error).with_context(|| format!("reading the profile {name}")),
    };
    if text.lines().all(|line| line.trim().is_empty() || line.trim().starts_with('#')) {
        return Err(Usage::of(format!(
            "the profile {name} is empty: use {}, or a file with fields of a profile",
            Profile::NAMES.join(", "),
        )));
    }
    let parsed = if text.trim_start().starts_with('{') {
        serde_json::from_str(&text).map_err(|error| error.to_string())
    } else {
        toml::from_str(&text).map_err(|error| toml_error(&error, &text))
    };
    parsed.map_err(|error| Usage::of(format!("the profile {name}: {error}")))
}
