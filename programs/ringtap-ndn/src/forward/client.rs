//! A client of a forwarder's socket: sends management commands and fetches data sets, one at a
//! time.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use ringtap_base::{Clock, now_ns};
use ringtap_ndn::packets::management::{ControlParameters, ControlResponse, last_segment};
use ringtap_ndn::packets::{
    Data, Headers, NackReason, Name, NameBuf, NewInterest, Packet, component,
};

use crate::args::Url;
use crate::keys::CommandSigner;
use crate::link::Link;

/// Longest wait for an answer.
const TIMEOUT: Duration = Duration::from_secs(4);

/// Longest wait for packets before a stop is noticed.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Most segments of a data set.
const SEGMENTS_MAX: u64 = 100_000;

/// A connection to a forwarder's socket.
pub(super) struct Client {
    link: Link,
    signer: CommandSigner,
}

impl Client {
    pub(super) fn connect(path: &Path, signer: CommandSigner) -> anyhow::Result<Self> {
        let link = Link::connect(&Url::Unix(path.to_owned()))?;
        Ok(Self { link, signer })
    }

    /// Sends a command; returns the parameters of the response. Creating a face that exists already
    /// succeeds.
    pub(super) fn command(
        &mut self,
        module: &str,
        verb: &str,
        parameters: &ControlParameters,
    ) -> anyhow::Result<ControlParameters> {
        let interest = self.signer.command("localhost", (module, verb), parameters)?;
        let data = self.request(&interest)?;
        let response = ControlResponse::read(Data::read(&data)?.content)
            .with_context(|| format!("reading the answer to {module}/{verb}"))?;
        let exists = (module, verb, response.code) == ("faces", "create", 409);
        ensure!(
            response.code == 200 || exists && response.parameters.is_some(),
            "the forwarder refused the command: {} {}{}",
            response.code,
            response.text,
            if response.code == 403 && !self.signer.has_key() {
                ": sign it with --key and --key-name"
            } else {
                ""
            }
        );
        Ok(response.parameters.unwrap_or_default())
    }

    /// Fetches all segments of a data set; returns their content.
    pub(super) fn dataset(&mut self, module: &str, verb: &str) -> anyhow::Result<Vec<u8>> {
        let prefix: NameBuf = format!("/localhost/nfd/{module}/{verb}").parse()?;
        let mut interest = NewInterest::new(prefix.as_name(), now_ns() as u32);
        (interest.can_be_prefix, interest.must_be_fresh) = (true, true);
        let data = self.request(&to_bytes(&interest))?;
        let first = Data::read(&data)?;
        let mut content = first.content.to_vec();
        let last = last_segment(&data).unwrap_or(0).min(SEGMENTS_MAX);
        let mut name = NameBuf::of(first.name);
        let begin = Name::components(&first.name).offsets().last().unwrap_or(0);
        for number in 1..=last {
            name.truncate(begin);
            name.push_number(component::SEGMENT, number);
            let data =
                self.request(&to_bytes(&NewInterest::new(name.as_name(), now_ns() as u32)))?;
            content.extend_from_slice(Data::read(&data)?.content);
        }
        Ok(content)
    }

    /// Sends an Interest and waits for its Data; returns its bytes.
    fn request(&mut self, interest: &[u8]) -> anyhow::Result<Vec<u8>> {
        let answer = self.request_within(interest, TIMEOUT, || false)?;
        answer
            .with_context(|| format!("no answer from the forwarder within {} s", TIMEOUT.as_secs()))
    }

    /// Sends an Interest and waits for its Data; returns its bytes, or `None` after `timeout` or
    /// when `stopped` returns true.
    pub(super) fn request_within(
        &mut self,
        interest: &[u8],
        timeout: Duration,
        stopped: impl Fn() -> bool,
    ) -> anyhow::Result<Option<Vec<u8>>> {
        self.link.send(&Headers::NONE, interest).context("querying the forwarder")?;
        let clock = Clock::start();
        let mut answer = None;
        while answer.is_none() {
            let left = timeout.saturating_sub(clock.elapsed());
            if left.is_zero() || stopped() {
                return Ok(None);
            }
            let wait = left.min(POLL_INTERVAL);
            let is_connected = self.link.receive(clock.now_ns(), wait, |headers, packet, _| {
                answer = match (packet, headers.nack) {
                    (_, Some(reason)) => Some(Err(reason)),
                    (Packet::Data(data), None) => Some(Ok(data.wire.to_vec())),
                    // Interests are for other applications.
                    (Packet::Interest(_), None) => return,
                };
            })?;
            ensure!(is_connected || answer.is_some(), "the forwarder closed the connection");
        }
        match answer {
            Some(Ok(data)) => Ok(Some(data)),
            Some(Err(NackReason::NoRoute)) => {
                bail!("the forwarder has no route to its management prefix")
            }
            Some(Err(reason)) => bail!("the forwarder answered with a Nack: {reason:?}"),
            None => Ok(None),
        }
    }
}

pub(super) fn to_bytes(interest: &NewInterest<'_>) -> Vec<u8> {
    let mut wire = Vec::new();
    interest.write(&mut wire);
    wire
}
