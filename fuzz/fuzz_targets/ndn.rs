//! Reads any bytes as packets of a link: their fields must be consistent, also after they are written again.
#![no_main]

libfuzzer_sys::fuzz_target!(|packets: &[u8]| ringtap_ndn::packets::fuzz(packets));
