//! A measurement as bytes, to be merged with those of other machines.
//!
//! ```text
//!  {"ringtap_measurement":1,"structure":"mg","key":"source",…,"parts":[n4, n6, d4, d6]}\n    one line of JSON
//!  │ structure of IPv4: n4 bytes │ of IPv6: n6 │ distinct keys of IPv4: d4 │ of IPv6: d6 │
//! ```
//!
//! A structure's bytes are its image (magic, version, checksum); distinct keys are HyperLogLogs of Apache DataSketches. A
//! part of no bytes is not there. Nothing is believed that the bytes do not hold.

use ringtap_sketch::{Distinct, Mismatch};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::findings::Findings;
use crate::keys::{CountBy, Keys, PacketKey};
use crate::settings::{Kind, Settings, State, Weight};
use crate::structure::Structure;
use crate::worker::{Side, Tally};

const VERSION: u32 = 1;
/// No first line is longer.
const HEAD_MOST: usize = 4096;

/// A measurement that was read.
#[derive(Clone, Debug)]
pub struct Image {
    settings: Settings,
    tally: Tally,
    parts: [Vec<u8>; 4],
}

/// Why bytes are no measurement, or cannot be merged.
#[derive(Debug, Error)]
pub enum ImageError {
    #[error("not a measurement; 'ringtap measure --write sketch:PATH' makes one")]
    NotAMeasurement,
    #[error("a measurement of version {0}; version {VERSION} is read")]
    Version(u32),
    #[error("damaged: {0}")]
    Damaged(String),
    #[error("the {what} differs: {own} and {other}")]
    Unlike { what: &'static str, own: String, other: String },
    #[error(
        "the structures differ in size or in the seed of their hash; measure with the same --memory and \
         --seed on all machines ({0})"
    )]
    Mismatch(#[from] Mismatch),
}

#[derive(Serialize, Deserialize)]
struct Head {
    ringtap_measurement: u32,
    structure: String,
    key: String,
    weight: String,
    threshold: f64,
    measured: u64,
    no_address: u64,
    no_such_keys: u64,
    parts: [usize; 4],
}

impl<V: Keys> Findings<V> {
    /// As bytes. The exact answer of a check and times are not in them.
    pub fn to_bytes(&self) -> Vec<u8> {
        let Self { settings, v4, v6, tally, .. } = self;
        let parts = [structure(v4), structure(v6), distinct(v4), distinct(v6)];
        let head = Head {
            ringtap_measurement: VERSION,
            structure: settings.structure.to_string(),
            key: settings.by.to_string(),
            weight: settings.weight.to_string(),
            threshold: settings.threshold,
            measured: tally.measured,
            no_address: tally.no_address,
            no_such_keys: tally.no_such_keys,
            parts: parts.each_ref().map(Vec::len),
        };
        // Of strings and numbers: there is nothing that JSON cannot hold.
        let mut bytes = serde_json::to_vec(&head).unwrap_or_default();
        bytes.push(b'\n');
        bytes.extend(parts.concat());
        bytes
    }
}

fn structure<K: PacketKey>(side: &Side<K>) -> Vec<u8> {
    side.structure.as_ref().map(Structure::to_bytes).unwrap_or_default()
}

fn distinct<K: PacketKey>(side: &Side<K>) -> Vec<u8> {
    side.distinct.as_ref().map(Distinct::to_apache).unwrap_or_default()
}

impl Image {
    /// Reads a measurement.
    pub fn read(bytes: &[u8]) -> Result<Self, ImageError> {
        let line = bytes[..bytes.len().min(HEAD_MOST)].iter().position(|&byte| byte == b'\n');
        let (head, mut rest) = bytes.split_at(line.ok_or(ImageError::NotAMeasurement)?);
        rest = &rest[1..];
        let version = serde_json::from_slice::<serde_json::Value>(head).ok();
        let version = version.and_then(|head| head.get("ringtap_measurement")?.as_u64());
        let version = version.ok_or(ImageError::NotAMeasurement)?;
        if version != u64::from(VERSION) {
            return Err(ImageError::Version(version.try_into().unwrap_or(u32::MAX)));
        }
        let head: Head = serde_json::from_slice(head).map_err(damaged)?;
        let mut parts = [const { Vec::new() }; 4];
        for (part, len) in parts.iter_mut().zip(head.parts) {
            let (own, after) =
                rest.split_at_checked(len).ok_or_else(|| damaged("it ends too early"))?;
            (*part, rest) = (own.to_vec(), after);
        }
        if !rest.is_empty() {
            return Err(damaged("it goes on behind its end"));
        }
        let settings = Settings {
            structure: head.structure.parse::<Kind>().map_err(damaged)?,
            state: State::Separate,
            by: head.key.parse::<CountBy>().map_err(damaged)?,
            weight: head.weight.parse::<Weight>().map_err(damaged)?,
            threshold: head.threshold,
            // The structures are there: they are not made anew.
            memory_bytes: 0,
            check: false,
            distinct: false,
            seed: 0,
        };
        if !(settings.threshold > 0.0 && settings.threshold <= 1.0) {
            return Err(damaged("a threshold that is none"));
        }
        let Head { measured, no_address, no_such_keys, .. } = head;
        let tally = Tally { measured, no_address, no_such_keys, ..Tally::default() };
        Ok(Self { settings, tally, parts })
    }

    /// What is counted, so that the caller can say of which keys the findings are.
    pub fn by(&self) -> CountBy {
        self.settings.by
    }

    /// Refuses another key than this.
    pub fn check_key(&self, by: CountBy) -> Result<(), ImageError> {
        let own = self.settings.by;
        if own == by {
            return Ok(());
        }
        Err(ImageError::Unlike { what: "key", own: by.to_string(), other: own.to_string() })
    }

    /// The same with another threshold.
    #[must_use]
    pub fn with_threshold(mut self, threshold: f64) -> Self {
        self.settings.threshold = threshold;
        self
    }

    /// What it holds. `V` is of [`Image::by`].
    pub fn findings<V: Keys>(&self) -> Result<Findings<V>, ImageError> {
        let [v4, v6, distinct4, distinct6] = &self.parts;
        let kind = self.settings.structure;
        let mut findings = Findings::new(&self.settings);
        findings.v4 = side(kind, v4, distinct4)?;
        findings.v6 = side(kind, v6, distinct6)?;
        findings.tally = self.tally.clone();
        let held = |bytes: Option<usize>| bytes.unwrap_or(0);
        findings.memory_bytes = held(findings.v4.structure.as_ref().map(Structure::memory_bytes))
            + held(findings.v6.structure.as_ref().map(Structure::memory_bytes));
        Ok(findings)
    }
}

impl<V: Keys> Findings<V> {
    /// Adds what another machine found.
    pub fn merge(&mut self, other: Self) -> Result<(), ImageError> {
        let (own, its) = (&self.settings, &other.settings);
        let told = [
            ("structure", own.structure.to_string(), its.structure.to_string()),
            ("key", own.by.to_string(), its.by.to_string()),
            ("weight", own.weight.to_string(), its.weight.to_string()),
        ];
        match told.into_iter().find(|(_, own, other)| own != other) {
            Some((what, own, other)) => Err(ImageError::Unlike { what, own, other }),
            None => Ok(self.join(other)?),
        }
    }
}

fn side<K: PacketKey>(
    kind: Kind,
    structure: &[u8],
    distinct: &[u8],
) -> Result<Side<K>, ImageError> {
    let mut side = Side::new();
    if !structure.is_empty() {
        side.structure = Some(Structure::from_bytes(kind, structure).map_err(damaged)?);
    }
    if !distinct.is_empty() {
        side.distinct = Some(Distinct::from_apache(distinct).map_err(damaged)?);
    }
    Ok(side)
}

fn damaged(what: impl ToString) -> ImageError {
    ImageError::Damaged(what.to_string())
}
