//! Tests of the C interface: the header against the library, the examples in C and Go, and hostile use.
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]
#![allow(clippy::print_stderr, reason = "skipped tests are reported on stderr")]
#![allow(clippy::disallowed_methods, reason = "tests start threads")]

mod examples;
mod header;
mod hostile;

use std::path::PathBuf;

/// A path from the root of the repository.
fn path(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..").join(name);
    assert!(path.exists(), "{} is missing from the repository", path.display());
    path
}

/// The option that reads the bundled capture.
fn office() -> String {
    format!("read={}", path("examples/office.pcap").display())
}
