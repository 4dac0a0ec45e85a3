//! Any bytes are a datagram, a segment, or a chunked body; the extractor of HTTP must not panic, however a stream is cut.
#![no_main]

libfuzzer_sys::fuzz_target!(|payload: &[u8]| ringtap_extract::fuzz_http(payload));
