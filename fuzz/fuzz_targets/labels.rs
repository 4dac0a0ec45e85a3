//! Any bytes are a datagram or a segment; the tests for further protocols must not panic, however a stream is cut.
#![no_main]

libfuzzer_sys::fuzz_target!(|payload: &[u8]| ringtap_extract::fuzz("labels", payload));
