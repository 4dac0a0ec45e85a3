//! DPDK's environment: starting it, and finding devices.
//!
//! Invariant: starting it, opening a device and closing one are serialized ([`turn`]), because DPDK has lists of
//! devices without a lock.

use std::ffi::{CStr, CString, c_char, c_int};
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{check, raw};

static TURN: Mutex<()> = Mutex::new(());

/// Locks the environment for this thread.
pub(crate) fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A core that this process may use.
pub(crate) fn allowed_cpu() -> usize {
    // SAFETY: returns a number.
    let cpu = unsafe { raw::rt_cpu() };
    usize::try_from(cpu).unwrap_or(0)
}

/// Starts the environment. It pins the calling thread.
pub(crate) fn start(arguments: &[CString]) -> io::Result<()> {
    // DPDK keeps the pointers and writes to their targets, so both are leaked. They are few, and this runs once.
    let mut pointers: Vec<*mut c_char> =
        arguments.iter().map(|argument| argument.clone().into_raw()).collect();
    pointers.push(std::ptr::null_mut());
    let pointers = pointers.leak();
    let count = pointers.len() - 1;
    // SAFETY: `count` pointers to strings that end with 0 and are never freed, and a null pointer behind them.
    check(unsafe { raw::rt_start(count as c_int, pointers.as_mut_ptr()) }).map(drop)
}

/// Makes DPDK find a device and take it over.
pub(crate) fn attach(device: &CStr) -> io::Result<()> {
    // SAFETY: a string that ends with 0, read during the call.
    check(unsafe { raw::rt_attach(device.as_ptr()) }).map(drop)
}

/// The number of the port with this name, if there is one.
pub(crate) fn find(name: &CStr) -> Option<u16> {
    // SAFETY: a string that ends with 0, read during the call.
    u16::try_from(unsafe { raw::rt_find(name.as_ptr()) }).ok()
}

/// Starts recording DPDK's log for [`logged`].
pub(crate) fn record_log() {
    // SAFETY: one thread at a time calls this, and DPDK's threads use the lock of the stream.
    unsafe { raw::rt_log_begin() };
}

/// The last lines of DPDK's log since [`record_log`], joined.
pub(crate) fn logged() -> String {
    // SAFETY: a static buffer whose last byte is always 0. Text that another DPDK thread writes at the same time may or
    // may not be in the copy.
    let text = unsafe { CStr::from_ptr(raw::rt_log()) };
    let text = text.to_string_lossy();
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(LINES)..].join("; ")
}

/// Most log lines in an error message.
const LINES: usize = 4;
