//! Any bytes are packets of a link; what is read of them must not contradict itself, nor what is written again.
#![no_main]

libfuzzer_sys::fuzz_target!(|packets: &[u8]| ringtap_ndn::packets::fuzz(packets));
