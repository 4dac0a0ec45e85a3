//! Drops root privileges once everything is open, before hostile packets are parsed.

use std::ffi::CString;

use anyhow::Context;
use ringtap_base::{User, can_become_root};
use ringtap_terminal::Usage;

/// Looks up the user `name`.
pub(crate) fn user(name: &str) -> anyhow::Result<User> {
    let unknown = || Usage::of(format!("unknown user {name}"));
    let word = CString::new(name).map_err(|_| unknown())?;
    let user = User::named(&word).with_context(|| format!("looking up the user {name}"))?;
    user.ok_or_else(unknown)
}

/// Switches to `user` permanently, with all threads, and without any capability.
pub(crate) fn become_user(user: &User) -> anyhow::Result<()> {
    let name = user.name.to_string_lossy();
    user.switch_to().with_context(|| format!("switching to the user {name}"))?;
    // The kernel removes all capabilities of root; verify it.
    anyhow::ensure!(user.is_root() || !can_become_root(), "{name} can become root again");
    Ok(())
}
