//! `ringtap generate`: traffic from a profile and a seed, to a capture file.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use ringtap_capture::PcapWriter;
use ringtap_traffic::{Generator, Profile, Truth};
use ringtap_wire::LinkType;

use crate::args::{GenerateArgs, Usage};

const ETHERNET: LinkType = LinkType(1);

pub(crate) fn run(args: GenerateArgs) -> anyhow::Result<ExitCode> {
    let mut profile = profile(&args.profile)?;
    profile.packets = args.packets.unwrap_or(profile.packets);
    profile.flows = args.flows.unwrap_or(profile.flows);
    profile.zipf = args.zipf.unwrap_or(profile.zipf);
    profile.size = args.size.unwrap_or(profile.size);
    let mut generator = Generator::new(&profile, args.seed).map_err(Usage::of)?;

    write_frames(&mut generator, &args.write)
        .with_context(|| format!("writing {}", args.write.display()))?;
    if let Some(path) = &args.truth {
        write_truth(&generator.truth(), path)
            .with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(ExitCode::SUCCESS)
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

fn write_frames(generator: &mut Generator, path: &Path) -> io::Result<()> {
    let snaplen = generator.profile().snaplen;
    let mut writer = PcapWriter::new(create(path)?, ETHERNET, snaplen);
    while let Some(frame) = generator.next() {
        writer.write(frame.ts_ns, frame.original_len, frame.data)?;
    }
    writer.flush()
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
