//! Any bytes are a state, or a script of its rows; reading and merging must neither panic nor take too much memory.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ringtap_monitor::state::fuzz(bytes));
