//! Which capabilities the calling thread has, to name the one that is missing.

use std::fmt;

/// A capability that capturing may need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capability {
    /// Raw sockets: AF_PACKET and AF_XDP.
    NetRaw,
    /// XDP programs on interfaces, settings of interfaces.
    NetAdmin,
    /// BPF maps and programs.
    Bpf,
}

impl Capability {
    /// What AF_PACKET needs.
    pub(crate) const PACKET: &[Self] = &[Self::NetRaw];
    /// What AF_XDP needs to receive.
    pub(crate) const XDP: &[Self] = &[Self::NetRaw, Self::NetAdmin, Self::Bpf];
    /// What trial runs of XDP programs need.
    pub(crate) const LIVE: &[Self] = &[Self::NetAdmin, Self::Bpf];

    fn bit(self) -> u32 {
        match self {
            Self::NetAdmin => 12,
            Self::NetRaw => 13,
            Self::Bpf => 39,
        }
    }

    /// As `setcap` spells it.
    pub fn name(self) -> &'static str {
        match self {
            Self::NetRaw => "cap_net_raw",
            Self::NetAdmin => "cap_net_admin",
            Self::Bpf => "cap_bpf",
        }
    }

    /// Those of `needed` that this thread does not have.
    pub(crate) fn missing(needed: &[Self]) -> Vec<Self> {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
        let Some(effective) = effective(&status) else { return needed.to_vec() };
        needed.iter().copied().filter(|one| effective >> one.bit() & 1 == 0).collect()
    }
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name().to_uppercase())
    }
}

/// The effective set out of `/proc/PID/status`. CAP_SYS_ADMIN includes CAP_BPF.
fn effective(status: &str) -> Option<u64> {
    const SYS_ADMIN: u32 = 21;
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    let set = u64::from_str_radix(line.trim(), 16).ok()?;
    Some(set | (set >> SYS_ADMIN & 1) << Capability::Bpf.bit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_effective_set_is_read_from_the_status() {
        let status = "CapPrm:\tffffffffffffffff\nCapEff:\t0000000000003000\nCapBnd:\t0\n";
        let set = effective(status).unwrap();
        assert_eq!(set >> Capability::NetRaw.bit() & 1, 1);
        assert_eq!(set >> Capability::NetAdmin.bit() & 1, 1);
        assert_eq!(set >> Capability::Bpf.bit() & 1, 0);
        assert_eq!(effective("CapEff:\t0000000000200000\n").unwrap() >> 39 & 1, 1);
        assert_eq!(effective("Name:\tx\n"), None);
    }
}
