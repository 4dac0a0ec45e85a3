//! Giving up root once everything is open: what reads hostile packets should be nobody in particular.

use anyhow::Context;
use nix::unistd::{Gid, User, getgrouplist, setgid, setgroups, setuid};

use ringtap_terminal::Usage;

/// The user called `name`, of whom there must be one.
pub(crate) fn user(name: &str) -> anyhow::Result<User> {
    let user = User::from_name(name).with_context(|| format!("looking for the user {name}"))?;
    user.ok_or_else(|| Usage::of(format!("there is no user {name}")))
}

/// Becomes `user` for good, with all threads, and without any capability.
pub(crate) fn become_user(user: &User) -> anyhow::Result<()> {
    let doing = || format!("becoming the user {}", user.name);
    let name = std::ffi::CString::new(user.name.as_str()).with_context(doing)?;
    let groups: Vec<Gid> = getgrouplist(&name, user.gid).with_context(doing)?;
    setgroups(&groups).with_context(doing)?;
    setgid(user.gid).with_context(doing)?;
    setuid(user.uid).with_context(doing)?;
    // The kernel takes all capabilities from who was root; better to see it than to trust it.
    anyhow::ensure!(
        setuid(0.into()).is_err() || user.uid.is_root(),
        "{} can become root again",
        user.name
    );
    Ok(())
}
