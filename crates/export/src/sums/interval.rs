//! Sums by interval of the flows' ends.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

use super::row::RowSum;

/// Most intervals of [`Sums::default`].
pub const INTERVALS_MOST: usize = 64;

/// The sum of rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sum {
    /// Rows.
    pub rows: u64,
    /// Their directions.
    pub directions: u64,
    /// Their packets.
    pub packets: u64,
    /// Their octets, modulo 2⁶⁴.
    pub octets: u64,
    /// The sum of [`RowSum::all`]; 32 hexadecimal digits in JSON.
    #[serde(with = "hex")]
    pub all: u128,
    /// The sum of [`RowSum::core`], likewise.
    #[serde(with = "hex")]
    pub core: u128,
}

impl Sum {
    /// Whether it has no rows.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }
}

impl From<&RowSum> for Sum {
    fn from(row: &RowSum) -> Self {
        let &RowSum { all, core, directions, packets, octets, .. } = row;
        Self { rows: 1, directions, packets, octets, all, core }
    }
}

impl AddAssign for Sum {
    fn add_assign(&mut self, other: Self) {
        self.rows = self.rows.wrapping_add(other.rows);
        self.directions = self.directions.wrapping_add(other.directions);
        self.packets = self.packets.wrapping_add(other.packets);
        self.octets = self.octets.wrapping_add(other.octets);
        self.all = self.all.wrapping_add(other.all);
        self.core = self.core.wrapping_add(other.core);
    }
}

/// The sums of rows by interval, at most a fixed number of intervals: those that end last. Rows of all earlier ones are
/// in [`Sums::others`]. So sums are equal whatever the order of rows, and of merges.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Form", into = "Form")]
pub struct Sums {
    /// By start of the interval, seconds since 1970.
    intervals: BTreeMap<u64, Sum>,
    others: Sum,
    most: usize,
}

impl Default for Sums {
    fn default() -> Self {
        Self::bounded(INTERVALS_MOST)
    }
}

impl Sums {
    /// No rows yet; at most `most` intervals, at least one.
    pub fn bounded(most: usize) -> Self {
        Self { intervals: BTreeMap::new(), others: Sum::default(), most: most.max(1) }
    }

    /// Adds a row to the interval of its end; intervals start at multiples of `interval_s` seconds, at least 1.
    pub fn add(&mut self, row: &RowSum, interval_s: u64) {
        let interval_s = interval_s.max(1);
        self.insert(row.end_ms / 1_000 / interval_s * interval_s, row.into());
    }

    /// The first second and the one after the last in which rows end; `None` if that is not known of all.
    pub fn span(&self, interval_s: u64) -> Option<[u64; 2]> {
        let (first, last) = (self.intervals.keys().next()?, self.intervals.keys().next_back()?);
        self.others.is_empty().then(|| [*first, last.saturating_add(interval_s)])
    }

    /// Adds all rows of `other`, which has the same intervals.
    pub fn merge(&mut self, other: &Self) {
        self.others += other.others;
        for (&start, &sum) in &other.intervals {
            self.insert(start, sum);
        }
    }

    fn insert(&mut self, start: u64, sum: Sum) {
        *self.intervals.entry(start).or_default() += sum;
        if self.intervals.len() > self.most
            && let Some((_, earliest)) = self.intervals.pop_first()
        {
            self.others += earliest;
        }
    }

    /// The sums by start of the interval, seconds since 1970.
    pub fn intervals(&self) -> &BTreeMap<u64, Sum> {
        &self.intervals
    }

    /// The sum of rows in intervals before all of [`Sums::intervals`].
    pub fn others(&self) -> &Sum {
        &self.others
    }

    /// The sum of all rows.
    pub fn total(&self) -> Sum {
        let mut total = self.others;
        self.intervals.values().for_each(|&sum| total += sum);
        total
    }
}

/// Sums in JSON.
#[derive(Serialize, Deserialize)]
struct Form {
    intervals: Vec<Interval>,
    #[serde(default, skip_serializing_if = "Sum::is_empty")]
    others: Sum,
}

#[derive(Serialize, Deserialize)]
struct Interval {
    start: u64,
    #[serde(flatten)]
    sum: Sum,
}

impl From<Sums> for Form {
    fn from(sums: Sums) -> Self {
        let intervals = sums.intervals.into_iter().map(|(start, sum)| Interval { start, sum });
        Self { intervals: intervals.collect(), others: sums.others }
    }
}

impl From<Form> for Sums {
    fn from(form: Form) -> Self {
        let mut sums = Self { others: form.others, ..Self::default() };
        form.intervals.into_iter().for_each(|one| sums.insert(one.start, one.sum));
        sums
    }
}

mod hex {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(number: &u128, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&format_args!("{number:032x}"))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u128, D::Error> {
        let text = String::deserialize(from)?;
        let number = (text.len() == 32).then(|| u128::from_str_radix(&text, 16).ok()).flatten();
        number.ok_or_else(|| D::Error::custom("a sum is 32 hexadecimal digits"))
    }
}
