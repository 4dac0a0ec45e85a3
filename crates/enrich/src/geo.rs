//! Countries and autonomous systems of addresses, from databases in the MMDB format (MaxMind DB file format 2.0).
//!
//! Fields are those of MaxMind's databases for countries, cities and autonomous systems, and those of IPinfo:
//!
//! ```text
//! country   country.iso_code                    country_code, country
//! number    autonomous_system_number            asn
//! name      autonomous_system_organization      as_name, name
//! ```

use std::fmt;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use maxminddb::{LookupResult, PathElement, Reader, WithinOptions};
use ringtap_flow::Origin;

/// Why a database cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum InvalidDatabase {
    /// The file cannot be read.
    #[error(transparent)]
    Read(#[from] std::io::Error),
    /// The file is not a database.
    #[error("not a MaxMind database (MMDB): {0}")]
    Format(maxminddb::MaxMindDbError),
    /// No record has a field that is read.
    #[error(
        "its type is {0:?}, and no record has a country or an autonomous system: use a database with {FIELDS}"
    )]
    NoValues(String),
}

const FIELDS: &str = "country.iso_code, country_code, country, autonomous_system_number, asn, \
                      autonomous_system_organization or as_name";

/// Names of the fields for numbers of autonomous systems.
const NUMBERS: [&str; 2] = ["autonomous_system_number", "asn"];

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
        let database = Reader::from_source(bytes).map_err(InvalidDatabase::Format)?;
        if !has_values(&database) {
            return Err(InvalidDatabase::NoValues(database.metadata().database_type.clone()));
        }
        self.databases.push(database);
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
            if origin.country.is_none() {
                origin.country = country(&found);
            }
            if origin.as_number.is_none() {
                origin.as_number = as_number(&found);
            }
            if origin.as_name.is_none() {
                origin.as_name = as_name(&found).map(Arc::from);
            }
        }
    }

    /// Bytes of memory.
    pub(crate) fn memory(&self) -> u64 {
        self.bytes
    }
}

/// Whether any network has a value; its records are searched until one has.
fn has_values(database: &Reader<Vec<u8>>) -> bool {
    let networks = database.networks(WithinOptions::default());
    let mut found = networks.into_iter().flatten().flatten();
    found.any(|found| {
        country(&found).is_some() || as_number(&found).is_some() || as_name(&found).is_some()
    })
}

type Found<'a> = LookupResult<'a, Vec<u8>>;

fn text<'a>(found: &Found<'a>, path: &[&str]) -> Option<&'a str> {
    let path: Vec<_> = path.iter().map(|key| PathElement::Key(key)).collect();
    found.decode_path::<&str>(&path).ok().flatten().filter(|text| !text.is_empty())
}

/// IPinfo has a code in `country_code`, or in `country`, which elsewhere is a name.
fn country(found: &Found<'_>) -> Option<[u8; 2]> {
    let code = |path: &[&str]| {
        let code: [u8; 2] = text(found, path)?.as_bytes().try_into().ok()?;
        code.iter().all(u8::is_ascii_uppercase).then_some(code)
    };
    code(&["country", "iso_code"])
        .or_else(|| code(&["country_code"]))
        .or_else(|| code(&["country"]))
}

/// A number of any width, or a text as `AS64500`.
fn as_number(found: &Found<'_>) -> Option<u32> {
    NUMBERS.iter().find_map(|name| number(found, name))
}

fn number(found: &Found<'_>, name: &str) -> Option<u32> {
    /// Reads an integer of the type of the database, which must be that of the value.
    fn integer<'a, T: serde::Deserialize<'a> + TryInto<u32>>(
        found: &Found<'a>,
        name: &str,
    ) -> Option<u32> {
        let path = [PathElement::Key(name)];
        found.decode_path::<T>(&path).ok().flatten()?.try_into().ok()
    }
    integer::<u32>(found, name)
        .or_else(|| integer::<u16>(found, name))
        .or_else(|| integer::<u64>(found, name))
        .or_else(|| integer::<u128>(found, name))
        .or_else(|| integer::<i32>(found, name))
        .or_else(|| {
            let text = text(found, &[name])?;
            let digits = text.strip_prefix("AS").or_else(|| text.strip_prefix("as"));
            digits.unwrap_or(text).parse().ok()
        })
}

/// IPinfo has `as_name`, or `name` beside `asn`.
fn as_name<'a>(found: &Found<'a>) -> Option<&'a str> {
    text(found, &["autonomous_system_organization"])
        .or_else(|| text(found, &["as_name"]))
        .or_else(|| text(found, &["name"]).filter(|_| text(found, &["asn"]).is_some()))
}
