//! Any bytes are a script of operations on one ring, checked against an oracle step by step.
#![no_main]

libfuzzer_sys::fuzz_target!(|script: &[u8]| ringtap_ring::model::run_script(script));
