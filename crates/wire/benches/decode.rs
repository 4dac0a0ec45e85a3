//! Time for one packet, by kind. The common cases come first.
#![allow(clippy::unwrap_used, reason = "a frame that cannot be built ends the benchmark")]

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use etherparse::{IpFragOffset, IpNumber, PacketBuilder};
use ringtap_wire::{Decoder, HashKey, LinkType, PacketRecord};

const FRAMES: usize = 1024;

type Make = fn(u32) -> Vec<u8>;

fn source(i: u32) -> [u8; 4] {
    i.wrapping_mul(0x9e37_79b9).to_be_bytes()
}

fn tcp4(i: u32) -> Vec<u8> {
    let mut frame = Vec::new();
    PacketBuilder::ethernet2([1; 6], [2; 6])
        .ipv4(source(i), [10, 0, 0, 1], 64)
        .tcp(i as u16, 443, 1, 1024)
        .write(&mut frame, &[0; 64])
        .unwrap();
    frame
}

fn udp4(i: u32) -> Vec<u8> {
    let mut frame = Vec::new();
    PacketBuilder::ethernet2([1; 6], [2; 6])
        .ipv4(source(i), [10, 0, 0, 1], 64)
        .udp(i as u16, 53)
        .write(&mut frame, &[0; 64])
        .unwrap();
    frame
}

fn mixed4(i: u32) -> Vec<u8> {
    if source(i)[0] & 1 == 0 { tcp4(i) } else { udp4(i) }
}

fn vlan_tcp4(i: u32) -> Vec<u8> {
    let mut frame = Vec::new();
    PacketBuilder::ethernet2([1; 6], [2; 6])
        .single_vlan(77.try_into().unwrap())
        .ipv4(source(i), [10, 0, 0, 1], 64)
        .tcp(i as u16, 443, 1, 1024)
        .write(&mut frame, &[0; 64])
        .unwrap();
    frame
}

fn tcp6(i: u32) -> Vec<u8> {
    let mut address = [0x20; 16];
    address[12..].copy_from_slice(&source(i));
    let mut frame = Vec::new();
    PacketBuilder::ethernet2([1; 6], [2; 6])
        .ipv6(address, [0xfd; 16], 64)
        .tcp(i as u16, 443, 1, 1024)
        .write(&mut frame, &[0; 64])
        .unwrap();
    frame
}

fn fragment4(i: u32) -> Vec<u8> {
    let mut ip =
        etherparse::Ipv4Header::new(64, 64, IpNumber::UDP, source(i / 2), [10; 4]).unwrap();
    ip.identification = i as u16 / 2;
    ip.more_fragments = i.is_multiple_of(2);
    ip.fragment_offset = IpFragOffset::try_new((i as u16 % 2) * 8).unwrap();
    let mut frame = vec![1; 12];
    frame.extend([8, 0]);
    ip.write(&mut frame).unwrap();
    frame.extend([0; 64]);
    frame
}

fn decode(c: &mut Criterion) {
    let cases: [(&str, Make); 6] = [
        ("ipv4-tcp", tcp4),
        ("ipv4-tcp-and-udp", mixed4),
        ("vlan-ipv4-tcp", vlan_tcp4),
        ("ipv6-tcp", tcp6),
        ("ipv4-fragments", fragment4),
        ("arp", |_| [&[1; 12][..], &[8, 6], &[0; 46]].concat()),
    ];
    let mut group = c.benchmark_group("decode");
    group.throughput(Throughput::Elements(FRAMES as u64));
    for (name, make) in cases {
        let frames: Vec<Vec<u8>> = (0..FRAMES as u32).map(make).collect();
        let mut decoder = Decoder::new(HashKey::from_seed(1), Default::default());
        let mut records = vec![PacketRecord::EMPTY; FRAMES];
        group.bench_function(name, |b| {
            b.iter(|| {
                for (i, (frame, out)) in frames.iter().zip(&mut records).enumerate() {
                    let len = frame.len() as u32;
                    black_box(decoder.decode(LinkType::ETHERNET, i as u64, frame, len, out));
                }
                black_box(&records);
            });
        });
    }
    group.finish();
}

criterion_group!(benches, decode);
criterion_main!(benches);
