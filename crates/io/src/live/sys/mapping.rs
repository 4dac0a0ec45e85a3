//! Memory by mmap(2), given back when dropped.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::{self, NonNull};

/// Huge pages are of this size where the processor has any that we ask for.
const HUGE: usize = 2 << 20;

/// A mapping of `len` bytes, readable and writable. It makes no claim about who else writes there:
/// the code that reads through its pointer does.
pub(super) struct Mapping {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: a mapping belongs to the process, not to a thread, and `Mapping` lends no references.
unsafe impl Send for Mapping {}

impl Mapping {
    /// `len` bytes that a socket shares with us, from `offset` on.
    pub(super) fn shared(socket: &OwnedFd, len: usize, offset: i64) -> io::Result<Self> {
        let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
        Self::map(len, flags, socket.as_raw_fd(), offset)
    }

    /// At least `len` bytes of zeros, in huge pages if the system has reserved any; the second value
    /// tells. If not, it is asked to make some of what it has.
    pub(super) fn anonymous(len: usize) -> io::Result<(Self, bool)> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE;
        let whole = len.next_multiple_of(HUGE);
        if let Ok(mapping) = Self::map(whole, flags | libc::MAP_HUGETLB, -1, 0) {
            return Ok((mapping, true));
        }
        // Not populated at once: the advice must come before the pages do.
        let mapping = Self::map(len, flags & !libc::MAP_POPULATE, -1, 0)?;
        // SAFETY: the range is the mapping just made; the advice changes no contents.
        unsafe { libc::madvise(mapping.start.as_ptr().cast(), len, libc::MADV_HUGEPAGE) };
        Ok((mapping, false))
    }

    fn map(len: usize, flags: i32, fd: i32, offset: i64) -> io::Result<Self> {
        // SAFETY: no address is given, so no memory in use is replaced.
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

    /// The first of `len` bytes from `offset` on; all of them lie within the mapping.
    pub(super) fn at(&self, offset: usize, len: usize) -> NonNull<u8> {
        assert!(offset.checked_add(len).is_some_and(|end| end <= self.len), "outside the mapping");
        // SAFETY: the assertion keeps the offset within the mapping.
        unsafe { self.start.add(offset) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range is ours, and every holder of a pointer into it holds this mapping too.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }
}
