//! Any bytes are a segment; the extractor of PROXY headers must not panic, however a stream is cut.
#![no_main]

libfuzzer_sys::fuzz_target!(|payload: &[u8]| ringtap_extract::fuzz("proxy", payload));
