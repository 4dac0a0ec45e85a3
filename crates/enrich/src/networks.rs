//! The user's own networks: their names, by the longest network with an address.

use std::path::Path;
use std::sync::Arc;

use crate::lines::{InvalidList, each, read, wrong_network};
use crate::prefixes::Prefixes;

/// Most networks.
const NETWORKS_MAX: usize = 1 << 20;

/// Networks with names.
#[derive(Debug)]
pub struct Networks {
    prefixes: Prefixes,
    names: Vec<Arc<str>>,
}

impl Networks {
    /// Reads a list: a network and its name on each line.
    ///
    /// # Errors
    /// [`InvalidList`].
    pub fn read(path: &Path) -> Result<Self, InvalidList> {
        Self::parse(&read(path)?)
    }

    /// Parses a list. Of equal networks the last one counts.
    ///
    /// # Errors
    /// [`InvalidList::Line`].
    pub fn parse(list: &[u8]) -> Result<Self, InvalidList> {
        let (mut networks, mut names) = (Vec::new(), Vec::new());
        each(list, |network, name| {
            let network = network.parse().map_err(|wrong| {
                wrong_network(wrong).unwrap_or("use a network and a name, as in 10.1.0.0/16 office")
            })?;
            if name.is_empty() {
                return Err("the name is missing, as in 10.1.0.0/16 office");
            }
            if names.len() >= NETWORKS_MAX {
                return Err("too many networks: 1,048,576 at most");
            }
            networks.push((network, names.len() as u32));
            names.push(Arc::from(name));
            Ok(())
        })?;
        Ok(Self { prefixes: Prefixes::new(networks.into_iter()), names })
    }

    /// The name of the longest network with this address.
    pub fn name(&self, address: std::net::IpAddr) -> Option<&Arc<str>> {
        self.prefixes.find(address).map(|number| &self.names[number as usize])
    }

    /// The number of networks.
    pub fn count(&self) -> usize {
        self.names.len()
    }

    /// Bytes of memory.
    pub(crate) fn memory(&self) -> u64 {
        let names: usize = self.names.iter().map(|name| name.len() + 32).sum();
        (self.prefixes.memory() + names) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_network_gives_the_name() {
        let list =
            b"10.0.0.0/8 all of it\n10.1.0.0/16 office # main\n2001:db8::/32 lab\n10.0.0.0/8 all\n";
        let networks = Networks::parse(list).unwrap();
        let name = |address: &str| networks.name(address.parse().unwrap()).map(|name| &**name);
        assert_eq!((name("10.2.0.1"), name("10.1.0.1")), (Some("all"), Some("office")));
        assert_eq!((name("2001:db8::1"), name("192.0.2.1")), (Some("lab"), None));
        let list =
            "\u{feff}::ffff:10.1.0.0/112 office \t\r\n; all of IPv4\n0.0.0.0/0 others ; text\n";
        let networks = Networks::parse(list.as_bytes()).unwrap();
        let name = |address: &str| networks.name(address.parse().unwrap()).map(|name| &**name);
        assert_eq!((name("10.1.0.1"), name("10.2.0.1")), (Some("office"), Some("others")));
        assert_eq!(name("::ffff:10.1.0.1"), None, "an address of a packet is what it is");
    }

    #[test]
    fn a_wrong_line_is_an_error() {
        let error = |list: &str| Networks::parse(list.as_bytes()).unwrap_err().to_string();
        assert!(error("10.0.0.0/8\n").starts_with("line 1: the name is missing"));
        assert!(error("office 10.0.0.0/8").contains("use a network and a name"));
        assert!(error("10.0.0.1/8 x").contains("are not 0"));
        assert!(error("::ffff:10.0.0.0/8 x").contains("use the IPv4 network, or 97 to 128"));
    }
}
