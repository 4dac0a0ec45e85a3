//! Rivals written in C and C++ (shim/), as many as were installed when this was built.

mod shim;

use super::Candidate;

/// Those that build.rs found.
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

/// Those that it did not find.
pub const MISSING: &[&str] = &[
    #[cfg(not(boost))]
    "boost::lockfree::spsc_queue (Debian: libboost-dev)",
    #[cfg(not(moodycamel))]
    "moodycamel::ReaderWriterQueue (Debian: libreaderwriterqueue-dev)",
    #[cfg(not(dpdk))]
    "DPDK's rte_ring (Debian: libdpdk-dev)",
];
