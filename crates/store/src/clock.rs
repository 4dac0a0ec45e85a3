//! The clock: names of files and lines of manifests have the time of day.

use std::time::SystemTime;

#[expect(clippy::disallowed_methods, reason = "names of files have the time of day")]
pub(crate) fn now() -> SystemTime {
    SystemTime::now()
}
