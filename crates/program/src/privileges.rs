//! Gives up the rights of root once everything is open, before hostile packets are parsed: all of them with `--user`,
//! and otherwise the capabilities that the run does not need.

use std::ffi::CString;
use std::path::Path;
use std::sync::OnceLock;

use anyhow::Context;
use ringtap_base::{User, can_become_root};
use ringtap_terminal::Usage;
use ringtap_terminal::console::note;
use rustix::fs::{Access, AtFlags, CWD, accessat};
pub use rustix::thread::CapabilitySet;
use rustix::thread::{CapabilitySets, capabilities, set_capabilities, set_no_new_privs};

use crate::names::folder;

/// The capabilities that this process keeps, once it has dropped the others.
static KEPT: OnceLock<CapabilitySet> = OnceLock::new();

/// Looks up the user `name`.
pub fn user(name: &str) -> anyhow::Result<User> {
    let unknown = || Usage::of(format!("unknown user {name}"));
    let word = CString::new(name).map_err(|_| unknown())?;
    let user = User::named(&word).with_context(|| format!("looking up the user {name}"))?;
    user.ok_or_else(unknown)
}

/// Switches to `user` permanently, with all threads, and without any capability.
pub fn become_user(user: &User) -> anyhow::Result<()> {
    let name = user.name.to_string_lossy();
    user.switch_to().with_context(|| format!("switching to the user {name}"))?;
    // The kernel removes all capabilities of root; verify it.
    anyhow::ensure!(user.is_root() || !can_become_root(), "{name} can become root again");
    Ok(())
}

/// Programs that this thread and those that it starts execute get no further rights, also not by setuid.
pub fn forbid_new() {
    // Every kernel that Rust supports has it.
    let _ = set_no_new_privs(true);
}

/// What reopening an AF_XDP socket needs.
pub const XDP: CapabilitySet = CapabilitySet::NET_RAW
    .union(CapabilitySet::NET_ADMIN)
    .union(CapabilitySet::BPF)
    .union(CapabilitySet::IPC_LOCK);

/// Drops all capabilities of this thread and those that it starts, but `kept` and what is needed to read `inputs` and
/// to create files beside `outputs`; says which are kept. Everything else must be open.
pub fn drop_capabilities<'a>(
    mut kept: CapabilitySet,
    inputs: impl IntoIterator<Item = &'a Path>,
    outputs: impl IntoIterator<Item = &'a Path>,
) -> anyhow::Result<()> {
    let Ok(before) = capabilities(None) else { return Ok(()) };
    if before.permitted.is_empty() {
        return Ok(());
    }
    // The kernel decides what cannot be done without them.
    set_to(before, CapabilitySet::empty(), before.permitted)?;
    let can = |path: &Path, access| accessat(CWD, path, access, AtFlags::EACCESS).is_ok();
    for path in inputs.into_iter().filter(|path| path.exists()) {
        if !can(path, Access::READ_OK) {
            kept |= CapabilitySet::DAC_READ_SEARCH;
        }
    }
    for path in outputs {
        if !can(folder(path), Access::WRITE_OK | Access::EXEC_OK) {
            kept |= CapabilitySet::DAC_OVERRIDE;
        }
    }
    kept &= before.permitted;
    set_to(before, kept, kept)?;
    KEPT.get_or_init(|| kept);
    if !kept.is_empty() {
        let names: Vec<_> = kept.iter_names().map(|(name, _)| name).collect();
        note(&format!("capabilities: keeps {}, which this run needs", names.join(", ")));
    }
    Ok(())
}

/// Drops all capabilities of this thread, and of those that it starts, but `kept`.
pub fn keep(kept: CapabilitySet) -> anyhow::Result<()> {
    let Ok(before) = capabilities(None) else { return Ok(()) };
    let kept = kept & before.permitted;
    set_to(before, kept, kept)
}

/// Drops the capabilities of a thread that was started before the others dropped theirs. Returns true when it is done.
pub fn follow() -> bool {
    let Some(&kept) = KEPT.get() else { return false };
    let _ = keep(kept);
    true
}

fn set_to(
    before: CapabilitySets,
    effective: CapabilitySet,
    permitted: CapabilitySet,
) -> anyhow::Result<()> {
    let inheritable = before.inheritable & permitted;
    set_capabilities(None, CapabilitySets { effective, permitted, inheritable })
        .context("dropping capabilities")
}
