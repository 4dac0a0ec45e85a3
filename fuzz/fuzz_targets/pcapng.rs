//! Reads any bytes as a pcapng file: the reader must end, and return only bytes of the file.
#![no_main]

libfuzzer_sys::fuzz_target!(|file: &[u8]| ringtap_io::capture::fuzz_pcapng(file));
