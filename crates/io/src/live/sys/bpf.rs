//! bpf(2): maps, programs, links and test runs, without a library.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

const MAP_CREATE: u32 = 0;
const MAP_LOOKUP: u32 = 1;
const MAP_UPDATE: u32 = 2;
const MAP_DELETE: u32 = 3;
const PROG_LOAD: u32 = 5;
const PROG_TEST_RUN: u32 = 10;
const LINK_CREATE: u32 = 28;

const PROG_TYPE_XDP: u32 = 6;
const ATTACH_XDP: u32 = 37;
/// `BPF_F_TEST_XDP_LIVE_FRAMES`: frames of a test run are really sent.
const LIVE_FRAMES: u32 = 1 << 1;

/// Bytes for the verifier's log of a rejected program.
const LOG: usize = 64 << 10;

/// The types of maps.
#[derive(Clone, Copy)]
pub(crate) enum MapKind {
    /// Values of eight bytes.
    Array = 2,
    /// AF_XDP sockets by queue.
    Sockets = 17,
}

/// A map from `0..entries` to values whose size depends on the type.
pub(crate) struct Map {
    fd: OwnedFd,
    kind: MapKind,
}

impl Map {
    /// Creates a map.
    pub(crate) fn new(kind: MapKind, entries: u32) -> io::Result<Self> {
        #[repr(C)]
        struct Attributes {
            kind: u32,
            key_size: u32,
            value_size: u32,
            entries: u32,
        }
        let value_size = match kind {
            MapKind::Array => 8,
            MapKind::Sockets => 4,
        };
        let mut attributes = Attributes { kind: kind as u32, key_size: 4, value_size, entries };
        // SAFETY: these are the first fields of the command's attributes; none is an address.
        Ok(Self { fd: unsafe { call_for_fd(MAP_CREATE, &mut attributes) }?, kind })
    }

    /// The number of the map in instructions.
    pub(crate) fn number(&self) -> i32 {
        self.fd.as_raw_fd()
    }

    /// Directs the frames of a queue to a socket.
    pub(crate) fn put_socket(&self, queue: u32, socket: &OwnedFd) -> io::Result<()> {
        assert!(matches!(self.kind, MapKind::Sockets));
        self.element(MAP_UPDATE, queue, Some(&mut [socket.as_raw_fd(), 0]))
    }

    /// Stops directing the frames of a queue to its socket.
    pub(crate) fn remove_socket(&self, queue: u32) -> io::Result<()> {
        assert!(matches!(self.kind, MapKind::Sockets));
        self.element(MAP_DELETE, queue, None::<&mut u64>)
    }

    /// The value at `index`.
    pub(crate) fn number_at(&self, index: u32) -> io::Result<u64> {
        assert!(matches!(self.kind, MapKind::Array));
        let mut value = 0_u64;
        self.element(MAP_LOOKUP, index, Some(&mut value))?;
        Ok(value)
    }

    /// The kernel rejects a command with a value that it does not use.
    fn element<T>(&self, command: u32, key: u32, value: Option<&mut T>) -> io::Result<()> {
        const { assert!(size_of::<T>() == 8) };
        #[repr(C)]
        struct Attributes {
            map: u32,
            gap: u32,
            key: u64,
            value: u64,
            flags: u64,
        }
        let mut attributes = Attributes {
            map: self.fd.as_raw_fd() as u32,
            gap: 0,
            key: std::ptr::from_ref(&key) as u64,
            value: value.map_or(0, |value| std::ptr::from_mut(value) as u64),
            flags: 0,
        };
        // SAFETY: key and value live longer than the call; keys have 4 bytes, values at most 8.
        unsafe { call(command, &mut attributes) }.map(drop)
    }
}

/// A loaded XDP program.
pub(crate) struct Program {
    fd: OwnedFd,
}

impl Program {
    /// Loads `instructions`. Tools show `name`, at most 15 characters.
    pub(crate) fn load(name: &str, instructions: &[u64]) -> io::Result<Self> {
        #[repr(C)]
        struct Attributes {
            kind: u32,
            count: u32,
            instructions: u64,
            license: u64,
            log_level: u32,
            log_size: u32,
            log: u64,
            kernel: u32,
            flags: u32,
            name: [u8; 16],
            interface: u32,
            attach_type: u32,
        }
        let mut bytes = [0; 16];
        for (to, from) in bytes[..15].iter_mut().zip(name.bytes()) {
            *to = from;
        }
        let mut attributes = Attributes {
            kind: PROG_TYPE_XDP,
            count: instructions.len() as u32,
            instructions: instructions.as_ptr() as u64,
            license: c"MIT".as_ptr() as u64,
            log_level: 0,
            log_size: 0,
            log: 0,
            kernel: 0,
            flags: 0,
            name: bytes,
            interface: 0,
            attach_type: ATTACH_XDP,
        };
        // SAFETY: points to `count` instructions of eight bytes and to a terminated string.
        let error = match unsafe { call_for_fd(PROG_LOAD, &mut attributes) } {
            Ok(fd) => return Ok(Self { fd }),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Err(error),
            Err(error) => error,
        };
        // Again, for the verifier's log.
        let mut log = vec![0_u8; LOG];
        attributes.log_level = 1;
        attributes.log_size = LOG as u32;
        attributes.log = log.as_mut_ptr() as u64;
        // SAFETY: as above, and the kernel writes at most as many bytes as the log has.
        match unsafe { call_for_fd(PROG_LOAD, &mut attributes) } {
            Ok(fd) => Ok(Self { fd }),
            Err(_) => {
                let text = String::from_utf8_lossy(&log);
                let text = text.trim_end_matches('\0').trim_end();
                Err(io::Error::new(error.kind(), format!("{error}: {text}")))
            }
        }
    }

    /// Attaches the program to an interface until the link is dropped or the process ends.
    pub(crate) fn attach(&self, interface: u32, flags: u32) -> io::Result<Link> {
        #[repr(C)]
        struct Attributes {
            program: u32,
            interface: u32,
            attach_type: u32,
            flags: u32,
        }
        let mut attributes = Attributes {
            program: self.fd.as_raw_fd() as u32,
            interface,
            attach_type: ATTACH_XDP,
            flags,
        };
        // SAFETY: these are the command's attributes; none is an address.
        unsafe { call_for_fd(LINK_CREATE, &mut attributes) }.map(|fd| Link { _fd: fd })
    }

    /// Runs the program on `count` copies of `frame`, and sends them where its result directs them.
    pub(crate) fn run_live(&self, frame: &[u8], count: u32, batch: u32) -> io::Result<()> {
        #[repr(C)]
        #[derive(Default)]
        struct Attributes {
            program: u32,
            answer: u32,
            frame_len: u32,
            output_len: u32,
            frame: u64,
            output: u64,
            count: u32,
            duration: u32,
            context_len: u32,
            context_output_len: u32,
            context: u64,
            context_output: u64,
            flags: u32,
            processor: u32,
            batch: u32,
            gap: u32,
        }
        let mut attributes = Attributes {
            program: self.fd.as_raw_fd() as u32,
            frame_len: frame.len() as u32,
            frame: frame.as_ptr() as u64,
            count,
            flags: LIVE_FRAMES,
            batch,
            ..Attributes::default()
        };
        // SAFETY: the kernel reads the bytes of the frame; there is no other address.
        unsafe { call(PROG_TEST_RUN, &mut attributes) }.map(drop)
    }
}

/// An attachment; dropping it detaches the program.
pub(crate) struct Link {
    _fd: OwnedFd,
}

/// As [`call`], for commands that create a descriptor.
///
/// # Safety
/// As for [`call`]; and the command returns a new descriptor.
unsafe fn call_for_fd<T>(command: u32, attributes: &mut T) -> io::Result<OwnedFd> {
    // SAFETY: the caller's obligation, passed on.
    let fd = unsafe { call(command, attributes) }?;
    // SAFETY: the descriptor is new and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Executes the system call.
///
/// # Safety
/// `attributes` has no padding and the layout of `command`, and each address in it points to live memory of the given
/// size, writable where the command writes.
unsafe fn call<T>(command: u32, attributes: &mut T) -> io::Result<i32> {
    // SAFETY: the caller's obligation; the kernel treats missing fields at the end as 0.
    let answer = unsafe {
        libc::syscall(libc::SYS_bpf, command, std::ptr::from_mut(attributes), size_of::<T>())
    };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(answer as i32) }
}
