//! A listening Unix socket, and its file.

use std::fs::{self, Permissions};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use rustix::fs::Mode;
use rustix::process::umask;

/// The file of a listening socket; removed on drop.
pub struct SocketFile(PathBuf);

/// Listens at `path` with the access rights `mode`. A stale socket of an ended program is replaced;
/// the socket of a running one is not.
///
/// # Errors
/// If another file or a running program is there, or the file system refuses; the error names the path.
pub fn listen(path: &Path, mode: u32) -> anyhow::Result<(UnixListener, SocketFile)> {
    let shown = path.display();
    match fs::symlink_metadata(path) {
        Ok(data) if !data.file_type().is_socket() => {
            bail!("{shown} exists and is not a socket")
        }
        Ok(_) if UnixStream::connect(path).is_ok() => bail!("another process listens at {shown}"),
        Ok(_) => fs::remove_file(path).with_context(|| format!("removing {shown}"))?,
        Err(_) => {}
    }
    // No other user can connect before the mode is set.
    let before = umask(Mode::RWXG | Mode::RWXO | Mode::XUSR);
    let listener = UnixListener::bind(path);
    umask(before);
    let listener = listener.with_context(|| format!("opening the socket {shown}"))?;
    let file = SocketFile(path.to_owned());
    fs::set_permissions(path, Permissions::from_mode(mode))
        .with_context(|| format!("changing the mode of {shown}"))?;
    listener.set_nonblocking(true)?;
    Ok((listener, file))
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}
