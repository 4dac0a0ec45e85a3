//! Asks a forwarder to send the Interests of a prefix here: NFD's management, `rib/register`.

use std::time::Duration;

use anyhow::{Context, bail};
use ringtap_ndn::packets::management::{self, ControlParameters, ControlResponse};
use ringtap_ndn::packets::{Headers, Name, NameBuf, Packet};

use super::link::{Answers, Link};
use crate::args::Url;
use ringtap_base::{Clock, now_ns};

/// How long the answer may take: as long as an Interest lives that does not say.
const PATIENCE: Duration = Duration::from_secs(4);

/// Registers a prefix; an error says what the forwarder said. `other` hears what else comes meanwhile.
pub(super) fn register(
    link: &mut Link,
    at: &Url,
    prefix: Name<'_>,
    other: impl FnMut(&Headers, &Packet<'_>, &mut Answers),
) -> anyhow::Result<()> {
    let refused = || format!("registering {prefix} at {at}");
    match command(link, at, prefix, "register", other).with_context(refused)? {
        Some((200, _)) => Ok(()),
        Some((code, text)) => bail!("{at} does not register {prefix}: {code} {text}{}", remedy(at)),
        None => bail!("{at} does not answer the registration of {prefix}{}", remedy(at)),
    }
}

/// What allows a registration over UDP, which forwarders refuse unless they are configured.
fn remedy(at: &Url) -> &'static str {
    match at {
        Url::Unix(_) => "",
        Url::Udp(..) => {
            "\n  Over UDP a forwarder must allow it in its configuration: NFD by rib.localhop_security in nfd.conf,\n  \
             ndnd by mgmt.allow_localhop: true; ringtap forward never does. Without it, register by the forwarder's\n  \
             Unix socket (--to unix:PATH), or listen (--listen udp://ADDRESS:PORT) and add a route to there:\n  \
             [[route]] in the configuration of ringtap forward, 'ringtap forward ctl SOCKET register' or 'nfdc route add'"
        }
    }
}

/// Takes it back. If there is no answer, the forwarder will notice that nobody is there.
pub(super) fn unregister(link: &mut Link, at: &Url, prefix: Name<'_>) -> anyhow::Result<()> {
    command(link, at, prefix, "unregister", |_, _, _| ()).map(|_| ())
}

/// Code and text of the answer.
fn command(
    link: &mut Link,
    at: &Url,
    prefix: Name<'_>,
    verb: &str,
    mut other: impl FnMut(&Headers, &Packet<'_>, &mut Answers),
) -> anyhow::Result<Option<(u64, String)>> {
    // What is local may command by /localhost; neighbours by /localhop, if they are let.
    let scope = if matches!(at, Url::Unix(_)) { "localhost" } else { "localhop" };
    let parameters = ControlParameters { name: Some(NameBuf::of(prefix)), ..Default::default() };
    let time_ms = now_ns() / 1_000_000;
    let nonce = (time_ms as u32).rotate_left(16) ^ std::process::id();
    let mut wire = Vec::new();
    management::command(scope, "rib", verb, &parameters, nonce, time_ms, &mut wire);
    link.send(&Headers::NONE, &wire)?;
    let Ok(Packet::Interest(sent)) = Packet::read(&wire) else { bail!("{prefix} is too long") };
    let clock = Clock::start();
    let mut answer = None;
    while answer.is_none() {
        let waited = Duration::from_nanos(clock.now_ns());
        let Some(left) = PATIENCE.checked_sub(waited).filter(|left| !left.is_zero()) else { break };
        let there =
            link.receive(clock.now_ns(), left, |headers, packet, answers| match packet {
                Packet::Data(data) if data.name == sent.name => {
                    let read = ControlResponse::read(data.content).ok();
                    answer = read.map(|read| (read.code, read.text));
                }
                Packet::Interest(back) if back.name == sent.name && headers.nack.is_some() => {
                    answer = Some((404, format!("Nack: it takes no commands under /{scope}/nfd")));
                }
                _ => other(headers, packet, answers),
            })?;
        if !there {
            bail!("the forwarder at {at} has closed the connection");
        }
    }
    Ok(answer)
}
