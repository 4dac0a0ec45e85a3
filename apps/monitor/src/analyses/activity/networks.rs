//! The networks of a host, the nearest first.

use std::net::{IpAddr, Ipv6Addr};

use ringtap_sketch::{Hierarchy, Parent};

use super::rows::{Network, Prefix};

/// An address; IPv4 in IPv6 form.
pub(crate) type Host = [u8; 16];

/// From a host up to all hosts of its version.
pub(super) const PARENTS: [Parent<Host>; 4] = [
    |host| within(host, 1),
    |host| within(host, 2),
    |host| within(host, 3),
    |host| within(host, 4),
];

/// Prefix lengths of each level.
const IPV4: [u8; 5] = [32, 24, 16, 8, 0];
const IPV6: [u8; 5] = [128, 64, 48, 32, 0];

/// A listed network has at least a hundredth of all octets.
const SHARE: u64 = 100;

fn is_ipv4(host: &Host) -> bool {
    Ipv6Addr::from(*host).to_ipv4_mapped().is_some()
}

/// A host's network of a level.
fn within(host: &Host, level: usize) -> Host {
    let length = if is_ipv4(host) { 96 + IPV4[level] } else { IPV6[level] };
    let mask = u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0);
    (u128::from_be_bytes(*host) & mask).to_be_bytes()
}

/// Networks with a large share of all octets outside of heavy hosts and longer listed networks. The
/// rest of an IP version is not a network.
pub(super) fn heavy(networks: &Hierarchy<Host>) -> Vec<Network> {
    let least = networks.total() / SHARE + 1;
    let row = |heavy: ringtap_sketch::HeavyPrefix<Host>| Network {
        prefix: Prefix {
            address: IpAddr::from(heavy.key).to_canonical(),
            length: if is_ipv4(&heavy.key) { IPV4[heavy.level] } else { IPV6[heavy.level] },
        },
        lower: heavy.lower,
        upper: heavy.upper,
        beyond: heavy.beyond,
    };
    let heavy = networks.heavy(least).into_iter();
    heavy.filter(|heavy| (1..PARENTS.len()).contains(&heavy.level)).map(row).collect()
}
