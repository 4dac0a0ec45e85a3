//! Memory from mmap(2), unmapped when dropped.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::{self, NonNull};

/// Size of huge pages on processors that support the requested ones.
const HUGE: usize = 2 << 20;

/// A mapping of `len` bytes, readable and writable. Other threads or the kernel may write to it: the code that reads
/// through its pointer ensures synchronisation.
pub(super) struct Mapping {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: a mapping belongs to the process, not to a thread, and `Mapping` lends no references.
unsafe impl Send for Mapping {}
// SAFETY: as above; its methods only compute addresses.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `len` bytes that a socket shares, from `offset` on.
    pub(super) fn shared(socket: &OwnedFd, len: usize, offset: i64) -> io::Result<Self> {
        let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
        Self::map(len, flags, socket.as_raw_fd(), offset)
    }

    /// Maps at least `len` bytes of zeros, in reserved huge pages if the system has any; the second value is then true.
    /// Otherwise transparent huge pages are requested.
    pub(super) fn anonymous(len: usize) -> io::Result<(Self, bool)> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE;
        let whole = len.next_multiple_of(HUGE);
        if let Ok(mapping) = Self::map(whole, flags | libc::MAP_HUGETLB, -1, 0) {
            return Ok((mapping, true));
        }
        // Not populated at once: the advice must come before the pages do.
        let mapping = Self::map(len, flags & !libc::MAP_POPULATE, -1, 0)?;
        // SAFETY: the range is the new mapping; the advice does not change its contents.
        unsafe { libc::madvise(mapping.start.as_ptr().cast(), len, libc::MADV_HUGEPAGE) };
        Ok((mapping, false))
    }

    fn map(len: usize, flags: i32, fd: i32, offset: i64) -> io::Result<Self> {
        // SAFETY: no address is given, so no used memory is replaced.
        let start = unsafe {
            libc::mmap(ptr::null_mut(), len, libc::PROT_READ | libc::PROT_WRITE, flags, fd, offset)
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        NonNull::new(start.cast())
            .map(|start| Self { start, len })
            .ok_or_else(|| io::Error::other("mapped at address 0"))
    }

    /// The address of `len` bytes at `offset`, all within the mapping.
    pub(super) fn at(&self, offset: usize, len: usize) -> NonNull<u8> {
        assert!(offset.checked_add(len).is_some_and(|end| end <= self.len), "outside the mapping");
        // SAFETY: the assertion keeps the offset within the mapping.
        unsafe { self.start.add(offset) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range belongs to this mapping, and every holder of a pointer into it also holds the mapping.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }
}
