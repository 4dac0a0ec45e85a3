//! Linux capabilities of the calling thread. Errors name the missing ones.

use std::fmt;

/// A Linux capability that live capture or sending may need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capability {
    /// Allows raw sockets: AF_PACKET and AF_XDP.
    NetRaw,
    /// Allows attaching XDP programs to interfaces and changing interface settings.
    NetAdmin,
    /// Allows BPF maps and programs.
    Bpf,
}

impl Capability {
    /// Required by AF_PACKET.
    pub(crate) const PACKET: &[Self] = &[Self::NetRaw];
    /// Required to receive with AF_XDP.
    pub(crate) const XDP: &[Self] = &[Self::NetRaw, Self::NetAdmin, Self::Bpf];
    /// Required by test runs of XDP programs.
    pub(crate) const LIVE: &[Self] = &[Self::NetAdmin, Self::Bpf];

    /// Number of the capability in `linux/capability.h`.
    fn bit(self) -> u32 {
        match self {
            Self::NetAdmin => 12,
            Self::NetRaw => 13,
            Self::Bpf => 39,
        }
    }

    /// Name in the spelling of `setcap`: `cap_net_raw`.
    pub fn name(self) -> &'static str {
        match self {
            Self::NetRaw => "cap_net_raw",
            Self::NetAdmin => "cap_net_admin",
            Self::Bpf => "cap_bpf",
        }
    }

    /// The capabilities in `needed` that the calling thread does not have; all if its status cannot be read.
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

/// Parses the effective set from the text of `/proc/PID/status`. CAP_SYS_ADMIN includes CAP_BPF.
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
