//! Writes a capture of equal packets and prints how fast that was: `write FILE PACKETS BYTES`.
#![allow(clippy::print_stdout, clippy::disallowed_methods)]

use std::fs::File;
use std::time::Instant;

use ringtap_io::capture::PcapWriter;
use ringtap_wire::LinkType;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().collect();
    let [_, path, packets, bytes] = args.as_slice() else {
        return Err("usage: write FILE PACKETS BYTES".into());
    };
    let (packets, bytes): (u64, usize) = (packets.parse()?, bytes.parse()?);
    let data = vec![0_u8; bytes];
    let mut writer = PcapWriter::new(File::create(path)?, LinkType(1), 262_144);
    let begin = Instant::now();
    for number in 0..packets {
        writer.write(number * 1000, bytes as u32, &data)?;
    }
    writer.flush()?;
    let rate = packets as f64 / begin.elapsed().as_secs_f64() / 1e6;
    println!("{packets} packets of {bytes} bytes: {rate:.1} Mpps");
    Ok(())
}
