//! `ringtap-ndn forward ctl`: queries a running forwarder or changes its routes, with NFD's management
//! protocol.

use std::process::ExitCode;

use anyhow::{Context, bail};
use ringtap_ndn::faces::Remote;
use ringtap_ndn::packets::NameBuf;
use ringtap_ndn::packets::management::{
    CHILD_INHERIT, ControlParameters, FaceStatus, GeneralStatus, ORIGIN_STATIC, RibEntry,
    STRATEGY_PREFIX, StrategyChoice,
};
use ringtap_ndn::relay::Strategy;

use super::client::Client;
use super::{events, text};
use crate::args::{ForwardCtl, ForwardCtlArgs};
use crate::keys::CommandSigner;
use crate::run::stoppable;
use ringtap_terminal::Usage;
use ringtap_terminal::console;

pub(super) fn run(args: &ForwardCtlArgs) -> anyhow::Result<ExitCode> {
    let mut client = Client::connect(&args.socket, CommandSigner::of(&args.signing)?)?;
    let client = &mut client;
    let text = match &args.action {
        ForwardCtl::Register { prefix, to, cost, expires } => {
            let face = face_to(client, to)?;
            let response = client.command(
                "rib",
                "register",
                &ControlParameters {
                    name: Some(prefix.clone()),
                    face: Some(face),
                    origin: Some(ORIGIN_STATIC),
                    cost: Some(*cost),
                    flags: Some(CHILD_INHERIT),
                    expiration_ms: expires.map(|ns| ns / 1_000_000),
                    ..ControlParameters::default()
                },
            )?;
            format!("{prefix} is routed to face {}\n", response.face.unwrap_or(face))
        }
        ForwardCtl::Unregister { prefix, to } => {
            let face = known_face(client, to)?;
            let name = Some(prefix.clone());
            let parameters = ControlParameters { name, face: Some(face), ..Default::default() };
            let parameters = ControlParameters { origin: Some(ORIGIN_STATIC), ..parameters };
            client.command("rib", "unregister", &parameters)?;
            format!("{prefix} is no longer routed to face {face}\n")
        }
        ForwardCtl::Routes => {
            let routes = RibEntry::read_all(&client.dataset("rib", "list")?)?;
            text::routes(&routes, &faces(client)?)
        }
        ForwardCtl::Faces => text::faces(&faces(client)?),
        ForwardCtl::Close { face } => {
            let parameters = ControlParameters { face: Some(*face), ..Default::default() };
            client.command("faces", "destroy", &parameters)?;
            format!("face {face} is closed\n")
        }
        ForwardCtl::Strategies => {
            let choices = StrategyChoice::read_all(&client.dataset("strategy-choice", "list")?)?;
            text::strategies(&choices)
        }
        ForwardCtl::Strategy { prefix, name } => choose(client, prefix, name)?,
        ForwardCtl::Events { count } => {
            stoppable(None, || events::run(client, *count))?;
            return Ok(ExitCode::SUCCESS);
        }
        ForwardCtl::Status => {
            text::status(&GeneralStatus::read(&client.dataset("status", "general")?)?)
        }
    };
    console::print_plain(&text).map(|()| ExitCode::SUCCESS)
}

/// Sets or, with `none`, unsets the strategy of a prefix.
fn choose(client: &mut Client, prefix: &NameBuf, strategy: &str) -> anyhow::Result<String> {
    let name = Some(prefix.clone());
    if strategy == "none" {
        let parameters = ControlParameters { name, ..Default::default() };
        client.command("strategy-choice", "unset", &parameters)?;
        return Ok(format!("{prefix} inherits the strategy of its parent prefix\n"));
    }
    if !Strategy::ALL.iter().any(|known| known.name() == strategy) {
        let names = Strategy::ALL.map(Strategy::name).join(", ");
        return Err(Usage::of(format!("unknown strategy {strategy:?}: use {names} or none")));
    }
    let mut full: NameBuf = STRATEGY_PREFIX.parse()?;
    full.push(strategy.as_bytes());
    let parameters = ControlParameters { name, strategy: Some(full), ..Default::default() };
    client.command("strategy-choice", "set", &parameters)?;
    Ok(format!("{prefix} uses the strategy {strategy}\n"))
}

fn faces(client: &mut Client) -> anyhow::Result<Vec<FaceStatus>> {
    Ok(FaceStatus::read_all(&client.dataset("faces", "list")?)?)
}

/// The face to a neighbour; created if none exists.
fn face_to(client: &mut Client, to: &str) -> anyhow::Result<u64> {
    if let Ok(face) = to.parse() {
        return Ok(face);
    }
    let remote: Remote = to.parse().map_err(Usage::of)?;
    let (uri, local_uri) = uris(&remote);
    let parameters = ControlParameters { uri: Some(uri), local_uri, ..Default::default() };
    let response = client
        .command("faces", "create", &parameters)
        .with_context(|| format!("creating a face to {to}"))?;
    response.face.context("the forwarder did not return the new face")
}

/// The existing face to a neighbour.
fn known_face(client: &mut Client, to: &str) -> anyhow::Result<u64> {
    if let Ok(face) = to.parse() {
        return Ok(face);
    }
    let remote: Remote = to.parse().map_err(Usage::of)?;
    let (uri, local) = uris(&remote);
    let is_it = |face: &&FaceStatus| {
        face.uri == uri && local.as_ref().is_none_or(|local| *local == face.local_uri)
    };
    match faces(client)?.iter().find(is_it) {
        Some(face) => Ok(face.face),
        None => bail!("unknown face {to}: 'faces' lists all"),
    }
}

/// Remote and local URI in NFD's syntax.
fn uris(remote: &Remote) -> (String, Option<String>) {
    let local = match remote {
        Remote::Ethernet { interface, .. }
        | Remote::Multicast { interface: Some(interface), .. } => {
            Some(format!("dev://{interface}"))
        }
        _ => None,
    };
    (remote.to_string(), local)
}
