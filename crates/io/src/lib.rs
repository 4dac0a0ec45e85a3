//! Packet input and output.
//!
//! | module | contents |
//! |---|---|
//! | [`capture`] | capture files: read in place without a copy, and written |
//! | [`live`] | interfaces: frames received by AF_PACKET, AF_XDP or DPDK, and frames sent |
//! | `dpdk` | DPDK devices; only with the feature `dpdk` |
//! | [`bpf`] | expressions of pcap-filter(7), by libpcap |
//!
//! Invariants: every received frame is returned, waits, or is counted with a reason. `unsafe` code is only in the
//! modules named `sys`. This crate does not depend on analyses.
#![deny(missing_docs, unsafe_code)]

pub mod bpf;
pub mod capture;
#[cfg(feature = "dpdk")]
pub mod dpdk;
pub mod live;
