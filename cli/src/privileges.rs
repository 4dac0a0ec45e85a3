//! Giving up root once everything is open: what reads hostile packets should be nobody in particular.

use std::ffi::CString;

use anyhow::Context;
use ringtap_base::{User, can_become_root};
use ringtap_terminal::Usage;

/// The user called `name`, of whom there must be one.
pub(crate) fn user(name: &str) -> anyhow::Result<User> {
    let none = || Usage::of(format!("there is no user {name}"));
    let word = CString::new(name).map_err(|_| none())?;
    let user = User::named(&word).with_context(|| format!("looking for the user {name}"))?;
    user.ok_or_else(none)
}

/// Becomes `user` for good, with all threads, and without any capability.
pub(crate) fn become_user(user: &User) -> anyhow::Result<()> {
    let name = user.name.to_string_lossy();
    user.become_it().with_context(|| format!("becoming the user {name}"))?;
    // The kernel takes all capabilities from who was root; better to see it than to trust it.
    anyhow::ensure!(user.is_root() || !can_become_root(), "{name} can become root again");
    Ok(())
}
