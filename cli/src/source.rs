//! The input files of a run. A regular file never blocks. A pipe or a terminal may block for ever,
//! so a read from it returns when a stop is requested.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::ops::Deref;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use ringtap_engine::Watch;
use ringtap_io::capture::{Files, Input, Notice, NoticeKind, Severity};
use ringtap_terminal::console::print_message;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Access, AtFlags, CWD, OFlags, accessat};

/// Interval at which a wait checks for a stop.
const POLL_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// Access to the watch of a run, for as long as its readers exist.
pub(crate) trait Shared: Deref<Target = Watch> + Clone + Send + Sync + 'static {}

impl<W: Deref<Target = Watch> + Clone + Send + Sync + 'static> Shared for W {}

/// Part of `--memory` for the window of an input that is compressed with zstd.
const WINDOW_PART: u64 = 8;
/// The most that the window needs, and the zstd tool's limit.
const WINDOW_MOST: u64 = 128 << 20;

/// Largest window of an input that is compressed with zstd, for this `--memory`.
pub(crate) fn window_bytes(memory: Option<u64>) -> u64 {
    memory.map_or(WINDOW_MOST, |memory| (memory / WINDOW_PART).min(WINDOW_MOST))
}

/// Whether an input is compressed with zstd, or a pipe, which may be.
pub(crate) fn may_be_zstd(path: &Path) -> bool {
    // Opening a named pipe would wait for its writer. What cannot be read is reported later.
    if !std::fs::metadata(path).is_ok_and(|data| data.is_file()) {
        return path.as_os_str() == "-" || path.exists() && !path.is_dir();
    }
    let mut magic = [0; 4];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut magic));
    read.is_ok() && matches!(magic, [0x28, 0xb5, 0x2f, 0xfd] | [0x50..=0x5f, 0x2a, 0x4d, 0x18])
}

/// A reader of `paths`, in order, if all of them can be opened.
///
/// # Errors
/// Those that cannot be opened.
pub(crate) fn files(paths: &[PathBuf], watch: impl Shared) -> anyhow::Result<Files> {
    check(paths)?;
    Ok(reader(paths, watch))
}

/// Checks that all inputs can be opened. A command does this before it reads any of them.
///
/// # Errors
/// Those that cannot be opened.
pub(crate) fn check(paths: &[PathBuf]) -> Result<(), Unopened> {
    let notice = |path: &PathBuf| {
        let kind = openable(path).err()?;
        Some(Notice { path: path.clone(), severity: Severity::Error, kind })
    };
    let all: Vec<_> = paths.iter().filter_map(notice).collect();
    if all.is_empty() { Ok(()) } else { Err(Unopened(all)) }
}

/// The inputs that cannot be opened.
#[derive(Debug)]
pub(crate) struct Unopened(pub(crate) Vec<Notice>);

impl std::fmt::Display for Unopened {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let texts: Vec<_> = self.0.iter().map(Notice::to_string).collect();
        f.write_str(&texts.join("; "))
    }
}

impl std::error::Error for Unopened {}

/// Checks that a path can be opened. Pipes and devices are not opened, because their writers would
/// see it.
fn openable(path: &Path) -> Result<(), NoticeKind> {
    let of = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => NoticeKind::NotFound,
        _ => NoticeKind::Open(error),
    };
    if path.as_os_str() == "-" {
        return Ok(());
    }
    let kind = std::fs::metadata(path).map_err(of)?;
    if kind.is_dir() {
        return Err(NoticeKind::Directory);
    }
    if kind.is_file() {
        return File::open(path).map(drop).map_err(of);
    }
    accessat(CWD, path, Access::READ_OK, AtFlags::EACCESS).map_err(|error| of(error.into()))
}

/// A reader of `paths`, in order, without a check.
pub(crate) fn reader(paths: &[PathBuf], watch: impl Shared) -> Files {
    let file = |path: &PathBuf| match stoppable(path, watch.clone()) {
        Some(Ok(reader)) => Files::from_reader(path.clone(), reader),
        // An error on opening is reported when the file is read.
        Some(Err(_)) | None => Files::new(vec![Input::from(path.clone())]),
    };
    paths.iter().map(file).fold(Files::new(Vec::new()), Files::chain)
}

/// Prints notices. Returns whether one of them is an error.
pub(crate) fn print_notices<'a>(notices: impl IntoIterator<Item = &'a Notice>) -> bool {
    let mut has_errors = false;
    for notice in notices {
        let is_error = notice.severity == Severity::Error;
        print_message(if is_error { "error" } else { "warning" }, &notice.to_string());
        has_errors |= is_error;
    }
    has_errors
}

/// Whether the notice only reports a requested stop.
pub(crate) fn is_stop(notice: &Notice) -> bool {
    let error = match &notice.kind {
        NoticeKind::Open(error)
        | NoticeKind::Read { error, .. }
        | NoticeKind::CompressedDamaged { error, .. } => error,
        _ => return false,
    };
    error.get_ref().is_some_and(|inner| inner.is::<Stopped>())
}

/// A stoppable reader of `path`; `None` if it is a regular file or cannot be examined.
fn stoppable<W: Shared>(path: &Path, watch: W) -> Option<io::Result<StoppableFile<W>>> {
    let file = if path.as_os_str() == "-" {
        io::stdin().as_fd().try_clone_to_owned().map(File::from)
    } else {
        let kind = std::fs::metadata(path).ok()?.file_type();
        if !kind.is_fifo() && !kind.is_char_device() && !kind.is_socket() {
            return None;
        }
        open_at_once(path)
    };
    Some(file.map(|file| StoppableFile { file, watch }))
}

/// Opens any file; reads from it end when a stop is requested.
pub(crate) fn open<W: Shared>(path: &Path, watch: W) -> io::Result<StoppableFile<W>> {
    open_at_once(path).map(|file| StoppableFile { file, watch })
}

fn open_at_once(path: &Path) -> io::Result<File> {
    // Without O_NONBLOCK, opening a named pipe would wait for its writer.
    let flags = OFlags::NONBLOCK.bits() as i32;
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

/// A file that may block; a read ends with the error [`Stopped`] when a stop is requested.
pub(crate) struct StoppableFile<W> {
    file: File,
    watch: W,
}

impl<W: Shared> Read for StoppableFile<W> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.watch.stopped() {
                return Err(io::Error::other(Stopped));
            }
            let mut ready = [PollFd::new(&self.file, PollFlags::IN)];
            if poll(&mut ready, Some(&POLL_INTERVAL))? == 0 {
                continue;
            }
            match self.file.read(out) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                result => return result,
            }
        }
    }
}

/// The error that ends a read after a stop request.
#[derive(Debug)]
struct Stopped;

impl std::fmt::Display for Stopped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a stop was requested")
    }
}

impl std::error::Error for Stopped {}
