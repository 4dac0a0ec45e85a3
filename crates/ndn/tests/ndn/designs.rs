//! The designs of a forwarder that are compared with a single one: shards.

use ringtap_ndn::forwarder::{Parallel, Settings};

use crate::support::Design;

/// Shards, for each number of `workers`.
pub(crate) fn of(settings: &Settings, workers: &[usize]) -> Vec<(String, Box<dyn Design>)> {
    let design = |&workers: &usize| -> (String, Box<dyn Design>) {
        (format!("{workers} shards"), Box::new(Parallel::new(settings, workers)))
    };
    workers.iter().map(design).collect()
}
