//! Any bytes are the TCP header of a SYN; the extractor of SYNs must not panic, and its facts are as documented.
#![no_main]

libfuzzer_sys::fuzz_target!(|header: &[u8]| ringtap_extract::fuzz_syn(header));
