//! Any bytes are a segment or a datagram; the extractor of TLS must not panic, however a stream is cut.
#![no_main]

libfuzzer_sys::fuzz_target!(|payload: &[u8]| ringtap_extract::fuzz("tls", payload));
