//! Settings of network cards: what they are, what would improve them, and changing them for the time of a run.
//!
//! ```text
//!  driver ─ ethtool(8) ─▶ Card ─ rules ─▶ changes ─ apply ─▶ driver      undo: in reverse order
//! ```

mod advice;
mod card;
mod helper;
#[cfg(test)]
mod tests;

use std::fs;

use ringtap_engine::Machine;
use ringtap_io::live::Ethtool;
use ringtap_terminal::units;
use rustix::thread::{CapabilitySet, capabilities};
use serde::Serialize;

pub(crate) use advice::Advice;
use advice::{Change, Wanted, changes};
pub(crate) use card::{Card, Size};
use card::{Driver, Interrupt, Setting, interrupts};
pub(crate) use helper::{HelperArgs, NAME as HELPER_NAME, Setup, run as run_helper};

/// An interface whose settings are read and changed.
pub(crate) struct Interface {
    name: String,
    driver: Box<dyn Driver>,
    interrupts: fn(&str) -> Vec<Interrupt>,
    wanted: Wanted,
}

/// A change, and whether it was made; `error` says why not, or that it has no effect.
#[derive(Debug, Serialize)]
pub(crate) struct Step {
    #[serde(flatten)]
    pub(crate) advice: Advice,
    pub(crate) made: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
}

impl Interface {
    /// The interface called `name`. It should have this number of queues; `None`: one for each usable core near it.
    ///
    /// # Errors
    /// No interface has this name.
    pub(crate) fn open(name: &str, queues: Option<u32>) -> anyhow::Result<Self> {
        let driver = Box::new(Ethtool::open(name)?);
        let near = fs::read_to_string(format!("/sys/class/net/{name}/device/local_cpulist"));
        let near = near.ok().and_then(|list| units::cores(list.trim()).ok());
        let near = near.map_or_else(Vec::new, |list| list.0);
        let Machine { cores, allowed_cores, .. } = Machine::this();
        let usable = if allowed_cores.is_empty() { (0..cores).collect() } else { allowed_cores };
        let both: Vec<_> = usable.iter().copied().filter(|core| near.contains(core)).collect();
        let cores = if both.is_empty() { usable } else { both };
        let queues = queues.unwrap_or(cores.len() as u32).max(1);
        let wanted = Wanted { queues, cores };
        Ok(Self { name: name.to_owned(), driver, interrupts, wanted })
    }

    /// Its state, and what would improve it.
    pub(crate) fn read(&self) -> (Card, Vec<Advice>) {
        let (card, changes) = self.examine();
        (card, changes.iter().map(|change| change.of(&self.name)).collect())
    }

    fn examine(&self) -> (Card, Vec<Change>) {
        let card = Card::read(&*self.driver, (self.interrupts)(&self.name));
        let changes = changes(&card, &self.wanted);
        (card, changes)
    }

    /// Makes all changes, in turn: one may lead to others, such as those of new queues. Passes each to `report`; returns
    /// those that were made.
    fn apply(&self, mut report: impl FnMut(Step)) -> Vec<Change> {
        let (mut made, mut tried) = (Vec::new(), Vec::<Setting>::new());
        let (_, mut left) = self.examine();
        while let Some(change) = left.iter().find(|one| !tried.contains(&one.to)).cloned() {
            tried.push(change.to.clone());
            let result = change.to.set(&*self.driver);
            (_, left) = self.examine();
            let error = match &result {
                Err(error) => Some(format!("refused: {error}{}", change.to.if_refused())),
                Ok(()) if left.iter().any(|other| other.to == change.to) => {
                    Some("accepted without effect".to_owned())
                }
                Ok(()) => None,
            };
            report(Step { advice: change.of(&self.name), made: result.is_ok(), error });
            if result.is_ok() {
                made.push(change);
            }
        }
        made
    }

    /// Undoes changes, the last one first.
    fn undo(&self, made: &[Change], mut report: impl FnMut(Step)) {
        for Change { why, to, from } in made.iter().rev() {
            let error = from.set(&*self.driver).err().map(|error| format!("refused: {error}"));
            let back = Change { why, to: from.clone(), from: to.clone() };
            report(Step { advice: back.of(&self.name), made: error.is_none(), error });
        }
    }
}

/// The changes of these interfaces; they are made unless `dry_run`.
///
/// # Errors
/// No interface has such a name, or this process may not change interfaces.
pub(crate) fn set_up(
    names: &[String],
    queues: Option<u32>,
    dry_run: bool,
) -> anyhow::Result<Vec<Step>> {
    let interfaces = open_all(names, queues)?;
    let mut steps = Vec::new();
    if !dry_run {
        check_rights()?;
    }
    for interface in interfaces {
        if dry_run {
            let advice = interface.read().1.into_iter();
            steps.extend(advice.map(|advice| Step { advice, made: false, error: None }));
        } else {
            interface.apply(|step| steps.push(step));
        }
    }
    Ok(steps)
}

fn open_all(names: &[String], queues: Option<u32>) -> anyhow::Result<Vec<Interface>> {
    names.iter().map(|name| Interface::open(name, queues)).collect()
}

fn check_rights() -> anyhow::Result<()> {
    let held = capabilities(None).map_or(CapabilitySet::empty(), |sets| sets.effective);
    anyhow::ensure!(
        held.contains(CapabilitySet::NET_ADMIN),
        "changing the settings of interfaces needs CAP_NET_ADMIN: run as root, or once: sudo setcap \
         cap_net_raw,cap_net_admin,cap_bpf+ep $(command -v ringtap)"
    );
    Ok(())
}
