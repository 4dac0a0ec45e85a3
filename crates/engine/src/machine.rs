//! The machine's resources for a plan.

use ringtap_skeleton::HIGHEST_CORE;

use crate::PlanError;

/// Facts from which defaults are chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Cores that this process may use, at least 1.
    pub cores: usize,
    /// Cores to which threads of this process may be pinned, ascending; empty if unknown.
    pub allowed_cores: Vec<usize>,
    /// Physical memory, bytes.
    pub memory_bytes: u64,
}

impl Machine {
    /// Reads this machine.
    pub fn this() -> Self {
        let info = rustix::system::sysinfo();
        Self {
            cores: ringtap_skeleton::free_cores(),
            allowed_cores: ringtap_skeleton::allowed_cores(),
            memory_bytes: (info.totalram as u64).saturating_mul(u64::from(info.mem_unit)),
        }
    }
    /// Checks that threads of this process can be pinned to all of `cores`.
    ///
    /// # Errors
    /// The first core that is not available.
    pub fn check_cores(&self, cores: &[usize]) -> Result<(), PlanError> {
        let allowed = |core: &usize| match self.allowed_cores.as_slice() {
            [] => *core <= HIGHEST_CORE,
            known => known.contains(core),
        };
        match cores.iter().find(|core| !allowed(core)) {
            None => Ok(()),
            Some(&core) => Err(PlanError::NoCore { core, allowed: self.list() }),
        }
    }

    /// The allowed cores in the syntax of `--cores`: `0-3,8`.
    fn list(&self) -> String {
        if self.allowed_cores.is_empty() {
            return format!("0-{HIGHEST_CORE}");
        }
        let runs = self.allowed_cores.chunk_by(|a, b| a + 1 == *b);
        let text = |run: &[usize]| match run {
            [first, .., last] => format!("{first}-{last}"),
            [one] => one.to_string(),
            [] => String::new(),
        };
        runs.map(text).collect::<Vec<_>>().join(",")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(allowed: &[usize]) -> Machine {
        Machine { cores: 2, allowed_cores: allowed.to_vec(), memory_bytes: 1 << 30 }
    }

    #[test]
    fn a_core_of_another_process_is_refused_with_those_that_there_are() {
        let some = machine(&[1, 4, 5, 6]);
        assert_eq!(some.check_cores(&[6, 1, 1]), Ok(()));
        let error = some.check_cores(&[1, 0]).unwrap_err().to_string();
        assert_eq!(error, "core 0 is not available to this process: use 1,4-6");
        let unknown = machine(&[]);
        assert_eq!(unknown.check_cores(&[HIGHEST_CORE]), Ok(()));
        let error = unknown.check_cores(&[HIGHEST_CORE + 1]).unwrap_err().to_string();
        assert!(error.ends_with(&format!("use 0-{HIGHEST_CORE}")), "{error}");
    }

    #[test]
    fn this_machine_allows_what_it_runs_on() {
        let this = Machine::this();
        assert!(this.cores >= 1 && this.allowed_cores.len() >= this.cores, "{this:?}");
        assert_eq!(this.check_cores(&this.allowed_cores), Ok(()));
    }
}
