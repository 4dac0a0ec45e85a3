//! `ringtap generate`: traffic from a profile and a seed, to a capture file.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Context;
use ringtap_capture::PcapWriter;
use ringtap_traffic::{FlowRules, Generator, Profile, Truth};
use ringtap_wire::LinkType;

use crate::args::GenerateArgs;
use crate::numbers::{bytes, count, rate};
use crate::usage::Usage;

const ETHERNET: LinkType = LinkType(1);

pub(crate) fn run(args: &GenerateArgs) -> anyhow::Result<ExitCode> {
    let mut profile = profile(&args.profile)?;
    profile.packets = args.packets.unwrap_or(profile.packets);
    profile.flows = args.flows.unwrap_or(profile.flows);
    profile.zipf = args.zipf.unwrap_or(profile.zipf);
    profile.size = args.size.unwrap_or(profile.size);
    profile.packets_per_second = args.rate.unwrap_or(profile.packets_per_second);
    let stdout = |path: &Path| path.as_os_str() == "-";
    if stdout(&args.write) && args.truth.as_deref().is_some_and(stdout) {
        return Err(Usage::of("frames and truth cannot both go to stdout; name a file for one"));
    }
    let mut generator = Generator::new(&profile, args.seed).map_err(Usage::of)?;
    if args.truth.is_some() {
        generator.meter(FlowRules::default());
    }

    let begin = now();
    if let Some(written) = told(&args.write, write_frames(&mut generator, &args.write))? {
        summary(&written, begin.elapsed().as_secs_f64());
    }
    if let Some(path) = &args.truth {
        told(path, write_truth(&generator.truth(), path))?;
    }
    Ok(ExitCode::SUCCESS)
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

/// A profile by name, or from a file of TOML or JSON.
fn profile(name: &str) -> anyhow::Result<Profile> {
    if let Some(profile) = Profile::named(name) {
        return Ok(profile);
    }
    let text = match std::fs::read_to_string(name) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(Usage::of(format!(
                "no profile is called {name:?}, and no file either; there are {}",
                Profile::NAMES.join(", "),
            )));
        }
        Err(error) => return Err(error).with_context(|| format!("reading the profile {name}")),
    };
    let parsed = if text.trim_start().starts_with('{') {
        serde_json::from_str(&text).map_err(|error| error.to_string())
    } else {
        toml::from_str(&text).map_err(|error| error.to_string())
    };
    parsed.map_err(|error| Usage::of(format!("the profile {name}: {error}")))
}

struct Written {
    packets: u64,
    octets: u64,
}

fn write_frames(generator: &mut Generator, path: &Path) -> io::Result<Written> {
    let snaplen = generator.profile().snaplen;
    let mut written = Written { packets: 0, octets: 0 };
    let mut writer = PcapWriter::new(create(path)?, ETHERNET, snaplen);
    while let Some(frame) = generator.next() {
        writer.write(frame.ts_ns, frame.original_len, frame.data)?;
        written.packets += 1;
        written.octets += u64::from(frame.original_len);
    }
    writer.flush()?;
    Ok(written)
}

/// On stderr: the frames may be on stdout.
fn summary(written: &Written, seconds: f64) {
    let _ = writeln!(
        anstream::stderr(),
        "{} packets, {} on the wire, in {seconds:.2} s ({} packets/s)",
        count(written.packets),
        bytes(written.octets),
        rate(written.packets as f64 / seconds.max(1e-9)),
    );
}

fn write_truth(truth: &Truth, path: &Path) -> io::Result<()> {
    let mut out = create(path)?;
    serde_json::to_writer_pretty(&mut out, truth)?;
    out.write_all(b"\n")?;
    out.flush()
}

/// `-` is stdout.
fn create(path: &Path) -> io::Result<Box<dyn Write>> {
    Ok(if path.as_os_str() == "-" {
        Box::new(io::BufWriter::new(io::stdout()))
    } else {
        Box::new(io::BufWriter::new(File::create(path)?))
    })
}

#[expect(clippy::disallowed_methods, reason = "how long it took concerns nobody's packets")]
fn now() -> Instant {
    Instant::now()
}
