//! Countries and autonomous systems of addresses, from databases in the MMDB format (MaxMind DB file format 2.0).
//!
//! Fields are those of the databases for countries, cities and autonomous systems: `country.iso_code`,
//! `autonomous_system_number` and `autonomous_system_organization`.

use std::fmt;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use maxminddb::{PathElement, Reader};
use ringtap_flow::Origin;

/// Why a database cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum InvalidDatabase {
    /// The file cannot be read.
    #[error(transparent)]
    Read(#[from] std::io::Error),
    /// It is not a database.
    #[error("not a MaxMind database (MMDB): {0}")]
    Format(maxminddb::MaxMindDbError),
}

/// Databases; of each value the first one that has it counts.
#[derive(Default)]
pub struct Geo {
    databases: Vec<Reader<Vec<u8>>>,
    bytes: u64,
}

impl fmt::Debug for Geo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Geo").field(&self.types()).finish()
    }
}

impl Geo {
    /// Reads one more database.
    ///
    /// # Errors
    /// [`InvalidDatabase`].
    pub fn add(&mut self, path: &Path) -> Result<(), InvalidDatabase> {
        let bytes = std::fs::read(path)?;
        self.bytes += bytes.len() as u64;
        self.databases.push(Reader::from_source(bytes).map_err(InvalidDatabase::Format)?);
        Ok(())
    }

    /// The types that the databases state.
    pub fn types(&self) -> Vec<&str> {
        self.databases.iter().map(|one| one.metadata().database_type.as_str()).collect()
    }

    /// Adds what is known to an origin.
    pub(crate) fn look_up(&self, address: IpAddr, origin: &mut Origin) {
        for database in &self.databases {
            let Ok(found) = database.lookup(address) else { continue };
            if !found.has_data() {
                continue;
            }
            let text = |path: &[PathElement<'_>]| found.decode_path::<&str>(path).ok().flatten();
            if origin.country.is_none() {
                let country = text(&[PathElement::Key("country"), PathElement::Key("iso_code")]);
                origin.country = country.and_then(|code| code.as_bytes().try_into().ok());
            }
            if origin.as_number.is_none() {
                let number = [PathElement::Key("autonomous_system_number")];
                origin.as_number = found.decode_path(&number).ok().flatten();
            }
            if origin.as_name.is_none() {
                let name = text(&[PathElement::Key("autonomous_system_organization")]);
                origin.as_name = name.filter(|name| !name.is_empty()).map(Arc::from);
            }
        }
    }

    /// Bytes of memory.
    pub(crate) fn memory(&self) -> u64 {
        self.bytes
    }
}
