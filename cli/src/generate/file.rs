//! Traffic to a capture file, and its truth. A regular file gets its name when it is complete; after a failed write or an
//! interrupt there is none.

use std::io::{self, Write};
use std::path::Path;

use anyhow::Context;
use ringtap_io::capture::PcapWriter;
use ringtap_traffic::{Generator, Truth};
use ringtap_wire::LinkType;

use super::WATCH;
use super::stamps::Stamps;
use crate::whole::Whole;
use ringtap_base::Clock;
use ringtap_terminal::console::complain;
use ringtap_terminal::numbers::{bytes, count, rate};

struct Written {
    packets: u64,
    octets: u64,
}

/// Writes all frames of `generator`; `-` is stdout. Stamps tell no time, for nothing is sent.
pub(super) fn write(
    generator: &mut Generator,
    mut stamps: Option<Stamps>,
    path: &Path,
) -> anyhow::Result<()> {
    let clock = Clock::start();
    let written = told(path, write_frames(generator, stamps.as_mut(), path))?;
    if let Some(written) = written {
        summary(&written, clock.seconds());
    }
    if let Some(complaint) = stamps.and_then(|stamps| stamps.complaint()) {
        complain("warning", &complaint);
    }
    Ok(())
}

/// Writes what is true of the frames given so far; `-` is stdout.
pub(super) fn write_truth(truth: &Truth, path: &Path) -> anyhow::Result<()> {
    let write = || {
        let mut file = Whole::new(path.to_owned());
        let mut out = io::BufWriter::new(file.begin()?);
        serde_json::to_writer_pretty(&mut out, truth)?;
        out.write_all(b"\n")?;
        out.flush()?;
        file.finish()
    };
    told(path, write()).map(drop)
}

/// A failed write in words; None if a reader of stdout has seen enough, which is no failure.
fn told<T>(path: &Path, result: io::Result<T>) -> anyhow::Result<Option<T>> {
    match result {
        Err(error) if path.as_os_str() == "-" && error.kind() == io::ErrorKind::BrokenPipe => {
            Ok(None)
        }
        result => Ok(Some(result.with_context(|| format!("writing {}", path.display()))?)),
    }
}

fn write_frames(
    generator: &mut Generator,
    mut stamps: Option<&mut Stamps>,
    path: &Path,
) -> io::Result<Written> {
    let snaplen = generator.profile().snaplen;
    let mut written = Written { packets: 0, octets: 0 };
    let mut file = Whole::new(path.to_owned());
    // It holds back large blocks itself.
    let mut writer = PcapWriter::new(file.begin()?, LinkType::ETHERNET, snaplen);
    let mut copy = Vec::new();
    while let Some(frame) = generator.next() {
        if WATCH.stopped() {
            let packets = count(written.packets);
            return Err(io::Error::other(format!("interrupted after {packets} packets")));
        }
        let mut data = frame.data;
        if let Some(stamps) = &mut stamps {
            copy.clear();
            copy.extend_from_slice(data);
            stamps.stamp(&mut copy, None);
            data = &copy;
        }
        writer.write(frame.ts_ns, frame.original_len, data)?;
        written.packets += 1;
        written.octets += u64::from(frame.original_len);
    }
    writer.flush()?;
    file.finish()?;
    Ok(written)
}

/// On stderr: the frames may be on stdout.
fn summary(written: &Written, seconds: f64) {
    let _ = writeln!(
        ringtap_terminal::console::stderr(),
        "{} packets, {} on the wire, in {seconds:.2} s ({} packets/s)",
        count(written.packets),
        bytes(written.octets),
        rate(written.packets as f64 / seconds.max(1e-9)),
    );
}
