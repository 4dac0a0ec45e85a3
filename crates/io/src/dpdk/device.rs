//! The name of a device, and finding it.

use std::ffi::CString;

use crate::dpdk::error::{OpenError, words};
use crate::dpdk::queues::Queues;
use crate::dpdk::sys::environment;
use crate::dpdk::sys::port::{Facts, facts};

/// A device as users name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Device {
    text: String,
    on_pci: bool,
}

/// A device that DPDK has taken over.
pub(crate) struct Attached {
    pub(crate) port: u16,
    pub(crate) facts: Facts,
    pub(crate) queues: Queues,
}

impl Device {
    pub(crate) fn parse(text: &str) -> Result<Self, OpenError> {
        let name = text.split(',').next().unwrap_or_default();
        if name.is_empty() || text.contains('\0') {
            return Err(OpenError::Name { name: text.to_owned() });
        }
        let digits = name.split([':', '.']).map(str::len).collect::<Vec<_>>();
        let hex = name.split([':', '.']).all(|part| u16::from_str_radix(part, 16).is_ok());
        Ok(match digits[..] {
            [4, 2, 2, 1] if hex => Self { text: text.to_owned(), on_pci: true },
            // DPDK's port names contain the whole address.
            [2, 2, 1] if hex => Self { text: format!("0000:{text}"), on_pci: true },
            _ => Self { text: text.to_owned(), on_pci: false },
        })
    }

    /// The name with its arguments.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The name without its arguments.
    pub(crate) fn name(&self) -> &str {
        self.text.split(',').next().unwrap_or_default()
    }

    pub(crate) fn on_pci(&self) -> bool {
        self.on_pci
    }

    /// Makes DPDK take the device over, unless it has done so already.
    pub(crate) fn attach(&self) -> Result<Attached, OpenError> {
        let wrong = || OpenError::Name { name: self.text.clone() };
        let whole = CString::new(self.text()).map_err(|_| wrong())?;
        let name = CString::new(self.name()).map_err(|_| wrong())?;
        let failed = |why| OpenError::Attach { name: self.text.clone(), why };
        let port = match environment::find(&name) {
            Some(port) => port,
            None => {
                let tried = environment::attach(&whole);
                tried.map_err(|error| failed(words(&error, &environment::logged())))?;
                let none = || failed("not an Ethernet device".to_owned());
                environment::find(&name).ok_or_else(none)?
            }
        };
        let facts = facts(port).map_err(|error| failed(error.to_string()))?;
        let queues = Queues::of(&facts);
        Ok(Attached { port, facts, queues })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cards_and_virtual_devices_are_distinguished() {
        let parse = |text| Device::parse(text).unwrap();
        assert!(parse("0000:03:00.0").on_pci());
        assert_eq!(parse("af:00.1,arg=1").text(), "0000:af:00.1,arg=1");
        assert_eq!(parse("af:00.1,arg=1").name(), "0000:af:00.1");
        let file = parse("net_pcap0,rx_pcap=a.pcap,rx_pcap=b.pcap");
        assert!(!file.on_pci());
        assert_eq!(file.name(), "net_pcap0");
        assert!(!parse("zz:00.1").on_pci());
        assert!(Device::parse("").is_err() && Device::parse(",x").is_err());
        assert!(Device::parse("a\0b").is_err());
    }
}
