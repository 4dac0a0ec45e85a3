//! Frames made in the kernel: copies of one template.
//!
//! ```text
//!  template ─▶ LiveSender ─▶ a few ─▶ have they left? ─▶ the rest; with a rate, 20 calls a second
//! ```

use std::time::Duration;

use anyhow::{Context, bail};
use ringtap_engine::Watch;
use ringtap_io::live::{LiveSender, OpenError, TemplateError};

use super::counts::{Counts, Met};
use super::frames::Frames;
use super::mac::Macs;
use super::rate::Rate;
use super::send::{ready, sleep_until};
use ringtap_base::Clock;

/// Frames that are made before anybody believes that they leave.
const PROBE: u64 = 64;

/// Frames of one call at full speed. The kernel takes some 30 ms to begin and end a call, whatever it
/// makes.
const STEP_MOST: u64 = 1 << 20;

/// Calls a second, with a rate.
const CALLS: u64 = 20;

/// So often in a row the kernel may make none.
const PATIENCE: u32 = 1_000;

/// So many frames of a source are tried as a template.
const TRIES: usize = 1_000;

/// Some drivers count late: this often it is asked, with a pause between.
const ASKED_MOST: u32 = 100;
const PAUSE: Duration = Duration::from_millis(10);

/// What to send copies of.
pub(super) enum Original {
    Frame(Vec<u8>),
    /// The first frame that is fit for it.
    FirstOf(Frames),
}

/// A sender of copies with so many different flows, and the length of a frame.
pub(super) fn open(
    name: &str,
    original: Original,
    macs: Macs,
    flows: u32,
) -> anyhow::Result<(LiveSender, usize)> {
    let attempt = |frame: &[u8]| {
        let mut frame = frame.to_vec();
        macs.rewrite(&mut frame);
        LiveSender::open(name, &frame, flows).map(|sender| (sender, frame.len()))
    };
    let sender = match original {
        Original::Frame(frame) => attempt(&frame)?,
        Original::FirstOf(mut frames) => {
            let mut opened = None;
            for _ in 0..TRIES {
                let Some(given) = frames.next() else { break };
                match attempt(given.data) {
                    Err(OpenError::Template(TemplateError::NotIpv4)) => {}
                    other => {
                        opened = Some(other?);
                        break;
                    }
                }
            }
            frames.tell();
            opened.with_context(|| {
                format!(
                    "no whole Ethernet frame with IPv4 among the first {TRIES}: nothing to copy"
                )
            })?
        }
    };
    ready(name, sender.0.state())?;
    Ok(sender)
}

/// Makes `count` frames of `len` bytes, or until asked to stop.
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
        let some = step.min(count - counts.sent);
        let now = clock.now_ns();
        let wait = pace.due(now, 0, len);
        // The rest of the step leaves with its first frame, and is reckoned as sent.
        for _ in 1..some {
            let _ = pace.due(now, 0, len);
        }
        sleep_until(now.saturating_add(wait), &clock, watch);
        let name = &counts.interface;
        result = sender
            .send(some)
            .map_err(anyhow::Error::from)
            .and_then(|made| {
                counts.sent += made;
                // A signal may come between, but not so often.
                idle = if made == 0 { idle + 1 } else { 0 };
                if idle == PATIENCE {
                    bail!("the kernel makes no frames any more");
                }
                if made > 0 && counts.sent == made && left(&sender, 1)? == 0 {
                    bail!(
                        "{made} frames were made and none left {name}: its other end takes no frames of XDP; \
                         switch NAPI on there (ethtool -K IFACE gro on) or let an XDP program receive"
                    );
                }
                Ok(())
            })
            .with_context(|| format!("sending by {name}"));
    }
    counts.close(clock.seconds());
    counts.accepted = left(&sender, counts.sent).unwrap_or(0).min(counts.sent);
    counts.dropped = counts.sent - counts.accepted;
    counts.frames = counts.sent;
    counts.octets = counts.sent * len as u64;
    counts.close(counts.seconds);
    let met = |rate: Rate| Met { asked: rate.to_string(), latest_ms: pace.late_ns() as f64 / 1e6 };
    counts.rate = rate.map(met);
    result
}

/// How many frames have left, once it is `wanted` or does not become so.
fn left(sender: &LiveSender, wanted: u64) -> std::io::Result<u64> {
    for _ in 1..ASKED_MOST {
        let left = sender.left()?;
        if left >= wanted {
            return Ok(left);
        }
        std::thread::sleep(PAUSE);
    }
    sender.left()
}

/// Frames of one call: with a rate, so many that there are [`CALLS`] a second.
fn step(rate: Option<Rate>, len: usize) -> u64 {
    let step = match rate {
        Some(Rate::Packets(rate)) => rate.get() / CALLS,
        Some(Rate::Bits(rate)) => rate.get() / (len.max(1) as u64 * 8 * CALLS),
        Some(Rate::Recorded(_)) | None => STEP_MOST,
    };
    step.clamp(1, STEP_MOST)
}

/// A UDP datagram in a frame of `wire` bytes, check sequence included.
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
    fn a_call_makes_the_frames_of_a_twentieth_of_a_second() {
        let step = |text: &str| step(text.parse().ok(), 1_000);
        assert_eq!([step("1M"), step("5"), step("100G")], [50_000, 1, STEP_MOST]);
        assert_eq!([step("800Mbit"), step("1bit"), step("none")], [5_000, 1, STEP_MOST]);
    }

    #[test]
    fn the_datagram_has_the_lengths_it_says() {
        for (wire, len) in [(0, 60), (64, 60), (128, 124), (1518, 1514)] {
            let frame = datagram(wire);
            assert_eq!(frame.len(), len);
            assert_eq!(u16::from_be_bytes([frame[16], frame[17]]) as usize, len - 14);
            assert_eq!(u16::from_be_bytes([frame[38], frame[39]]) as usize, len - 34);
        }
    }
}
