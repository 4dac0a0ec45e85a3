//! Load generator for an NDN forwarder: a consumer that sends Interests with new names, and a
//! producer that returns Data, in one thread, each with its own UDP or Ethernet socket. Frames are
//! sent 64 per system call. With `--offload` the kernel segments datagrams from larger messages, so
//! that the load uses less CPU time than the forwarder.
//!
//! ```text
//!  forward --to udp://127.0.0.1:6363 --answer-at udp://127.0.0.1:7000 --window 256 --seconds 5 --content 100
//!  forward --to ether://left/02:00:00:00:00:02 --answer-at ether://far …
//! ```
//!
//! `--window` Interests are in flight at a time; each Data lets the next one follow. Prints a line
//! of JSON.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use ringtap_ndn::faces::{
    EthernetMethod, EthernetSettings, Faces, Handler, Intake, Persistence, ReceivedPacket, Remote,
    Settings,
};
use ringtap_ndn::packets::{Headers, Interest, NameBuf, NewData, NewInterest, component};

/// Time before exchanges are counted.
const WARM_UP: Duration = Duration::from_millis(500);

/// If no Data arrives for this time, all Interests in flight count as lost.
const LOST_AFTER: Duration = Duration::from_millis(300);

struct Options {
    to: Remote,
    answer_at: Remote,
    window: u64,
    seconds: f64,
    content: usize,
    offload: bool,
}

/// Counts the Data and Nacks that arrive.
struct Consumer {
    answered: u64,
    nacks: u64,
}

/// Answers Interests with Data.
struct Producer {
    content: Vec<u8>,
    wire: Vec<u8>,
}

impl Handler for Consumer {
    fn up(&mut self, _: &mut Faces, _: u32) {}
    fn down(&mut self, _: &mut Faces, _: u32) {}
    fn packets(&mut self, _: &mut Faces, packets: &[ReceivedPacket<'_>]) {
        for ReceivedPacket { headers, packet, .. } in packets {
            match (headers.nack, packet.first()) {
                (None, Some(6)) => self.answered += 1,
                _ => self.nacks += 1,
            }
        }
    }
}

impl Handler for Producer {
    fn up(&mut self, _: &mut Faces, _: u32) {}
    fn down(&mut self, _: &mut Faces, _: u32) {}
    fn packets(&mut self, faces: &mut Faces, packets: &[ReceivedPacket<'_>]) {
        for ReceivedPacket { face, headers, packet } in packets {
            let Ok(interest) = Interest::read(packet) else { continue };
            self.wire.clear();
            let (name, content) = (interest.name, &self.content);
            NewData { name, freshness_ms: Some(1000), content }.write(&mut self.wire);
            faces.send(*face, &Headers { token: headers.token, ..Headers::default() }, &self.wire);
        }
    }
}

fn main() -> ExitCode {
    match options().and_then(|options| run(&options)) {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("forward: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<String, String> {
    let mut settings = Settings { udp_offload: options.offload, ..Settings::default() };
    let mut consumer_faces = Faces::open(settings.clone()).map_err(|error| error.to_string())?;
    match &options.answer_at {
        Remote::Udp(at) => settings.udp.push(*at),
        Remote::Ethernet { interface, .. } => settings.ethernet.push(EthernetSettings {
            interface: interface.clone(),
            method: EthernetMethod::Packet,
            strangers: true,
            mtu: None,
        }),
        other => return Err(format!("invalid --answer-at {other}: use udp:// or ether://")),
    }
    let mut producer_faces = Faces::open(settings).map_err(|error| error.to_string())?;
    let (face, _) = consumer_faces
        .add(&options.to, Persistence::Permanent)
        .map_err(|error| error.to_string())?;
    let (mut consumer_intake, mut producer_intake) = (Intake::new(), Intake::new());
    let mut consumer = Consumer { answered: 0, nacks: 0 };
    let mut producer = Producer { content: vec![7; options.content], wire: Vec::new() };

    let began = Instant::now();
    let mut name: NameBuf = "/load/exchange".parse().map_err(|_| "invalid name")?;
    let prefix = name.as_bytes().len();
    let (mut sent, mut lost, mut wire) = (0_u64, 0_u64, Vec::new());
    let (mut counted, mut latest, mut before) = (None, began, 0);
    // Different names in each run.
    let first = u64::from(std::process::id()) << 40;
    let until = WARM_UP + Duration::from_secs_f64(options.seconds);
    loop {
        let done = consumer.answered + consumer.nacks + lost;
        while sent < done + options.window {
            name.truncate(prefix);
            name.push_number(component::SEQUENCE, first + sent);
            wire.clear();
            NewInterest::new(name.as_name(), sent as u32).write(&mut wire);
            consumer_faces.send(face, &Headers::default(), &wire);
            sent += 1;
        }
        consumer_faces.flush();
        let none = Duration::ZERO;
        producer_intake.wait(&producer_faces, none).map_err(|error| error.to_string())?;
        producer_intake.receive(&mut producer_faces, 0, &mut producer);
        consumer_intake.wait(&consumer_faces, none).map_err(|error| error.to_string())?;
        consumer_intake.receive(&mut consumer_faces, 0, &mut consumer);

        let now = Instant::now();
        if consumer.answered > before {
            (before, latest) = (consumer.answered, now);
        } else if now - latest > LOST_AFTER {
            lost = sent - consumer.answered - consumer.nacks;
            latest = now;
        }
        if counted.is_none() && now - began > WARM_UP {
            counted = Some((now, consumer.answered));
        }
        if now - began > until {
            let (since, at) = counted.unwrap_or((began, 0));
            let rate = (consumer.answered - at) as f64 / (now - since).as_secs_f64();
            return Ok(format!(
                "{{\"data_per_second\": {rate:.0}, \"answered\": {}, \"nacks\": {}, \"lost\": {lost}}}",
                consumer.answered, consumer.nacks
            ));
        }
    }
}

fn options() -> Result<Options, String> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let value = |flag: &str| {
        let at = words.iter().position(|word| word == flag);
        let value = at.and_then(|at| words.get(at + 1));
        value.ok_or_else(|| format!("missing {flag} VALUE"))
    };
    let wrong = |flag: &str| format!("invalid value of {flag}");
    Ok(Options {
        to: value("--to")?.parse().map_err(|_| wrong("--to"))?,
        answer_at: value("--answer-at")?.parse().map_err(|_| wrong("--answer-at"))?,
        window: value("--window")?.parse().map_err(|_| wrong("--window"))?,
        seconds: value("--seconds")?.parse().map_err(|_| wrong("--seconds"))?,
        content: value("--content")?.parse().map_err(|_| wrong("--content"))?,
        offload: words.iter().any(|word| word == "--offload"),
    })
}
