//! Sources of packets.
#![forbid(unsafe_code)]
