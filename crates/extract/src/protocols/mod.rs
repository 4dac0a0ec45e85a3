//! The parsers, one file for each protocol.

pub(crate) mod dns;
pub(crate) mod quic;
pub(crate) mod tls;
