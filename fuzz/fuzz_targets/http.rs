//! Any bytes are a datagram or a segment; the extractor of HTTP must not panic, however a stream is cut.
#![no_main]

libfuzzer_sys::fuzz_target!(|payload: &[u8]| ringtap_extract::fuzz("http", payload));
