//! Registers a prefix at a forwarder with NFD's management command `rib/register`.

use std::time::Duration;

use anyhow::{Context, bail};
use ringtap_ndn::packets::management::{ControlParameters, ControlResponse};
use ringtap_ndn::packets::{Headers, Name, NameBuf, Packet};

use crate::args::Url;
use crate::keys::CommandSigner;
use crate::link::{Answers, Link};
use ringtap_base::Clock;

/// Longest wait for the answer: the default lifetime of an Interest.
const TIMEOUT: Duration = Duration::from_secs(4);

/// Registers a prefix. An error has the forwarder's answer. `other` is called with packets that
/// arrive meanwhile.
pub(super) fn register(
    link: &mut Link,
    at: &Url,
    prefix: Name<'_>,
    signer: &mut CommandSigner,
    other: impl FnMut(&Headers, &Packet<'_>, &mut Answers),
) -> anyhow::Result<()> {
    let context = || format!("registering {prefix} at {at}");
    match command(link, at, prefix, "register", signer, other).with_context(context)? {
        Some((200, _)) => Ok(()),
        Some((code, text)) => {
            bail!("{at} refused to register {prefix}: {code} {text}{}", remedy(at, Some(code)))
        }
        None => bail!("no answer from {at} to the registration of {prefix}{}", remedy(at, None)),
    }
}

/// Advice on a refused registration. Over UDP, forwarders refuse it by default.
fn remedy(at: &Url, code: Option<u64>) -> &'static str {
    match at {
        Url::Unix(_) if code == Some(403) => "\n  Sign it with --key and --key-name",
        Url::Unix(_) => "",
        Url::Udp(..) => {
            "\n  Over UDP, a forwarder must allow registration in its configuration: ringtap-ndn forward by [[anchor]], with\n  \
             --key and --key-name here; NFD by rib.localhop_security in nfd.conf; ndnd by mgmt.allow_localhop: true.\n  \
             Otherwise, register through the forwarder's Unix socket (--to unix:PATH), or listen\n  \
             (--listen udp://ADDRESS:PORT) and add a route to it: [[route]] in the configuration of ringtap-ndn forward,\n  \
             'ringtap-ndn forward ctl SOCKET register' or 'nfdc route add'"
        }
    }
}

/// Removes the registration. If the command fails, the forwarder removes it when the face closes.
pub(super) fn unregister(
    link: &mut Link,
    at: &Url,
    prefix: Name<'_>,
    signer: &mut CommandSigner,
) -> anyhow::Result<()> {
    command(link, at, prefix, "unregister", signer, |_, _, _| ()).map(|_| ())
}

/// Sends a command of the module `rib`; returns code and text of the answer, `None` after a
/// timeout.
fn command(
    link: &mut Link,
    at: &Url,
    prefix: Name<'_>,
    verb: &str,
    signer: &mut CommandSigner,
    mut other: impl FnMut(&Headers, &Packet<'_>, &mut Answers),
) -> anyhow::Result<Option<(u64, String)>> {
    // Local programs use /localhost; neighbours use /localhop.
    let scope = if matches!(at, Url::Unix(_)) { "localhost" } else { "localhop" };
    let parameters = ControlParameters { name: Some(NameBuf::of(prefix)), ..Default::default() };
    let wire = signer.command(scope, ("rib", verb), &parameters)?;
    link.send(&Headers::NONE, &wire)?;
    let Ok(Packet::Interest(sent)) = Packet::read(&wire) else {
        bail!("the prefix {prefix} is too long for a command")
    };
    let clock = Clock::start();
    let mut answer = None;
    while answer.is_none() {
        let waited = Duration::from_nanos(clock.now_ns());
        let Some(left) = TIMEOUT.checked_sub(waited).filter(|left| !left.is_zero()) else { break };
        let is_connected =
            link.receive(clock.now_ns(), left, |headers, packet, answers| match packet {
                Packet::Data(data) if data.name == sent.name => {
                    let read = ControlResponse::read(data.content).ok();
                    answer = read.map(|read| (read.code, read.text));
                }
                Packet::Interest(back) if back.name == sent.name && headers.nack.is_some() => {
                    answer = Some((404, format!("Nack: no commands accepted under /{scope}/nfd")));
                }
                _ => other(headers, packet, answers),
            })?;
        if !is_connected {
            bail!("the forwarder at {at} has closed the connection");
        }
    }
    Ok(answer)
}
