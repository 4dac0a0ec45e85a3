//! Rivals in C and C++ (shim/), as far as they were installed at build time.

mod shim;

use super::Candidate;

/// The rivals that build.rs found.
pub fn all() -> impl Iterator<Item = Candidate> {
    const TABLES: &[shim::Table] = &[
        #[cfg(boost)]
        shim::rivals_boost,
        #[cfg(moodycamel)]
        shim::rivals_moodycamel,
        #[cfg(dpdk)]
        shim::rivals_dpdk,
    ];
    TABLES.iter().flat_map(|&table| shim::candidates(table))
}

/// The rivals that build.rs did not find.
pub const MISSING: &[&str] = &[
    #[cfg(not(boost))]
    "boost::lockfree::spsc_queue (Debian: libboost-dev)",
    #[cfg(not(moodycamel))]
    "moodycamel::ReaderWriterQueue (Debian: libreaderwriterqueue-dev)",
    #[cfg(not(dpdk))]
    "DPDK's rte_ring (Debian: libdpdk-dev)",
];
