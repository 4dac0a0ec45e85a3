//! Opens a named pipe or a device for writing. A pipe without a reader is waited for until an
//! interrupt.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;

use crate::interrupt::are_interrupted;

/// Interval at which a wait checks for a reader and for an interrupt.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Opens `path` for writing.
///
/// # Errors
/// That of the system; an interrupt before the pipe has a reader.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    // Without O_NONBLOCK, opening would wait for a reader, also after an interrupt.
    let flags = OFlags::NONBLOCK.bits() as i32;
    loop {
        match OpenOptions::new().write(true).custom_flags(flags).open(path) {
            Ok(file) => {
                // Writes may wait.
                fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
                return Ok(file);
            }
            Err(error) if Errno::from_io_error(&error) != Some(Errno::NXIO) => return Err(error),
            Err(_) if are_interrupted() => {
                return Err(io::Error::other("no program reads the pipe: start its reader first"));
            }
            Err(_) => std::thread::sleep(POLL_INTERVAL),
        }
    }
}
