//! The parsers, one file for each protocol.

pub(crate) mod dhcp;
pub(crate) mod dns;
pub(crate) mod http;
pub(crate) mod labels;
pub(crate) mod ntp;
pub(crate) mod quic;
pub(crate) mod ssh;
pub(crate) mod tls;
