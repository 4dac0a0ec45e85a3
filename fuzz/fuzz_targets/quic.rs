//! Any bytes are a script of datagrams; the extractor of QUIC must neither panic nor take too much memory.
#![no_main]

libfuzzer_sys::fuzz_target!(|script: &[u8]| ringtap_extract::fuzz_quic(script));
