//! A Unix socket to listen at, and its file.

use std::fs::{self, Permissions};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use rustix::fs::Mode;
use rustix::process::umask;

/// The file of a socket that we listen at; gone when this is dropped.
pub(crate) struct SocketFile(PathBuf);

/// Listens at `path`; who may connect is said by `mode`, as of a file. What an ended program has left is replaced, what
/// one that runs holds is not.
pub(crate) fn listen(path: &Path, mode: u32) -> anyhow::Result<(UnixListener, SocketFile)> {
    let shown = path.display();
    match fs::symlink_metadata(path) {
        Ok(data) if !data.file_type().is_socket() => {
            bail!("{shown} is there already, and no socket")
        }
        Ok(_) if UnixStream::connect(path).is_ok() => bail!("another one listens at {shown}"),
        Ok(_) => fs::remove_file(path).with_context(|| format!("removing {shown}"))?,
        Err(_) => {}
    }
    // From the first moment on nobody else may connect.
    let before = umask(Mode::RWXG | Mode::RWXO | Mode::XUSR);
    let listener = UnixListener::bind(path);
    umask(before);
    let listener = listener.with_context(|| format!("opening the socket {shown}"))?;
    let file = SocketFile(path.to_owned());
    fs::set_permissions(path, Permissions::from_mode(mode))
        .with_context(|| format!("letting others connect to {shown}"))?;
    listener.set_nonblocking(true)?;
    Ok((listener, file))
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}
