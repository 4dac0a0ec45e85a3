//! A measurement as bytes, for merging with those of other machines.
//!
//! ```text
//!  {"ringtap_measurement":1,"structure":"mg","key":"source",…,"parts":[n4, n6, d4, d6]}\n    one line of JSON
//!  │ structure of IPv4: n4 bytes │ of IPv6: n6 │ distinct keys of IPv4: d4 │ of IPv6: d6 │
//! ```
//!
//! A structure's bytes are its image (magic, version, checksum); distinct keys are HyperLogLogs of
//! Apache DataSketches. A part of no bytes is absent. Every field is checked against the bytes.

use ringtap_sketch::{Distinct, Mismatch};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::counts::{PacketCounts, Side};
use crate::findings::Findings;
use crate::keys::{CountBy, Keys, PacketKey};
use crate::settings::{Kind, Settings, State, Weight};
use crate::structure::Structure;

const VERSION: u32 = 1;
/// The longest first line.
const HEAD_MOST: usize = 4096;

/// A measurement read from bytes.
#[derive(Clone, Debug)]
pub struct Image {
    settings: Settings,
    packets: PacketCounts,
    parts: [Vec<u8>; 4],
}

/// Why bytes are not a measurement, or cannot be merged.
#[derive(Debug, Error)]
pub enum ImageError {
    /// The first line is not the header of a measurement.
    #[error("not a measurement: use a file of 'ringtap measure --write sketch:PATH'")]
    NotAMeasurement,
    /// An unknown version of the format.
    #[error("unknown version {0} of a measurement: use version {VERSION}")]
    Version(u32),
    /// The contents contradict the header or a checksum.
    #[error("damaged: {0}")]
    Damaged(String),
    /// Measurements with different settings.
    #[error("the {what} differs: {own} and {other}")]
    Unlike {
        /// The setting.
        what: &'static str,
        /// Its value in the first measurement.
        own: String,
        /// Its value in the other one.
        other: String,
    },
    /// Structures of different sizes or seeds.
    #[error(
        "the structures differ in size or seed: use the same --memory and \
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    threshold: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    top: Option<usize>,
    measured: u64,
    no_address: u64,
    no_such_keys: u64,
    parts: [usize; 4],
}

impl<V: Keys> Findings<V> {
    /// The measurement as bytes, without the exact answer of a check and without times.
    pub fn to_bytes(&self) -> Vec<u8> {
        let Self { settings, v4, v6, packets, .. } = self;
        let parts = [structure(v4), structure(v6), distinct(v4), distinct(v6)];
        let head = Head {
            ringtap_measurement: VERSION,
            structure: settings.structure.to_string(),
            key: settings.by.to_string(),
            weight: settings.weight.to_string(),
            threshold: settings.threshold,
            top: settings.top,
            measured: packets.measured,
            no_address: packets.no_address,
            no_such_keys: packets.no_such_keys,
            parts: parts.each_ref().map(Vec::len),
        };
        // Strings and numbers only: JSON can hold all of them.
        let mut bytes = serde_json::to_vec(&head).unwrap_or_default();
        bytes.push(b'\n');
        parts.iter().for_each(|part| bytes.extend(part));
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
                rest.split_at_checked(len).ok_or_else(|| damaged("the file is truncated"))?;
            (*part, rest) = (own.to_vec(), after);
        }
        if !rest.is_empty() {
            return Err(damaged("unexpected bytes after the end"));
        }
        let settings = Settings {
            structure: head.structure.parse::<Kind>().map_err(damaged)?,
            state: State::Separate,
            by: head.key.parse::<CountBy>().map_err(damaged)?,
            weight: head.weight.parse::<Weight>().map_err(damaged)?,
            threshold: head.threshold,
            top: head.top,
            interval_ns: None,
            // The structures exist: no memory is allocated.
            memory_bytes: 0,
            check: false,
            distinct: false,
            seed: 0,
        };
        if head.threshold.is_some_and(|share| !(share > 0.0 && share <= 1.0)) {
            return Err(damaged("invalid threshold"));
        }
        let Head { measured, no_address, no_such_keys, .. } = head;
        let packets =
            PacketCounts { measured, no_address, no_such_keys, ..PacketCounts::default() };
        Ok(Self { settings, packets, parts })
    }

    /// The kind of keys.
    pub fn by(&self) -> CountBy {
        self.settings.by
    }

    /// Returns an error if the kind of keys differs from `by`.
    pub fn check_key(&self, by: CountBy) -> Result<(), ImageError> {
        let own = self.settings.by;
        if own == by {
            return Ok(());
        }
        Err(ImageError::Unlike { what: "key", own: by.to_string(), other: own.to_string() })
    }

    /// The measurement with another choice of the keys listed.
    #[must_use]
    pub fn listing(mut self, threshold: Option<f64>, top: Option<usize>) -> Self {
        (self.settings.threshold, self.settings.top) = (threshold, top);
        self
    }

    /// Reads the structures. `V` must match [`Image::by`].
    pub fn findings<V: Keys>(&self) -> Result<Findings<V>, ImageError> {
        let [v4, v6, distinct4, distinct6] = &self.parts;
        let kind = self.settings.structure;
        let mut findings = Findings::new(&self.settings);
        findings.v4 = side(kind, v4, distinct4)?;
        findings.v6 = side(kind, v6, distinct6)?;
        findings.packets = self.packets.clone();
        findings.memory_bytes = findings.held_bytes();
        Ok(findings)
    }
}

impl<V: Keys> Findings<V> {
    /// Adds the measurement of another machine.
    pub fn merge(&mut self, other: Self) -> Result<(), ImageError> {
        let (own, others) = (&self.settings, &other.settings);
        let fields = [
            ("structure", own.structure.to_string(), others.structure.to_string()),
            ("key", own.by.to_string(), others.by.to_string()),
            ("weight", own.weight.to_string(), others.weight.to_string()),
        ];
        match fields.into_iter().find(|(_, own, other)| own != other) {
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
