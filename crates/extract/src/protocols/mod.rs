//! The parsers, one file for each protocol.

pub(crate) mod dns;
pub(crate) mod http;
pub(crate) mod quic;
pub(crate) mod tls;
