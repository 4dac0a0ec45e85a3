//! How long servers of each application took to answer a SYN, as a histogram that merges over probes.

use std::collections::BTreeMap;

use ringtap::state::{Op, Row, Rows, Schema};
use ringtap::{Analysis, Flow, Room};
use serde::Serialize;

/// Classes of powers of two microseconds.
const CLASSES: usize = 32;
/// Bytes of a label in a row.
const LABEL: usize = 30;

static BUCKETS: Schema = Schema::new("latency.buckets", LABEL + 1, &[Op::Add]);

/// Connections by label and class. There are as many rows as applications, which a list bounds.
#[derive(Default)]
struct Latency(BTreeMap<[u8; LABEL], [u64; CLASSES]>);

#[derive(Serialize)]
struct Application {
    application: String,
    connections: u64,
    /// The largest microseconds of the class in which the quantile is.
    half_within_us: u64,
    most_within_us: u64,
}

/// The most microseconds of the class that the quantile is in: that of 50 or 99 of 100 connections.
fn quantile(classes: &[u64; CLASSES], percent: u64) -> u64 {
    let all: u128 = classes.iter().map(|own| u128::from(*own)).sum();
    let mut below = 0;
    let class = classes.iter().position(|own| {
        below += u128::from(*own);
        below * 100 >= all * u128::from(percent)
    });
    1 << class.unwrap_or(CLASSES - 1)
}

impl Analysis for Latency {
    const NAME: &'static str = "latency";
    const NEEDS: &'static [&'static str] = &["tcp"];
    const TAKES_MESSAGES: bool = false;
    const TABLES: &'static [&'static Schema] = &[&BUCKETS];

    type Report = Vec<Application>;

    fn new(_: &Room) -> Self {
        Self::default()
    }

    fn record(&mut self, flow: &Flow) {
        let Some(tcp) = &flow.tcp else { return };
        let (Some(us), Some(application)) = (tcp.handshake_us[0], &flow.application) else {
            return;
        };
        let class = (32 - us.leading_zeros() as usize).min(CLASSES - 1);
        self.0.entry(*application.label.padded()).or_default()[class] += 1;
    }

    fn save(&self, _: &'static Schema, rows: &mut Rows) {
        for (label, classes) in &self.0 {
            for (class, &count) in classes.iter().enumerate().filter(|(_, count)| **count > 0) {
                rows.push(&[label, &[class as u8]], &[count], &[]);
            }
        }
    }

    fn load(&mut self, _: &'static Schema, row: &Row<'_>) -> Option<()> {
        let (label, class) = row.key().split_first_chunk()?;
        let [count] = row.numbers();
        let own = self.0.entry(*label).or_default().get_mut(usize::from(*class.first()?))?;
        *own = own.checked_add(count)?;
        Some(())
    }

    fn merge(&mut self, other: Self) {
        for (label, more) in other.0 {
            let own = self.0.entry(label).or_default();
            own.iter_mut().zip(more).for_each(|(own, more)| *own += more);
        }
    }

    fn report(self) -> Vec<Application> {
        let row = |(label, classes): ([u8; LABEL], [u64; CLASSES])| Application {
            application: String::from_utf8_lossy(&label).trim_end_matches('\0').to_owned(),
            connections: classes.iter().sum(),
            half_within_us: quantile(&classes, 50),
            most_within_us: quantile(&classes, 99),
        };
        self.0.into_iter().map(row).collect()
    }
}

ringtap::main![Latency];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_everywhere() {
        ringtap::testing::equal_everywhere::<Latency>([ringtap::testing::BUNDLED]);
    }

    #[test]
    fn quantiles_are_bounds_of_classes() {
        let mut classes = [0; CLASSES];
        (classes[3], classes[10]) = (98, 2);
        assert_eq!((quantile(&classes, 50), quantile(&classes, 99)), (8, 1_024));
    }
}
