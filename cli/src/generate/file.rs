//! Writes generated traffic to a capture file, and its ground truth. A regular file is renamed when
//! complete; after a failed write or an interrupt it is removed.

use std::io::{self, Write};
use std::path::Path;

use anyhow::Context;
use ringtap_engine::Watch;
use ringtap_io::capture::PcapWriter;
use ringtap_traffic::{Generator, Truth};
use ringtap_wire::LinkType;

use super::stamps::Stamps;
use ringtap_base::Clock;
use ringtap_program::atomic_file::{AtomicFile, Existing};
use ringtap_terminal::console::print_message;
use ringtap_terminal::numbers::{bytes, count, rate};

/// Counters of written packets.
struct Written {
    packets: u64,
    octets: u64,
}

/// Creates an output, so that no other process takes its name.
pub(super) fn claim(path: &Path, existing: Existing) -> anyhow::Result<AtomicFile> {
    AtomicFile::claim(path.to_owned(), existing)
        .with_context(|| format!("writing {}", path.display()))
}

/// Writes all frames of `generator`; `-` is stdout. Stamps have no send time, because nothing is
/// sent.
pub(super) fn write(
    generator: &mut Generator,
    mut stamps: Option<Stamps>,
    file: AtomicFile,
    watch: &Watch,
) -> anyhow::Result<()> {
    let clock = Clock::start();
    let path = file.path().to_owned();
    let written = check_written(&path, write_frames(generator, stamps.as_mut(), file, watch))?;
    if let Some(written) = written {
        summary(&written, clock.seconds());
    }
    if let Some(warning) = stamps.and_then(|stamps| stamps.warning()) {
        print_message("warning", &warning);
    }
    Ok(())
}

/// Writes the ground truth of the frames so far; `-` is stdout.
pub(super) fn write_truth(truth: &Truth, mut file: AtomicFile) -> anyhow::Result<()> {
    let path = file.path().to_owned();
    let mut write = || {
        let mut out = io::BufWriter::new(file.begin()?);
        serde_json::to_writer_pretty(&mut out, truth)?;
        out.write_all(b"\n")?;
        out.flush()?;
        file.finish()
    };
    check_written(&path, write()).map(drop)
}

/// Adds context to the error of a write. Returns `None` if the reader of stdout closed it, which is
/// not an error.
fn check_written<T>(path: &Path, result: io::Result<T>) -> anyhow::Result<Option<T>> {
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
    mut file: AtomicFile,
    watch: &Watch,
) -> io::Result<Written> {
    let snaplen = generator.profile().snaplen;
    let mut written = Written { packets: 0, octets: 0 };
    // The writer has its own buffer.
    let mut writer = PcapWriter::new(file.begin()?, LinkType::ETHERNET, snaplen);
    let mut copy = Vec::new();
    while let Some(frame) = generator.next() {
        if watch.stopped() {
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

/// Prints a summary to stderr, because the frames may go to stdout.
fn summary(written: &Written, seconds: f64) {
    let _ = writeln!(
        ringtap_terminal::console::stderr(),
        "{} packets, {} on the wire, in {seconds:.2} s ({} packets/s)",
        count(written.packets),
        bytes(written.octets),
        rate(written.packets as f64 / seconds.max(1e-9)),
    );
}
