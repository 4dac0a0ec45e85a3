//! Any bytes are a datagram; the extractor of NTP must not panic, however a stream is cut.
#![no_main]

libfuzzer_sys::fuzz_target!(|payload: &[u8]| ringtap_extract::fuzz("ntp", payload));
