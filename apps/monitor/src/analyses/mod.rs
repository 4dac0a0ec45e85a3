//! The analyses. A new one is a file here, a field in [`Analyses`](crate::Analyses), a call in
//! the worker and a line in the merger.

pub(crate) mod activity;
pub(crate) mod conversations;
pub(crate) mod scans;
pub(crate) mod talkers;
pub(crate) mod volumes;
