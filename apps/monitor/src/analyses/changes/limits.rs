//! Which changes of the user's own hosts are looked for, and which hosts are own.

use std::net::IpAddr;
use std::sync::Arc;

use ringtap_enrich::Networks;
use serde::Serialize;

use crate::analyses::activity::UnknownLimit;

/// The kinds of changes that are looked for. None is by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ChangeLimits {
    /// Learning time of devices, nanoseconds: hosts that send within it are not new.
    #[serde(rename = "new_device_ns", skip_serializing_if = "Option::is_none")]
    pub new_device: Option<u64>,
    /// Learning time of server ports, nanoseconds: ports on which hosts answer within it are not new.
    #[serde(rename = "new_server_port_ns", skip_serializing_if = "Option::is_none")]
    pub new_server_port: Option<u64>,
    /// A host that exchanges more than this many times its median in an interval has changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume_change: Option<u64>,
    /// And more than this many octets; 100 MB by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume_floor: Option<u64>,
}

/// By default, no volume of up to this many octets is a change.
const VOLUME_FLOOR: u64 = 100_000_000;

impl ChangeLimits {
    /// Whether any kind is looked for.
    pub fn any(&self) -> bool {
        let Self { new_device, new_server_port, volume_change, volume_floor: _ } = self;
        new_device.is_some() || new_server_port.is_some() || volume_change.is_some()
    }

    /// Sets a limit by name: a time in nanoseconds, or a number.
    ///
    /// # Errors
    /// If the name is unknown.
    pub fn set(&mut self, name: &str, limit: u64) -> Result<(), UnknownLimit> {
        let which = match name {
            "new-device" => &mut self.new_device,
            "new-server-port" => &mut self.new_server_port,
            "volume-change" => &mut self.volume_change,
            "volume-floor" => &mut self.volume_floor,
            other => return Err(UnknownLimit(other.into())),
        };
        *which = Some(limit);
        Ok(())
    }

    /// Whether the limit of this name is a time.
    pub fn is_time(name: &str) -> bool {
        matches!(name, "new-device" | "new-server-port")
    }

    /// Whether these octets are a change of a volume with this median.
    pub(super) fn is_change(&self, octets: u64, median: u64) -> bool {
        let floor = self.volume_floor.unwrap_or(VOLUME_FLOOR);
        self.volume_change.is_some_and(|times| octets > median.saturating_mul(times))
            && octets > floor
    }
}

/// The user's own networks.
#[derive(Clone, Debug, Default)]
pub struct OwnNetworks(pub(crate) Option<Arc<Networks>>);

impl OwnNetworks {
    /// Whether an address is in a network of `--networks`; without that list, whether it is private (RFC 1918, RFC 4193).
    pub(crate) fn has(&self, host: IpAddr) -> bool {
        match (&self.0, host) {
            (Some(networks), host) => networks.name(host).is_some(),
            (None, IpAddr::V4(host)) => host.is_private(),
            (None, IpAddr::V6(host)) => host.is_unique_local(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_hosts_are_in_the_list_or_private() {
        let has = |own: &OwnNetworks, hosts: &[&str]| -> Vec<bool> {
            hosts.iter().map(|host| own.has(host.parse().unwrap())).collect()
        };
        let hosts = ["10.1.0.1", "192.168.0.1", "8.8.8.8", "fd00::1", "2001:db8::1", "fe80::1"];
        let private = has(&OwnNetworks::default(), &hosts);
        assert_eq!(private, [true, true, false, true, false, false]);
        let list = Networks::parse(b"8.0.0.0/8 office\n2001:db8::/32 lab\n").unwrap();
        let listed = has(&OwnNetworks(Some(Arc::new(list))), &hosts);
        assert_eq!(listed, [false, false, true, false, true, false]);
    }

    #[test]
    fn a_change_is_above_both_limits() {
        let mut limits = ChangeLimits::default();
        limits.set("volume-floor", 100).unwrap();
        assert!(!limits.any() && !limits.is_change(u64::MAX, 0));
        limits.set("volume-change", 3).unwrap();
        for (octets, median, is) in
            [(100, 0, false), (101, 0, true), (300, 100, false), (301, 100, true)]
        {
            assert_eq!(limits.is_change(octets, median), is, "{octets} {median}");
        }
        limits.volume_floor = None;
        assert!(!limits.is_change(VOLUME_FLOOR, 0) && limits.is_change(VOLUME_FLOOR + 1, 0));
        assert!(limits.set("volume", 1).is_err());
    }
}
