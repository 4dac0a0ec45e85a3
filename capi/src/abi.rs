//! The functions of the header, with the pointers of C.

use std::ffi::{CStr, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use crate::flow::{Cell, Flow};
use crate::options::Options;
use crate::run::Run;

const PANICKED: &str = "ringtap panicked; please report its message on stderr";

/// The size of `ringtap_flow` in the first version: programs with less were not built with the header.
const LEAST_FLOW: usize = size_of::<Flow>();

/// The version of the library.
#[unsafe(no_mangle)]
pub extern "C" fn ringtap_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}

/// Starts a run. On failure it returns NULL, and `error` has the message.
///
/// # Safety
/// `options` is NULL or an array of texts that ends with NULL; `error` is NULL or has `error_size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ringtap_open(
    options: *const *const c_char,
    error: *mut c_char,
    error_size: usize,
) -> *mut Run {
    let opened = caught(|| {
        if options.is_null() {
            return Err("the options are NULL".into());
        }
        let mut all = Options::default();
        let mut next = options;
        loop {
            // SAFETY: the array goes on up to the NULL that ends the loop.
            let option = unsafe { *next };
            if option.is_null() {
                return Run::open(all);
            }
            // SAFETY: each text ends with a NUL, and the caller keeps it during the call.
            all.add(unsafe { CStr::from_ptr(option) }.to_bytes())?;
            // SAFETY: this element is not the last one.
            next = unsafe { next.add(1) };
        }
    });
    match opened {
        Ok(run) => Box::into_raw(Box::new(run)),
        Err(message) => {
            // SAFETY: the caller's buffer.
            unsafe { write_text(&message, error, error_size) };
            ptr::null_mut()
        }
    }
}

/// The next record: 1; 0 at the end; -1 for an error.
///
/// # Safety
/// `run` is NULL or open; `flow` is NULL or has `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ringtap_next(run: *mut Run, flow: *mut Flow, size: usize) -> c_int {
    let next = |run: &Run| {
        if flow.is_null() {
            return Err("the flow is NULL".into());
        }
        if size < LEAST_FLOW {
            return Err(format!("the flow has {size} bytes: use sizeof(ringtap_flow)"));
        }
        let Some(own) = run.next()? else { return Ok(0) };
        // SAFETY: the caller's struct has `size` bytes, of which these are the first; it may be unaligned.
        unsafe { flow.write_unaligned(own) };
        let own = size_of::<Flow>();
        // SAFETY: the bytes of members that a later version adds follow.
        unsafe { flow.cast::<u8>().add(own).write_bytes(0, size - own) };
        Ok(1)
    };
    // SAFETY: the caller's run.
    unsafe { on(run, next, -1) }
}

/// A value of the current record as a number: 1; 0 if it has none; -1 for an error.
///
/// # Safety
/// `run` is NULL or open, `field` NULL or a text, `value` NULL or a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ringtap_number(
    run: *mut Run,
    field: *const c_char,
    index: usize,
    value: *mut u64,
) -> c_int {
    let read = |run: &Run| {
        // SAFETY: the caller's text.
        let name = unsafe { name(field) }?;
        if value.is_null() {
            return Err("the number is NULL".into());
        }
        run.value(name, index, |cell| match cell {
            Some(Cell::Number(number)) => {
                // SAFETY: the caller's number.
                unsafe { value.write(number) };
                Ok(1)
            }
            Some(Cell::Text(_)) => Err(format!("{name} is a text: use ringtap_text")),
            None => Ok(0),
        })
    };
    // SAFETY: the caller's run.
    unsafe { on(run, read, -1) }
}

/// A value of the current record as a text, like snprintf: returns its length; 0 if it has none; -1 for an error.
///
/// # Safety
/// `run` is NULL or open, `field` NULL or a text; `text` is NULL or has `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ringtap_text(
    run: *mut Run,
    field: *const c_char,
    index: usize,
    text: *mut c_char,
    size: usize,
) -> i64 {
    let read = |run: &Run| {
        // SAFETY: the caller's text.
        let name = unsafe { name(field) }?;
        if text.is_null() && size > 0 {
            return Err("the text is NULL".into());
        }
        run.value(name, index, |cell| {
            let number;
            let own = match cell {
                Some(Cell::Text(own)) => own,
                Some(Cell::Number(own)) => {
                    number = own.to_string();
                    &number
                }
                None => "",
            };
            // SAFETY: the caller's buffer.
            unsafe { write_text(own, text, size) };
            Ok(own.len() as i64)
        })
    };
    // SAFETY: the caller's run.
    unsafe { on(run, read, -1) }
}

/// The message of the last error of this run.
///
/// # Safety
/// `run` is NULL or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ringtap_error(run: *const Run) -> *const c_char {
    // SAFETY: the caller's run.
    unsafe { on(run, |run| Ok(run.error()), c"the run is NULL".as_ptr()) }
}

/// The report of a run that has ended, in JSON; otherwise NULL.
///
/// # Safety
/// `run` is NULL or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ringtap_report(run: *const Run) -> *const c_char {
    // SAFETY: the caller's run.
    unsafe { on(run, |run| Ok(run.report().unwrap_or(ptr::null())), ptr::null()) }
}

/// Records that the program did not get, of a run that has ended.
///
/// # Safety
/// `run` is NULL or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ringtap_lost(run: *const Run) -> u64 {
    // SAFETY: the caller's run.
    unsafe { on(run, |run| Ok(run.lost()), 0) }
}

/// Ends reading.
///
/// # Safety
/// `run` is NULL or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ringtap_stop(run: *const Run) {
    let stop = |run: &Run| {
        run.stop();
        Ok(())
    };
    // SAFETY: the caller's run.
    unsafe { on(run, stop, ()) }
}

/// Stops the run, waits for its end and frees it.
///
/// # Safety
/// `run` is NULL or open, and no other call of it is active or follows.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ringtap_close(run: *mut Run) {
    if !run.is_null() {
        // SAFETY: `ringtap_open` made it with `Box::into_raw`, and it is closed once.
        let run = unsafe { Box::from_raw(run) };
        // A panic was printed, and there is no call left that could return it.
        let _ = caught(|| {
            drop(run);
            Ok(())
        });
    }
}

/// Calls a function that may panic.
fn caught<T>(call: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    // A run is usable after a panic: its locks ignore poison, and each value behind them is whole.
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|_| Err(PANICKED.into()))
}

/// Calls a function with a run, and returns `failed` if the run is NULL or after an error, which the run keeps.
///
/// # Safety
/// `run` is NULL or open.
unsafe fn on<T>(run: *const Run, call: impl FnOnce(&Run) -> Result<T, String>, failed: T) -> T {
    // SAFETY: by the contract of this function.
    let Some(run) = (unsafe { run.as_ref() }) else { return failed };
    match caught(|| call(run)) {
        Ok(value) => value,
        Err(message) => {
            let _ = caught(|| {
                run.fail(&message);
                Ok(())
            });
            failed
        }
    }
}

/// The name of a field.
///
/// # Safety
/// `field` is NULL or a text that lives as long as the result.
unsafe fn name<'a>(field: *const c_char) -> Result<&'a str, String> {
    if field.is_null() {
        return Err("the name of the field is NULL".into());
    }
    // SAFETY: by the contract of this function.
    let name = unsafe { CStr::from_ptr(field) };
    name.to_str().map_err(|_| format!("the name of the field, {name:?}, is not UTF-8"))
}

/// Writes as much of a text as there is room for, up to the end of a letter, with a NUL after it.
///
/// # Safety
/// `into` is NULL or has `size` bytes.
unsafe fn write_text(text: &str, into: *mut c_char, size: usize) {
    if into.is_null() || size == 0 {
        return;
    }
    let len = text.floor_char_boundary(size - 1);
    // SAFETY: there is room for `len` bytes and the NUL; the text is not the caller's memory.
    unsafe {
        into.copy_from_nonoverlapping(text.as_ptr().cast(), len);
        into.add(len).write(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error_of_the_run() {
        let options = [c"read=../examples/office.pcap".as_ptr(), ptr::null()];
        // SAFETY: texts with their end, no buffer, and a run that is open up to the last line.
        unsafe {
            let run = ringtap_open(options.as_ptr(), ptr::null_mut(), 0);
            assert!(!run.is_null());
            assert_eq!(on(run, |_| panic!("on purpose"), -1), -1);
            assert_eq!(CStr::from_ptr(ringtap_error(run)).to_str(), Ok(PANICKED));
            ringtap_close(run);
        }
    }

    #[test]
    fn a_text_is_cut_at_the_end_of_a_letter() {
        for (size, expected) in [(1, &b"\0"[..]), (2, b"a\0"), (3, b"a\0"), (4, b"a\xc3\xa4\0")] {
            let mut own = [1; 8];
            // SAFETY: there are more bytes than `size`.
            unsafe { write_text("a\u{e4}b", own.as_mut_ptr(), size) };
            let own = own.map(|own| own as u8);
            assert_eq!((&own[..expected.len()], own[size]), (expected, 1));
        }
    }
}
