//! A program's end of a forwarder's socket: commands and data sets, one after the other.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use ringtap_base::now_ns;
use ringtap_ndn::packets::management::{ControlParameters, ControlResponse, command, last_segment};
use ringtap_ndn::packets::{
    Data, Element, Error, LpPacket, NackReason, Name, NameBuf, NewInterest, PACKET_MAX, component,
};

use ringtap_base::Clock;

/// How long a forwarder may take for an answer, whatever else it sends meanwhile.
const PATIENCE: Duration = Duration::from_secs(4);

/// Segments of a data set that are fetched.
const SEGMENTS_MAX: u64 = 100_000;

pub(super) struct Client {
    stream: UnixStream,
    came: Vec<u8>,
}

impl Client {
    pub(super) fn connect(path: &Path) -> anyhow::Result<Self> {
        let shown = path.display();
        let stream = UnixStream::connect(path).with_context(|| {
            format!("no forwarder listens at {shown} ([unix] in its configuration)")
        })?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self { stream, came: Vec::new() })
    }

    /// Has a command carried out; what holds then.
    pub(super) fn command(
        &mut self,
        module: &str,
        verb: &str,
        parameters: &ControlParameters,
    ) -> anyhow::Result<ControlParameters> {
        let mut interest = Vec::new();
        let now = now_ns();
        command("localhost", module, verb, parameters, now as u32, now / 1_000_000, &mut interest);
        let data = self.ask(&interest)?;
        let response = ControlResponse::read(Data::read(&data)?.content)
            .with_context(|| format!("reading the answer to {module}/{verb}"))?;
        ensure!(response.code == 200, "the forwarder says {}: {}", response.code, response.text);
        Ok(response.parameters.unwrap_or_default())
    }

    /// Fetches a data set, all its segments.
    pub(super) fn dataset(&mut self, module: &str, verb: &str) -> anyhow::Result<Vec<u8>> {
        let prefix: NameBuf = format!("/localhost/nfd/{module}/{verb}").parse()?;
        let mut interest = NewInterest::new(prefix.as_name(), now_ns() as u32);
        (interest.can_be_prefix, interest.must_be_fresh) = (true, true);
        let data = self.ask(&written(&interest))?;
        let first = Data::read(&data)?;
        let mut whole = first.content.to_vec();
        let last = last_segment(&data).unwrap_or(0).min(SEGMENTS_MAX);
        let mut name = NameBuf::of(first.name);
        let begin = Name::components(&first.name).offsets().last().unwrap_or(0);
        for number in 1..=last {
            name.truncate(begin);
            name.push_number(component::SEGMENT, number);
            let data = self.ask(&written(&NewInterest::new(name.as_name(), now_ns() as u32)))?;
            whole.extend_from_slice(Data::read(&data)?.content);
        }
        Ok(whole)
    }

    /// Sends an Interest and waits for its Data.
    fn ask(&mut self, interest: &[u8]) -> anyhow::Result<Vec<u8>> {
        self.stream.write_all(interest).context("asking the forwarder")?;
        let clock = Clock::start();
        loop {
            let frame = self.frame(clock)?;
            let packet = LpPacket::read(&frame)?;
            match (packet.payload, packet.headers.nack) {
                (Some(_), Some(NackReason::NoRoute)) => bail!("the forwarder has no management"),
                (Some(_), Some(reason)) => bail!("the forwarder refuses: {reason:?}"),
                // Interests are for others.
                (Some(payload), None) if payload.first() == Some(&6) => return Ok(payload.to_vec()),
                _ => {}
            }
        }
    }

    /// The next frame, if it is complete in time.
    fn frame(&mut self, clock: Clock) -> anyhow::Result<Vec<u8>> {
        loop {
            match Element::first(&self.came) {
                Ok((_, rest)) => {
                    let len = self.came.len() - rest.len();
                    return Ok(self.came.drain(..len).collect());
                }
                Err(Error::Truncated) if self.came.len() <= 2 * PACKET_MAX => {}
                Err(error) => return Err(error).context("what the forwarder says is no packet"),
            }
            let left = PATIENCE.saturating_sub(Duration::from_nanos(clock.now_ns()));
            if left.is_zero() {
                bail!("the forwarder does not answer within {} s", PATIENCE.as_secs());
            }
            self.stream.set_read_timeout(Some(left))?;
            let mut bytes = [0; 8192];
            match self.stream.read(&mut bytes) {
                Ok(0) => bail!("the forwarder has hung up"),
                Ok(came) => self.came.extend_from_slice(&bytes[..came]),
                Err(error)
                    if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) => {}
                Err(error) => return Err(error).context("hearing from the forwarder"),
            }
        }
    }
}

fn written(interest: &NewInterest<'_>) -> Vec<u8> {
    let mut wire = Vec::new();
    interest.write(&mut wire);
    wire
}
