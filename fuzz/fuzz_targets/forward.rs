//! Runs any bytes as frames of programs and neighbours of an NDN relay: link packets, reassembly, forwarding and management.
#![no_main]

libfuzzer_sys::fuzz_target!(|script: &[u8]| ringtap_ndn::relay::fuzz(script));
