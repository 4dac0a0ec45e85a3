//! What the machine offers to a plan.

/// Facts that defaults are chosen from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Cores this process may use, at least 1.
    pub cores: usize,
    /// Physical memory, bytes.
    pub memory_bytes: u64,
}

impl Machine {
    /// This machine.
    pub fn this() -> Self {
        let info = rustix::system::sysinfo();
        Self {
            cores: ringtap_skeleton::free_cores(),
            memory_bytes: (info.totalram as u64).saturating_mul(u64::from(info.mem_unit)),
        }
    }
}
