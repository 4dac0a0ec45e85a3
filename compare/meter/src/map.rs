//! `mmap` regions: a file mapped for reading, and zeroed memory on huge pages.
//!
//! The regions are unmapped when they are dropped. Except for a prefetch, all unsafe code of this
//! package is here.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use std::slice;

/// A file mapped for reading. The file must not be truncated while it is mapped.
pub struct MappedFile {
    region: Region,
}

impl MappedFile {
    /// Maps the file at `path` and reads its pages ahead.
    pub fn open(path: &str) -> io::Result<Self> {
        let file = File::open(path)?;
        let len = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
        let region = Region::new(len, libc::PROT_READ, libc::MAP_PRIVATE, file.as_raw_fd())?;
        region.advise(libc::MADV_SEQUENTIAL);
        region.advise(libc::MADV_POPULATE_READ);
        Ok(Self { region })
    }

    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the region is readable for its whole length and lives as long as self.
        unsafe { slice::from_raw_parts(self.region.start.as_ptr(), self.region.len) }
    }
}

/// A slice of `T`, initially all zero bytes, on huge pages if the kernel has them.
pub struct Zeroed<T> {
    region: Region,
    len: usize,
    items: std::marker::PhantomData<T>,
}

/// A type for which all zero bytes are a valid value.
///
/// # Safety
/// Every field must be a plain number or an array of them.
pub unsafe trait Plain {}

impl<T: Plain> Zeroed<T> {
    pub fn new(len: usize) -> Self {
        const {
            assert!(align_of::<T>() <= 4096);
        }
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let region =
            Region::new(len * size_of::<T>(), libc::PROT_READ | libc::PROT_WRITE, flags, -1)
                .expect("memory for the flow table");
        region.advise(libc::MADV_HUGEPAGE);
        Self { region, len, items: std::marker::PhantomData }
    }

    pub fn slice(&self) -> &[T] {
        // SAFETY: the region holds `len` items, page-aligned, zeroed by the kernel, which Plain
        // makes valid.
        unsafe { slice::from_raw_parts(self.region.start.as_ptr().cast(), self.len) }
    }

    pub fn slice_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `slice`; self is borrowed exclusively.
        unsafe { slice::from_raw_parts_mut(self.region.start.as_ptr().cast(), self.len) }
    }
}

struct Region {
    start: NonNull<u8>,
    len: usize,
}

impl Region {
    fn new(len: usize, protection: i32, flags: i32, fd: i32) -> io::Result<Self> {
        // SAFETY: a new mapping at an address chosen by the kernel does not overlap existing
        // memory.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), len, protection, flags, fd, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or_else(|| io::Error::other("mapped at zero"))?;
        Ok(Self { start, len })
    }

    /// Gives advice to the kernel. Errors are ignored: the advice is only an optimisation.
    fn advise(&self, advice: i32) {
        // SAFETY: the range is exactly this mapping, and none of the advice used here changes its
        // contents.
        unsafe { libc::madvise(self.start.as_ptr().cast(), self.len, advice) };
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: the range is exactly this mapping, and no slice of it outlives its owner.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }
}
