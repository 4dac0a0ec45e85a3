//! `ringtap filter ctl`: asks a filter that runs, or changes its rules.

use std::net::{SocketAddr, UdpSocket};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use ringtap_base::now_ns;
use ringtap_filter::parse;

use super::message::{LOOK_EVERY, Message};
use crate::args::{CtlAction, CtlArgs, Target};
use ringtap_terminal::Usage;
use ringtap_terminal::console;

/// How long a filter may take to answer; it builds millions of rules in less.
const PATIENCE: Duration = Duration::from_secs(60);

/// What goes into a datagram that nobody takes apart on its way.
const DATAGRAM_MOST: usize = 1_200;

pub(super) fn run(args: &CtlArgs) -> anyhow::Result<ExitCode> {
    let question = question(&args.action, args.dry_run)?;
    match &args.target {
        Target::Socket(path) => ask(path, &question),
        Target::Packet(to) => send(*to, args, &question),
    }
}

fn ask(path: &Path, question: &Message) -> anyhow::Result<ExitCode> {
    let shown = path.display();
    let stream = UnixStream::connect(path).with_context(|| {
        format!("no filter listens at {shown} (ringtap filter --control unix:PATH)")
    })?;
    stream.set_read_timeout(Some(LOOK_EVERY))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    // A filter that did not like the beginning has answered already.
    let written = question.write(&stream);
    let answer = Message::read(&stream, PATIENCE);
    let answer = answer.map_err(|error| written.err().unwrap_or(error));
    let answer = answer.with_context(|| format!("asking the filter at {shown}"))?;
    if answer.word != "ok" {
        bail!("{}", answer.text.trim_end());
    }
    console::print(&answer.text).map(|()| ExitCode::SUCCESS)
}

/// A control packet among the others. Nobody answers.
fn send(to: SocketAddr, args: &CtlArgs, question: &Message) -> anyhow::Result<ExitCode> {
    let statements = match question.word.as_str() {
        "apply" => question.text.clone(),
        "replace" => format!("clear\n{}", question.text),
        _ => return Err(Usage::of("a control packet only changes rules; ask by the socket")),
    };
    let Some(key) = &args.key else {
        return Err(Usage::of("a control packet is sealed: name the key, as in --key FILE"));
    };
    parse(&statements).map_err(Usage::of)?;
    let payload = super::key(key)?.seal(now_ns(), &statements);
    if payload.len() > DATAGRAM_MOST {
        return Err(Usage::of(format!(
            "{} bytes do not fit a control packet of {DATAGRAM_MOST}; use the socket",
            payload.len()
        )));
    }
    let any = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let socket = UdpSocket::bind(any)?;
    socket.send_to(&payload, to).with_context(|| format!("sending to {to}"))?;
    Ok(ExitCode::SUCCESS)
}

/// What to say to the filter.
fn question(action: &CtlAction, dry_run: bool) -> anyhow::Result<Message> {
    let lines = |word: &str, all: &[String]| -> String {
        all.iter().map(|one| format!("{word} {one}\n")).collect()
    };
    let (word, text) = match action {
        CtlAction::Add { rule } => ("apply", rule.join(" ")),
        CtlAction::Remove { rule } => ("apply", format!("remove {}", rule.join(" "))),
        CtlAction::Ban { sources } => ("apply", lines("ban", sources)),
        CtlAction::Unban { sources } => ("apply", lines("unban", sources)),
        CtlAction::Default { policy } => ("apply", format!("default {policy}")),
        CtlAction::Apply { file } => ("apply", super::read_rules(file)?),
        CtlAction::Replace { file } => ("replace", super::read_rules(file)?),
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
        (_, true) => Err(Usage::of("--dry-run is for changes")),
        (word, false) => Ok(Message::new(word, text)),
    }
}
