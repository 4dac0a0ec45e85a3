//! Any bytes are a link type and frames; the decoder must neither panic nor contradict itself.
#![no_main]

libfuzzer_sys::fuzz_target!(|frames: &[u8]| ringtap_wire::fuzz(frames));
