//! Decodes any bytes as a link type and frames: the decoder must not panic, and its results must be consistent.
#![no_main]

libfuzzer_sys::fuzz_target!(|frames: &[u8]| ringtap_wire::fuzz(frames));
