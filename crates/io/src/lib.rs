//! Where packets come from and where they go to.
//!
//! | module | is |
//! |---|---|
//! | [`capture`] | capture files, read in place and without a copy, and the writer of them |
//! | [`live`] | interfaces: frames received by AF_PACKET, AF_XDP or DPDK, and frames sent |
//! | `dpdk` | DPDK devices; with the feature `dpdk` alone |
//! | [`bpf`] | expressions of pcap-filter(7), by libpcap |
//!
//! Invariants: every frame that came is handed out, waits, or is counted under a reason. `unsafe` code is in the
//! modules `sys` alone. Nothing here knows applications.
#![deny(missing_docs, unsafe_code)]

pub mod bpf;
pub mod capture;
#[cfg(feature = "dpdk")]
pub mod dpdk;
pub mod live;
