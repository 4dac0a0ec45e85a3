//! Crypto-PAn: prefix-preserving anonymisation of addresses. Source: J. Xu, J. Fan, M. H. Ammar, S. B. Moon,
//! "Prefix-Preserving IP Address Anonymization: Measurement-based Security Evaluation and a New Cryptography-based
//! Scheme", ICNP 2002, and the authors' sample program.
//!
//! ```text
//! key, 32 bytes:  AES-128 key │ pad'         pad = AES(pad')
//! bit i of the result = bit i of the address ⊕ first bit of AES(the first i bits of the address, then bits i… of pad)
//! ```
//!
//! Two addresses share as many leading bits after it as before. IPv6 is the same with 128 bits. Special addresses
//! (multicast, loopback, broadcast) are mapped like all others, as in the sample program.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes::{Aes128Enc, Block};

/// Blocks encrypted at once: the processor works on several at the same time.
const BLOCKS: usize = 32;

/// The mapping of a key.
pub(crate) struct CryptoPan {
    cipher: Aes128Enc,
    pad: u128,
}

impl CryptoPan {
    pub(crate) fn new(key: &[u8; 32]) -> Self {
        let ([first, second], _) = key.as_chunks::<16>() else { unreachable!("32 bytes") };
        let cipher = Aes128Enc::new(&Block::from(*first));
        let mut pad = Block::from(*second);
        cipher.encrypt_block(&mut pad);
        Self { cipher, pad: u128::from_be_bytes(pad.into()) }
    }

    pub(crate) fn address(&self, address: IpAddr) -> IpAddr {
        match address {
            IpAddr::V4(address) => self.v4(address).into(),
            IpAddr::V6(address) => self.v6(address).into(),
        }
    }

    pub(crate) fn v4(&self, address: Ipv4Addr) -> Ipv4Addr {
        let address = address.to_bits();
        let flips = self.flips(u128::from(address) << 96, 0);
        Ipv4Addr::from_bits(address ^ flips)
    }

    pub(crate) fn v6(&self, address: Ipv6Addr) -> Ipv6Addr {
        let address = address.to_bits();
        let flips = (0..4).fold(0, |flips, part| {
            flips << BLOCKS | u128::from(self.flips(address, part * BLOCKS as u32))
        });
        Ipv6Addr::from_bits(address ^ flips)
    }

    /// The bits that differ in the result, of 32 bits of the address from `from`.
    fn flips(&self, address: u128, from: u32) -> u32 {
        let mut blocks = [Block::default(); BLOCKS];
        for (bit, block) in (from..).zip(&mut blocks) {
            let kept = !u128::MAX.checked_shr(bit).unwrap_or(0);
            *block = Block::from((address & kept | self.pad & !kept).to_be_bytes());
        }
        self.cipher.encrypt_blocks(&mut blocks);
        blocks.iter().fold(0, |flips, block| flips << 1 | u32::from(block[0] >> 7))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The key of the authors' sample.
    const KEY: [u8; 32] = [
        21, 34, 23, 141, 51, 164, 207, 128, 19, 10, 91, 22, 73, 144, 125, 16, 216, 152, 143, 131,
        121, 121, 101, 39, 98, 87, 76, 45, 42, 132, 34, 2,
    ];

    /// From the authors' `sample_trace_raw.dat` and `sample_trace_sanitized.dat`.
    const SAMPLE: &str = "
        128.11.68.132 135.242.180.132    129.118.74.4 134.136.186.123     130.132.252.244 133.68.164.234
        141.223.7.43 141.167.8.160       141.233.145.108 141.129.237.235  152.163.225.39 151.140.114.167
        156.29.3.236 147.225.12.42       165.247.96.84 162.9.99.234       166.107.77.190 160.132.178.185
        192.102.249.13 252.138.62.131    192.215.32.125 252.43.47.189     192.233.80.103 252.25.108.8
        192.41.57.43 252.222.221.184     193.150.244.223 253.169.52.216   195.205.63.100 255.186.223.5
        198.200.171.101 249.199.68.213   198.26.132.101 249.36.123.202    198.36.213.5 249.7.21.132
        198.51.77.238 249.18.186.254     199.217.79.101 248.38.184.213    202.49.198.20 245.206.7.234
        203.12.160.252 244.248.163.4     204.184.162.189 243.192.77.90    204.202.136.230 243.178.4.198
        204.29.20.4 243.33.20.123        205.178.38.67 242.108.198.51     205.188.147.153 242.96.16.101
        207.105.49.5 241.118.205.138     208.147.89.59 227.237.98.191     209.12.231.7 226.243.167.8
        212.120.124.31 228.135.163.231   216.148.237.145 235.84.194.111   24.0.250.221 100.15.198.226
        38.15.67.68 64.3.66.187          4.3.88.225 124.60.155.63         63.14.55.111 95.9.215.7
        64.14.118.196 0.255.183.58       64.39.15.238 0.219.7.41          10.185.25.118 117.161.29.118
        ::1 78ff:f001:9fc0:20df:8380:b1f1:704:ed    ::ffff 78ff:f001:9fc0:20df:8380:b1f1:704:f838
        2001:db8::1 4401:2bc:603f:d91d:27f:ff8e:e6f1:dc1e
        2001:db8::2 4401:2bc:603f:d91d:27f:ff8e:e6f1:dc1c";

    /// IPv6 has no published sample; these are equal in three independent implementations.
    #[test]
    fn the_published_sample() {
        let pan = CryptoPan::new(&KEY);
        let words: Vec<&str> = SAMPLE.split_whitespace().collect();
        assert!(words.len() >= 80);
        for pair in words.chunks(2) {
            let address: IpAddr = pair[0].parse().unwrap();
            assert_eq!(pan.address(address).to_string(), pair[1], "{address}");
        }
    }

    proptest! {
        #[test]
        fn common_prefixes_keep_their_length(a: u128, b: u128, key: [u8; 32], shared in 0_u32..=128) {
            let b = if shared == 0 { b } else { (a ^ b).checked_shr(shared).unwrap_or(0) ^ a };
            let pan = CryptoPan::new(&key);
            let [c, d] = [a, b].map(|address| pan.v6(Ipv6Addr::from_bits(address)).to_bits());
            prop_assert_eq!((a ^ b).leading_zeros(), (c ^ d).leading_zeros());
            let [a, b] = [a, b].map(|address| (address >> 96) as u32);
            let [c, d] = [a, b].map(|address| pan.v4(Ipv4Addr::from_bits(address)).to_bits());
            prop_assert_eq!((a ^ b).leading_zeros(), (c ^ d).leading_zeros());
        }
    }
}
