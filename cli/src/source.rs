//! The inputs of a run. A regular file never keeps anybody waiting; a pipe or a terminal may, for
//! ever, so reading from one gives way when the run is asked to stop.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use ringtap_engine::Watch;
use ringtap_io::capture::{Files, Input, Notice, NoticeKind};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;

/// How often a wait looks whether to give up.
const LOOK_EVERY: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// A reader of `paths`, in order.
pub(crate) fn files(paths: &[PathBuf], watch: &'static Watch) -> Files {
    let file = |path: &PathBuf| match waiting(path, watch) {
        Some(Ok(reader)) => Files::from_reader(path.clone(), reader),
        // What cannot be opened is told of when its turn comes.
        Some(Err(_)) | None => Files::new(vec![Input::from(path.clone())]),
    };
    paths.iter().map(file).fold(Files::new(Vec::new()), Files::chain)
}

/// Whether the notice only says that the run was asked to stop.
pub(crate) fn is_stop(notice: &Notice) -> bool {
    let error = match &notice.kind {
        NoticeKind::Open(error)
        | NoticeKind::Read { error, .. }
        | NoticeKind::CompressedDamaged { error, .. } => error,
        _ => return false,
    };
    error.get_ref().is_some_and(|inner| inner.is::<Stopped>())
}

fn waiting(path: &Path, watch: &'static Watch) -> Option<io::Result<Waiting>> {
    let file = if path.as_os_str() == "-" {
        io::stdin().as_fd().try_clone_to_owned().map(File::from)
    } else {
        let kind = std::fs::metadata(path).ok()?.file_type();
        if !kind.is_fifo() && !kind.is_char_device() && !kind.is_socket() {
            return None;
        }
        // Without O_NONBLOCK, opening a named pipe would wait for its writer.
        let flags = OFlags::NONBLOCK.bits() as i32;
        OpenOptions::new().read(true).custom_flags(flags).open(path)
    };
    Some(file.map(|file| Waiting { file, watch }))
}

/// A file whose bytes may be long in coming.
struct Waiting {
    file: File,
    watch: &'static Watch,
}

impl Read for Waiting {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.watch.stopped() {
                return Err(io::Error::other(Stopped));
            }
            let mut ready = [PollFd::new(&self.file, PollFlags::IN)];
            if poll(&mut ready, Some(&LOOK_EVERY))? == 0 {
                continue;
            }
            match self.file.read(out) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                result => return result,
            }
        }
    }
}

/// Carried by the error that ends a wait.
#[derive(Debug)]
struct Stopped;

impl std::fmt::Display for Stopped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the run was asked to stop")
    }
}

impl std::error::Error for Stopped {}
