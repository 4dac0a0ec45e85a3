//! Runs any bytes as a script of operations on one ring, each checked against an oracle.
#![no_main]

libfuzzer_sys::fuzz_target!(|script: &[u8]| ringtap_ring::model::run_script(script));
