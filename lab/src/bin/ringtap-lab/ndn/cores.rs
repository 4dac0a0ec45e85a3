//! The cores of trials.

use ringtap_engine::Machine;
use ringtap_terminal::Usage;
use ringtap_terminal::units::Cores;

/// The cores of `--cores`, or all.
pub(super) fn cores(given: Option<&Cores>) -> anyhow::Result<Vec<usize>> {
    let machine = Machine::this();
    let Some(Cores(given)) = given else { return Ok(own_cores(&machine)) };
    machine.check_cores(given).map_err(Usage::of)?;
    Ok(given.clone())
}

/// The cores that the process may run on, limited to the number of cores it has CPU time for.
pub(super) fn own_cores(machine: &Machine) -> Vec<usize> {
    match machine.allowed_cores.as_slice() {
        [] => (0..machine.cores).collect(),
        allowed => allowed.iter().copied().take(machine.cores).collect(),
    }
}
