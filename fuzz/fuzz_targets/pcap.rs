//! Any bytes are a pcap file; the reader must end, and hand out only bytes that are in it.
#![no_main]

libfuzzer_sys::fuzz_target!(|file: &[u8]| ringtap_io::capture::fuzz_pcap(file));
