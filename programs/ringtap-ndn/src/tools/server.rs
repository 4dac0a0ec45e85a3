//! `ringtap-ndn server`: a producer that answers each Interest under its prefix with a Data.

use std::process::ExitCode;

use anyhow::bail;
use ringtap_ndn::packets::{Headers, Interest, Name, NewData, PACKET_MAX, Packet};
use serde_json::json;

use super::common::POLL_INTERVAL;
use super::register;
use crate::args::{Form, ServerArgs, Url};
use crate::keys::CommandSigner;
use crate::link::{Answers, Link};
use crate::run::RUN;
use ringtap_base::Clock;
use ringtap_program::json::json;
use ringtap_terminal::Usage;
use ringtap_terminal::console;
use ringtap_terminal::numbers::{count, of, rate};

/// Most bytes of a Data besides name and content.
const FRAME: usize = 80;

/// The server and its counters.
struct Server<'a> {
    args: &'a ServerArgs,
    content: Vec<u8>,
    interests: u64,
    data: u64,
    /// Interests of other prefixes.
    elsewhere: u64,
    /// Interests whose name leaves no room for the content, or ends with a digest.
    unanswerable: u64,
}

pub(crate) fn run(args: &ServerArgs) -> anyhow::Result<ExitCode> {
    let room = PACKET_MAX - FRAME - args.prefix.as_bytes().len().min(PACKET_MAX / 2);
    if args.payload > room as u64 {
        return Err(Usage::of(format!(
            "invalid payload {}: a Data under this prefix has room for {room} bytes",
            args.payload
        )));
    }
    let mut signer = CommandSigner::of(&args.signing)?;
    let (mut link, at) = match &args.to {
        Some(to) => (Link::connect(to)?, to.clone()),
        None => {
            let at = args
                .listen
                .clone()
                .unwrap_or(Url::Udp("127.0.0.1".into(), ringtap_ndn::packets::UDP_PORT));
            (Link::listen(&at)?, at)
        }
    };
    let prefix = args.prefix.as_name();
    let content = vec![b'.'; args.payload as usize];
    let mut server = Server { args, content, interests: 0, data: 0, elsewhere: 0, unanswerable: 0 };
    let registers = matches!(args.to, Some(Url::Unix(_))) || args.register;
    if registers {
        // Interests may arrive together with the answer to the registration.
        register::register(&mut link, &at, prefix, &mut signer, |h, packet, out| {
            server.take(h, packet, out)
        })?;
    }
    let preposition = if args.to.is_some() { "through" } else { "at" };
    console::note(&format!("serving {} {preposition} {at}", args.prefix));

    let (clock, mut is_connected) = (Clock::start(), true);
    while !RUN.ends() && is_connected && server.has_more() {
        is_connected = link
            .receive(clock.now_ns(), POLL_INTERVAL, |h, packet, out| server.take(h, packet, out))?;
    }
    if registers && is_connected {
        register::unregister(&mut link, &at, prefix, &mut signer)?;
    }
    server.report(&link, clock.seconds())?;
    if !is_connected {
        bail!("the forwarder at {at} has closed the connection");
    }
    Ok(ExitCode::SUCCESS)
}

impl Server<'_> {
    /// Whether `--count` is not reached.
    fn has_more(&self) -> bool {
        self.args.count.is_none_or(|count| self.data < count)
    }

    /// Answers an Interest.
    fn take(&mut self, headers: &Headers, packet: &Packet<'_>, answers: &mut Answers) {
        let (Packet::Interest(interest), None) = (packet, headers.nack) else { return };
        self.interests += 1;
        if !self.args.prefix.as_name().is_prefix_of(&interest.name) {
            self.elsewhere += 1;
        } else if !is_answerable(interest, self.content.len()) {
            self.unanswerable += 1;
        } else if self.has_more() {
            self.data += 1;
            let freshness_ms = Some(self.args.freshness / 1_000_000).filter(|&ms| ms > 0);
            let data = NewData { name: interest.name, freshness_ms, content: &self.content };
            answers.add(Headers { token: headers.token, ..Headers::NONE }, |out| data.write(out));
        }
    }

    fn report(&self, link: &Link, seconds: f64) -> anyhow::Result<()> {
        let &Self { args, interests, data, elsewhere, unanswerable, .. } = self;
        let text = match args.output.report {
            Form::Json => {
                let report = json!({
                    "version": env!("CARGO_PKG_VERSION"),
                    "prefix": args.prefix.to_string(),
                    "interests": interests,
                    "data": data,
                    "elsewhere": elsewhere,
                    "unanswerable": unanswerable,
                    "malformed": link.malformed,
                    "dropped_here": link.dropped_here(),
                    "receive_queue_bytes": link.queue_bytes,
                    "payload_bytes": args.payload,
                    "seconds": seconds,
                });
                json(&report)?
            }
            Form::Text => {
                let mut text = format!(
                    "{}, {} Data in {seconds:.1} s, {}/s\n",
                    of(interests, "Interest"),
                    count(data),
                    rate(data as f64 / seconds.max(1e-9)),
                );
                for (number, what) in [
                    (elsewhere, "Interests of other prefixes"),
                    (unanswerable, "Interests with a name that is too long or has a digest"),
                    (link.malformed, "malformed packets"),
                    (link.dropped_here(), "datagrams dropped at this program's own socket"),
                ] {
                    if number > 0 {
                        text += &format!("  {} {what}\n", count(number));
                    }
                }
                text
            }
        };
        console::print_plain(&text)
    }
}

/// Whether a Data can be made for an Interest.
fn is_answerable(interest: &Interest<'_>, content: usize) -> bool {
    let name: &Name<'_> = &interest.name;
    name.split_digest().is_none() && name.as_bytes().len() + content + FRAME <= PACKET_MAX
}
