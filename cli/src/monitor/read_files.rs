//! The files that outputs and the page have read: certificates, keys, authorities, passwords. One that is renewed under
//! its path is a change of the configuration.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use ringtap_export::Output;

use crate::args::MonitorArgs;

/// Which contents a path has: device, inode, length, and when they were written, in seconds and nanoseconds.
type Identity = (u64, u64, u64, i64, i64);

/// The files, with what their paths named; `None` for one that is missing.
#[derive(Default)]
pub(super) struct ReadFiles(BTreeMap<PathBuf, Option<Identity>>);

impl ReadFiles {
    /// The files as they are now; call this before they are read.
    pub(super) fn of(args: &MonitorArgs, outputs: &[Output]) -> Self {
        let tls = of_tls(args).into_iter().filter_map(|(_, path)| path);
        let read = outputs.iter().flat_map(Output::reads);
        let with_identity = |path: &Path| (path.to_owned(), identity(path));
        Self(tls.chain(read).map(with_identity).collect())
    }

    /// Whether a file has other contents than before, under the same path.
    pub(super) fn is_renewed(&self, before: &Self, path: &Path) -> bool {
        before.0.get(path).is_some_and(|before| self.0.get(path) != Some(before))
    }
}

/// The flags for TLS, with their files.
pub(super) fn of_tls(args: &MonitorArgs) -> [(&'static str, Option<&Path>); 3] {
    [
        ("tls_ca", args.tls_ca.as_deref()),
        ("tls_cert", args.tls_cert.as_deref()),
        ("tls_key", args.tls_key.as_deref()),
    ]
}

fn identity(path: &Path) -> Option<Identity> {
    let identity =
        |data: Metadata| (data.dev(), data.ino(), data.len(), data.mtime(), data.mtime_nsec());
    std::fs::metadata(path).ok().map(identity)
}
