//! `--method live`: the kernel generates frames as copies of one template.
//!
//! ```text
//!  template ─▶ LiveSender ─▶ a probe ─▶ has it left? ─▶ the rest; with a rate, 20 calls per second
//! ```

use std::time::Duration;

use anyhow::{Context, bail};
use ringtap_engine::Watch;
use ringtap_io::live::{LiveSender, OpenError, TemplateError};

use super::counts::{Counts, Pacing};
use super::frames::Frames;
use super::mac::Macs;
use super::rate::Rate;
use super::send::{ready, sleep_until};
use ringtap_base::Clock;

/// Frames of the first call, after which it is checked that frames leave.
const PROBE: u64 = 64;

/// Frames per call at full speed. Starting and ending a call takes the kernel about 30 ms,
/// independent of the number of frames.
const STEP_MOST: u64 = 1 << 20;

/// Calls per second, with a rate.
const CALLS: u64 = 20;

/// Most consecutive calls without a frame.
const IDLE_CALLS_MOST: u32 = 1_000;

/// Most frames of a source tried as a template.
const TRIES: usize = 1_000;

/// Most reads of the counter of frames that left, with a pause between: some drivers count late.
const READS_MOST: u32 = 100;
const PAUSE: Duration = Duration::from_millis(10);

/// The template of the copies.
pub(super) enum Template {
    Frame(Vec<u8>),
    /// The first suitable frame.
    FirstOf(Frames),
}

/// Opens a sender of copies with `flows` distinct flows; returns it with the frame length.
pub(super) fn open(
    name: &str,
    template: Template,
    macs: Macs,
    flows: u32,
) -> anyhow::Result<(LiveSender, usize)> {
    let attempt = |frame: &[u8]| {
        let mut frame = frame.to_vec();
        macs.rewrite(&mut frame);
        LiveSender::open(name, &frame, flows).map(|sender| (sender, frame.len()))
    };
    let sender = match template {
        Template::Frame(frame) => attempt(&frame)?,
        Template::FirstOf(mut frames) => {
            let mut opened = None;
            for _ in 0..TRIES {
                let Some(frame) = frames.next() else { break };
                match attempt(frame.data) {
                    Err(OpenError::Template(TemplateError::NotIpv4)) => {}
                    other => {
                        opened = Some(other?);
                        break;
                    }
                }
            }
            frames.print_notices();
            opened.with_context(|| {
                format!("no template: no complete IPv4 frame over Ethernet among the first {TRIES}")
            })?
        }
    };
    ready(name, sender.0.state())?;
    Ok(sender)
}

/// Sends `count` frames of `len` bytes, or until a stop is requested.
pub(super) fn send(
    (mut sender, len): (LiveSender, usize),
    count: u64,
    rate: Option<Rate>,
    watch: &Watch,
    counts: &mut Counts,
) -> anyhow::Result<()> {
    let mut pace = Rate::pace(rate);
    let step = step(rate, len);
    let clock = Clock::start();
    let mut idle = 0;
    let mut result = Ok(());
    while result.is_ok() && counts.sent < count && !watch.stopped() {
        let step = if counts.sent == 0 { step.min(PROBE) } else { step };
        let frames = step.min(count - counts.sent);
        let now = clock.now_ns();
        let wait = pace.due(now, 0, len);
        // The other frames of the step leave with the first one; the pace counts them as sent.
        for _ in 1..frames {
            let _ = pace.due(now, 0, len);
        }
        sleep_until(now.saturating_add(wait), &clock, watch);
        let name = &counts.interface;
        result = sender
            .send(frames)
            .map_err(anyhow::Error::from)
            .and_then(|made| {
                counts.sent += made;
                // Signals may interrupt a few calls.
                idle = if made == 0 { idle + 1 } else { 0 };
                if idle == IDLE_CALLS_MOST {
                    bail!("the kernel generates no more frames");
                }
                if made > 0 && counts.sent == made && left(&sender, 1)? == 0 {
                    bail!(
                        "{made} frames were generated and none left {name}: its peer accepts no XDP frames; \
                         enable NAPI on the peer (ethtool -K IFACE gro on) or attach an XDP program to it"
                    );
                }
                Ok(())
            })
            .with_context(|| format!("sending on {name}"));
    }
    counts.close(clock.seconds());
    counts.accepted = left(&sender, counts.sent).unwrap_or(0).min(counts.sent);
    counts.dropped = counts.sent - counts.accepted;
    counts.frames = counts.sent;
    counts.octets = counts.sent * len as u64;
    counts.close(counts.seconds);
    let pacing =
        |rate: Rate| Pacing { requested: rate.to_string(), latest_ms: pace.late_ns() as f64 / 1e6 };
    counts.rate = rate.map(pacing);
    result
}

/// Number of frames that have left; waits until it reaches `wanted`, at most a second.
fn left(sender: &LiveSender, wanted: u64) -> std::io::Result<u64> {
    for _ in 1..READS_MOST {
        let left = sender.left()?;
        if left >= wanted {
            return Ok(left);
        }
        std::thread::sleep(PAUSE);
    }
    sender.left()
}

/// Frames per call: with a rate, those of 1 / [`CALLS`] second.
fn step(rate: Option<Rate>, len: usize) -> u64 {
    let step = match rate {
        Some(Rate::Packets(rate)) => rate.get() / CALLS,
        Some(Rate::Bits(rate)) => rate.get() / (len.max(1) as u64 * 8 * CALLS),
        Some(Rate::Recorded(_)) | None => STEP_MOST,
    };
    step.clamp(1, STEP_MOST)
}

/// A UDP datagram in an Ethernet frame of `wire` bytes, at least 64; the frame check sequence
/// counts but is not included.
pub(super) fn datagram(wire: u32) -> Vec<u8> {
    let len = wire.saturating_sub(4).max(60) as u16;
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0];
    frame.extend((len - 14).to_be_bytes());
    frame.extend([0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 192, 0, 2, 1, 4, 0, 0, 9]);
    frame.extend((len - 34).to_be_bytes());
    frame.resize(len.into(), 0);
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_has_the_frames_of_a_twentieth_of_a_second() {
        let step = |text: &str| step(text.parse().ok(), 1_000);
        assert_eq!([step("1M"), step("5"), step("100G")], [50_000, 1, STEP_MOST]);
        assert_eq!([step("800Mbit"), step("1bit"), step("none")], [5_000, 1, STEP_MOST]);
    }

    #[test]
    fn the_length_fields_of_the_datagram_match_its_length() {
        for (wire, len) in [(0, 60), (64, 60), (128, 124), (1518, 1514)] {
            let frame = datagram(wire);
            assert_eq!(frame.len(), len);
            assert_eq!(u16::from_be_bytes([frame[16], frame[17]]) as usize, len - 14);
            assert_eq!(u16::from_be_bytes([frame[38], frame[39]]) as usize, len - 34);
        }
    }
}
