//! Rivals written in C and C++ (shim/), as many as were installed when this was built.

#[cfg(any(boost, moodycamel, dpdk))]
mod shim;

use super::Candidate;

/// Those that build.rs found.
pub fn all() -> Vec<Candidate> {
    [
        #[cfg(boost)]
        shim::table(shim::rivals_boost),
        #[cfg(moodycamel)]
        shim::table(shim::rivals_moodycamel),
        #[cfg(dpdk)]
        shim::table(shim::rivals_dpdk),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Those that it did not find.
pub const MISSING: &[&str] = &[
    #[cfg(not(boost))]
    "boost::lockfree::spsc_queue (Debian: libboost-dev)",
    #[cfg(not(moodycamel))]
    "moodycamel::ReaderWriterQueue (Debian: libreaderwriterqueue-dev)",
    #[cfg(not(dpdk))]
    "DPDK's rte_ring (Debian: libdpdk-dev)",
];
