//! Host addresses. Each role has its own address space, so no role's traffic can answer another's or be mistaken for
//! it.
//!
//! | role | IPv4 | IPv6 |
//! |---|---|---|
//! | client | 10.0.0.0/10, subnets of 16 hosts | 2001:db8:1::/48 |
//! | server | 198.18.0.0/15, subnets of 8 hosts | 2001:db8:2::/48 |
//! | scanner | 100.64.0.0/11 | 2001:db8:3::/48 |
//! | spoofed | 100.96.0.0/11 | 2001:db8:4::/48 |
//! | target | 172.16.0.0/12 | 2001:db8:5::/48 |
//! | victim | 192.168.0.0/16 | 2001:db8:6::/48 |
//! | user | 10.64.0.0/10 | 2001:db8:7::/48 |
//! | site | 10.128.0.0/10 | 2001:db8:8::/48 |

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The role of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Opens conversations; 2^16 hosts.
    Client = 1,
    /// Answers them; 2^12 hosts.
    Server,
    /// Scans; 2^21 hosts.
    Scanner,
    /// Exists only as a forged source; 2^21 hosts.
    Spoofed,
    /// Is scanned; 2^20 hosts.
    Target,
    /// Is flooded; 2^16 hosts.
    Victim,
    /// Sends the requests of exchanges; 2^17 hosts.
    User,
    /// Answers them; 2^16 hosts.
    Site,
}

/// An address: 32 bits in the low end, or 128.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Address {
    pub(crate) ipv6: bool,
    pub(crate) bits: u128,
}

impl Address {
    /// Host `number` of a role; one to one within the number of hosts of the role.
    #[inline]
    pub(crate) fn of(role: Role, number: u32, ipv6: bool) -> Self {
        let bits = if ipv6 {
            let subnet = u128::from(number >> 8);
            let host = u128::from(number & 0xff) + 0x100;
            0x2001_0db8 << 96 | (role as u128) << 80 | subnet << 64 | host
        } else {
            u128::from(match role {
                Role::Client => {
                    let (subnet, host) = (number >> 4, number & 15);
                    0x0a00_000a | (subnet >> 6) << 16 | (subnet & 63) << 8 | host << 4
                }
                Role::Server => {
                    let (subnet, host) = (number >> 3, number & 7);
                    0xc612_0005 | (subnet >> 8) << 16 | (subnet & 255) << 8 | host << 4
                }
                Role::Scanner => 0x6440_0000 + number,
                Role::Spoofed => 0x6460_0000 + number,
                Role::Target => 0xac10_0000 + number,
                Role::Victim => 0xc0a8_0000 + number,
                Role::User => 0x0a40_0000 + number,
                Role::Site => 0x0a80_0000 + number,
            })
        };
        Self { ipv6, bits }
    }

    pub(crate) fn to_ip(self) -> IpAddr {
        if self.ipv6 {
            Ipv6Addr::from(self.bits).into()
        } else {
            Ipv4Addr::from(self.bits as u32).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn no_two_hosts_share_an_address() {
        let roles = [
            (Role::Client, 1 << 16),
            (Role::Server, 1 << 12),
            (Role::Scanner, 1 << 21),
            (Role::Spoofed, 1 << 21),
            (Role::Target, 1 << 20),
            (Role::Victim, 1 << 16),
            (Role::User, 1 << 17),
            (Role::Site, 1 << 16),
        ];
        for ipv6 in [false, true] {
            let mut seen = HashSet::new();
            for (role, hosts) in roles {
                // Every 7th host and both ends: enough to meet any overlap of neighbours.
                for n in (0..hosts).step_by(if hosts > 1 << 16 { 7 } else { 1 }).chain([hosts - 1])
                {
                    let fresh = seen.insert(Address::of(role, n, ipv6));
                    assert!(fresh || n == hosts - 1, "{role:?} {n} {ipv6}");
                }
            }
        }
    }
}
