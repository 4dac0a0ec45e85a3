//! `ringtap filter ctl`: queries a running filter, or changes its rules.

use std::net::{SocketAddr, UdpSocket};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use ringtap_base::now_ns;
use ringtap_filter::parse;

use super::files::{key, read_rules};
use super::message::{Message, POLL_INTERVAL};
use crate::args::{CtlAction, CtlArgs, Target};
use ringtap_terminal::Usage;
use ringtap_terminal::console;

/// Longest wait for an answer. A filter builds millions of rules in less.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Largest payload of a control packet, so that it is not fragmented.
const DATAGRAM_MOST: usize = 1_200;

pub(super) fn run(args: &CtlArgs) -> anyhow::Result<ExitCode> {
    let request = request(&args.action, args.dry_run)?;
    match &args.target {
        Target::Socket(path) => query(path, &request),
        Target::Packet(to) => send(*to, args, &request),
    }
}

/// Sends a request over the socket and prints the answer.
fn query(path: &Path, request: &Message) -> anyhow::Result<ExitCode> {
    let shown = path.display();
    let stream = UnixStream::connect(path).with_context(|| {
        format!("no filter listens at {shown}: start one with ringtap filter --control unix:PATH")
    })?;
    stream.set_read_timeout(Some(POLL_INTERVAL))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    // A failed write is not final: a filter that rejected the beginning has already answered.
    let written = request.write(&stream);
    let answer = Message::read(&stream, TIMEOUT);
    let answer = answer.map_err(|error| written.err().unwrap_or(error));
    let answer = answer.with_context(|| format!("querying the filter at {shown}"))?;
    if answer.word != "ok" {
        bail!("{}", answer.text.trim_end());
    }
    console::print_plain(&answer.text).map(|()| ExitCode::SUCCESS)
}

/// Sends a control packet. There is no answer.
fn send(to: SocketAddr, args: &CtlArgs, request: &Message) -> anyhow::Result<ExitCode> {
    let statements = match request.word.as_str() {
        "apply" => request.text.clone(),
        "replace" => format!("clear\n{}", request.text),
        _ => {
            return Err(Usage::of(
                "a control packet only changes rules: use the socket for queries",
            ));
        }
    };
    let Some(path) = &args.key else {
        return Err(Usage::of("a control packet needs a key: use --key FILE"));
    };
    parse(&statements).map_err(Usage::of)?;
    let payload = key(path)?.seal(now_ns(), &statements);
    if payload.len() > DATAGRAM_MOST {
        return Err(Usage::of(format!(
            "{} bytes exceed a control packet ({DATAGRAM_MOST} bytes): use the socket",
            payload.len()
        )));
    }
    let any = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let socket = UdpSocket::bind(any)?;
    socket.send_to(&payload, to).with_context(|| format!("sending to {to}"))?;
    Ok(ExitCode::SUCCESS)
}

/// The request for an action.
fn request(action: &CtlAction, dry_run: bool) -> anyhow::Result<Message> {
    let lines = |word: &str, all: &[String]| -> String {
        all.iter().map(|one| format!("{word} {one}\n")).collect()
    };
    let (word, text) = match action {
        CtlAction::Add { rule } => ("apply", rule.join(" ")),
        CtlAction::Remove { rule } => ("apply", format!("remove {}", rule.join(" "))),
        CtlAction::Ban { sources } => ("apply", lines("ban", sources)),
        CtlAction::Unban { sources } => ("apply", lines("unban", sources)),
        CtlAction::Default { policy } => ("apply", format!("default {policy}")),
        CtlAction::Apply { file } => ("apply", read_rules(file)?),
        CtlAction::Replace { file } => ("replace", read_rules(file)?),
        CtlAction::List => ("list", String::new()),
        CtlAction::Dump => ("dump", String::new()),
        CtlAction::Explain { source, destination } => {
            ("explain", format!("{source} {destination}"))
        }
        CtlAction::Status => ("status", String::new()),
    };
    match (word, dry_run) {
        ("apply", true) => Ok(Message::new("check", text)),
        ("replace", true) => Ok(Message::new("check-replace", text)),
        (_, true) => Err(Usage::of("--dry-run needs a change")),
        (word, false) => Ok(Message::new(word, text)),
    }
}
