//! The names of VLANs, from a list of the user.

use std::path::Path;
use std::sync::Arc;

use crate::lines::{InvalidList, each, read};

/// The number of identifiers.
const COUNT: usize = 1 << 12;

/// Names of VLANs.
#[derive(Debug)]
pub struct Vlans {
    /// By identifier.
    names: Box<[Option<Arc<str>>]>,
}

impl Vlans {
    /// Reads a list: an identifier and a name on each line.
    ///
    /// # Errors
    /// [`InvalidList`].
    pub fn read(path: &Path) -> Result<Self, InvalidList> {
        Self::parse(&read(path)?)
    }

    /// Parses a list. Of equal identifiers the last one counts.
    ///
    /// # Errors
    /// [`InvalidList::Line`].
    pub fn parse(list: &[u8]) -> Result<Self, InvalidList> {
        let mut names = vec![None; COUNT].into_boxed_slice();
        each(list, |vlan, name| {
            let place = vlan.parse::<usize>().ok().and_then(|vlan| names.get_mut(vlan));
            let place = place.ok_or("use a VLAN from 0 to 4095 and a name, as in 10 office")?;
            if name.is_empty() {
                return Err("the name is missing, as in 10 office");
            }
            *place = Some(Arc::from(name));
            Ok(())
        })?;
        Ok(Self { names })
    }

    /// The name of a VLAN.
    pub fn name(&self, vlan: u16) -> Option<&Arc<str>> {
        self.names.get(usize::from(vlan))?.as_ref()
    }

    /// The number of names.
    pub fn count(&self) -> usize {
        self.names.iter().flatten().count()
    }

    /// Bytes of memory.
    pub(crate) fn memory(&self) -> u64 {
        let names: usize = self.names.iter().flatten().map(|name| name.len() + 32).sum();
        (size_of_val(&*self.names) + names) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vlan_has_the_last_of_its_names() {
        let vlans =
            Vlans::parse(b"# id name\n10 office\n0 no VLAN\n4095 last\n10 lab 1\n").unwrap();
        let name = |vlan| vlans.name(vlan).map(|name| &**name);
        assert_eq!([name(10), name(0), name(4095)], [Some("lab 1"), Some("no VLAN"), Some("last")]);
        assert_eq!([name(1), name(4096), name(u16::MAX)], [None; 3]);
        assert_eq!(vlans.count(), 3);
    }

    #[test]
    fn a_wrong_line_is_an_error() {
        let error = |list: &[u8]| Vlans::parse(list).unwrap_err().to_string();
        assert!(error(b"10\n").starts_with("line 1: the name is missing"));
        for wrong in ["4096 x", "-1 x", "office 10", "99999999999999999999 x"] {
            assert!(error(wrong.as_bytes()).contains("use a VLAN from 0 to 4095"), "{wrong}");
        }
    }
}
