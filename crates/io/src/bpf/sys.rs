//! Bindings to the functions of libpcap that are used: <https://www.tcpdump.org/manpages/pcap.3pcap.html>.
//!
//! libpcap is loaded from the system. Static programs cannot load libraries: if RINGTAP_LIBPCAP names a folder with
//! `libpcap.a`, the build script links that one (`cfg(libpcap_static)`).

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::ptr::{self, NonNull};
use std::sync::{Arc, Mutex, PoisonError};

#[cfg(not(libpcap_static))]
use libloading::{Library as Loaded, Symbol};

/// File names of the library. Its interface has not changed since 0.8; distributions use different names.
#[cfg(not(libpcap_static))]
const NAMES: [&str; 2] = ["libpcap.so.0.8", "libpcap.so.1"];

/// Most bytes of a frame.
const SNAP: c_int = 262_144;
const NETMASK_UNKNOWN: c_uint = u32::MAX;
const OPTIMIZED: c_int = 1;

/// Locked while an expression is compiled.
static COMPILING: Mutex<()> = Mutex::new(());

/// `struct bpf_program`.
#[repr(C)]
struct Code {
    len: c_uint,
    instructions: *mut c_void,
}

/// `struct pcap_pkthdr`.
#[repr(C)]
struct Header {
    time: libc::timeval,
    captured: u32,
    original: u32,
}

/// A capture without packets; libpcap needs it for its link type.
enum Handle {}

type OpenDead = unsafe extern "C" fn(c_int, c_int) -> *mut Handle;
type Compile = unsafe extern "C" fn(*mut Handle, *mut Code, *const c_char, c_int, c_uint) -> c_int;
type Message = unsafe extern "C" fn(*mut Handle) -> *const c_char;
type Close = unsafe extern "C" fn(*mut Handle);
type Free = unsafe extern "C" fn(*mut Code);
type Run = unsafe extern "C" fn(*const Code, *const Header, *const u8) -> c_int;

#[cfg(libpcap_static)]
unsafe extern "C" {
    fn pcap_open_dead(link: c_int, snap: c_int) -> *mut Handle;
    fn pcap_compile(
        handle: *mut Handle,
        code: *mut Code,
        text: *const c_char,
        optimize: c_int,
        netmask: c_uint,
    ) -> c_int;
    fn pcap_geterr(handle: *mut Handle) -> *const c_char;
    fn pcap_close(handle: *mut Handle);
    fn pcap_freecode(code: *mut Code);
    fn pcap_offline_filter(code: *const Code, header: *const Header, frame: *const u8) -> c_int;
}

/// The functions of the library. Those of a loaded library are valid while it is loaded; `_loaded` keeps it loaded.
pub(crate) struct Library {
    open_dead: OpenDead,
    compile: Compile,
    message: Message,
    close: Close,
    free: Free,
    run: Run,
    #[cfg(not(libpcap_static))]
    _loaded: Loaded,
}

#[cfg(libpcap_static)]
impl Library {
    /// The library that is part of the program.
    pub(crate) fn load() -> Result<Arc<Self>, String> {
        Ok(Arc::new(Self {
            open_dead: pcap_open_dead,
            compile: pcap_compile,
            message: pcap_geterr,
            close: pcap_close,
            free: pcap_freecode,
            run: pcap_offline_filter,
        }))
    }
}

#[cfg(not(libpcap_static))]
impl Library {
    /// Loads the library. The error is the loader's message.
    pub(crate) fn load() -> Result<Arc<Self>, String> {
        let mut failure = None;
        for name in NAMES {
            // SAFETY: loading libpcap has no harmful effects: it has no significant constructors.
            match unsafe { Loaded::new(name) } {
                Ok(loaded) => return Self::of(loaded).map(Arc::new).map_err(|e| e.to_string()),
                // The first name belongs to the package that the error message recommends.
                Err(error) => drop(failure.get_or_insert(error.to_string())),
            }
        }
        Err(failure.unwrap_or_default())
    }

    fn of(loaded: Loaded) -> Result<Self, libloading::Error> {
        // SAFETY: for each function, the type is that of its manual page.
        unsafe {
            let open_dead: Symbol<'_, OpenDead> = loaded.get("pcap_open_dead")?;
            let compile: Symbol<'_, Compile> = loaded.get("pcap_compile")?;
            let message: Symbol<'_, Message> = loaded.get("pcap_geterr")?;
            let close: Symbol<'_, Close> = loaded.get("pcap_close")?;
            let free: Symbol<'_, Free> = loaded.get("pcap_freecode")?;
            let run: Symbol<'_, Run> = loaded.get("pcap_offline_filter")?;
            Ok(Self {
                open_dead: *open_dead,
                compile: *compile,
                message: *message,
                close: *close,
                free: *free,
                run: *run,
                _loaded: loaded,
            })
        }
    }
}

/// A program of classic BPF, compiled and run by libpcap.
pub(crate) struct Program {
    code: Code,
    library: Arc<Library>,
}

// SAFETY: the instructions belong to this program, are only read once they are compiled, and are on the heap; libpcap's
// interpreter keeps its state on the stack.
unsafe impl Send for Program {}
// SAFETY: as above.
unsafe impl Sync for Program {}

impl Program {
    /// Compiles an expression for a link type of libpcap (`DLT_…`). The error is libpcap's message.
    pub(crate) fn compile(library: &Arc<Library>, link: u16, text: &str) -> Result<Self, String> {
        let text = CString::new(text).map_err(|_| "the text has a zero byte".to_owned())?;
        // Before version 1.8 the parser keeps its state in global variables.
        let _turn = COMPILING.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: takes only numbers.
        let handle = unsafe { (library.open_dead)(link.into(), SNAP) };
        let handle = NonNull::new(handle).ok_or("out of memory")?;
        let mut code = Code { len: 0, instructions: ptr::null_mut() };
        // SAFETY: the handle is open, the text ends with a zero byte and is not kept, and only this call writes `code`.
        let made = unsafe {
            let netmask = NETMASK_UNKNOWN;
            (library.compile)(handle.as_ptr(), &mut code, text.as_ptr(), OPTIMIZED, netmask)
        };
        let made = if made == 0 {
            Ok(Self { code, library: Arc::clone(library) })
        } else {
            // SAFETY: the message is in the handle, ends with a zero byte, and is copied before the handle is closed.
            let message = unsafe { CStr::from_ptr((library.message)(handle.as_ptr())) };
            Err(message.to_string_lossy().into_owned())
        };
        // SAFETY: the handle is open and not used again; programs do not point into it.
        unsafe { (library.close)(handle.as_ptr()) };
        made
    }

    /// Returns true if the frame is selected.
    pub(crate) fn selects(&self, frame: &[u8], original_len: u32) -> bool {
        let header = Header {
            time: libc::timeval { tv_sec: 0, tv_usec: 0 },
            captured: u32::try_from(frame.len()).unwrap_or(u32::MAX),
            original: original_len,
        };
        // SAFETY: the interpreter reads the program, which libpcap compiled and checked, and at most as many bytes of
        // the frame as the header says.
        unsafe { (self.library.run)(&self.code, &header, frame.as_ptr()) != 0 }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: libpcap allocated the instructions, and they are not used again.
        unsafe { (self.library.free)(&mut self.code) };
    }
}
