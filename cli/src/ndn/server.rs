//! `ringtap ndn server`: a producer. Whatever is asked for under its prefix has a Data.

use std::process::ExitCode;

use anyhow::bail;
use ringtap_ndn::packets::{Headers, Interest, Name, NewData, PACKET_MAX, Packet};
use serde_json::json;

use super::link::{Answers, Link};
use super::{LOOK, WATCH, register};
use crate::args::{Form, ServerArgs, Url};
use ringtap_base::Clock;
use ringtap_terminal::Usage;
use ringtap_terminal::console;
use ringtap_terminal::numbers::{count, of, rate};

/// What a Data has besides name and content, at the most.
const FRAME: usize = 80;

/// What answers, and what was done.
struct Server<'a> {
    args: &'a ServerArgs,
    content: Vec<u8>,
    interests: u64,
    data: u64,
    /// Interests of other prefixes.
    elsewhere: u64,
    /// Interests whose name leaves no room for the content, or asks for a digest that nobody can promise.
    unanswerable: u64,
}

pub(super) fn run(args: &ServerArgs) -> anyhow::Result<ExitCode> {
    let room = PACKET_MAX - FRAME - args.prefix.as_bytes().len().min(PACKET_MAX / 2);
    if args.payload > room as u64 {
        return Err(Usage::of(format!("a Data under this prefix has room for {room} bytes")));
    }
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
        // What is asked for may come right behind the answer to the registration.
        register::register(&mut link, &at, prefix, |h, packet, out| server.take(h, packet, out))?;
    }
    let way = if args.to.is_some() { "by" } else { "at" };
    console::note(&format!("serving {} {way} {at}", args.prefix));

    let (clock, mut there) = (Clock::start(), true);
    while !WATCH.stopped() && there && server.has_more() {
        there = link.receive(clock.now_ns(), LOOK, |h, packet, out| server.take(h, packet, out))?;
    }
    if registers && there {
        register::unregister(&mut link, &at, prefix)?;
    }
    server.report(&link, clock.seconds())?;
    if !there {
        bail!("the forwarder at {at} has closed the connection");
    }
    Ok(ExitCode::SUCCESS)
}

impl Server<'_> {
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
                serde_json::to_string_pretty(&report)? + "\n"
            }
            Form::Text => {
                let mut text = format!(
                    "{}, {} Data in {seconds:.1} s, {}/s\n",
                    of(interests, "Interest"),
                    count(data),
                    rate(data as f64 / seconds.max(1e-9)),
                );
                for (number, what) in [
                    (elsewhere, "of other prefixes"),
                    (unanswerable, "too long, or for a digest"),
                    (link.malformed, "no packets"),
                    (link.dropped_here(), "dropped at this program's own socket"),
                ] {
                    if number > 0 {
                        text += &format!("  {} {what}\n", count(number));
                    }
                }
                text
            }
        };
        console::print(&text)
    }
}

fn is_answerable(interest: &Interest<'_>, content: usize) -> bool {
    let name: &Name<'_> = &interest.name;
    name.split_digest().is_none() && name.as_bytes().len() + content + FRAME <= PACKET_MAX
}
