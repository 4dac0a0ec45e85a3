//! A load for a forwarder: one who asks for names that are new each time, and one who answers, in one thread, each with a
//! UDP socket of his own. Plain datagrams, 64 a system call; with `--offload` the kernel cuts them from larger messages,
//! so that the load costs less than what it loads.
//!
//! ```text
//!  forward --to 127.0.0.1:6363 --answer-at 127.0.0.1:7000 --window 256 --seconds 5 --content 100
//! ```
//!
//! So many Interests are under way at a time; one that is answered makes place for the next. Prints a line of JSON.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use ringtap_ndn::faces::{Faces, Handler, Intake, Persistence, Remote, Settings, Whole};
use ringtap_ndn::packets::{Headers, Interest, NameBuf, NewData, NewInterest, component};

/// Before it counts.
const WARM_UP: Duration = Duration::from_millis(500);

/// With nothing answered for so long, those under way are lost.
const LOST_AFTER: Duration = Duration::from_millis(300);

struct Asked {
    to: SocketAddr,
    answer_at: SocketAddr,
    window: u64,
    seconds: f64,
    content: usize,
    offload: bool,
}

/// Who asks.
struct Consumer {
    answered: u64,
    nacks: u64,
}

/// Who answers.
struct Producer {
    content: Vec<u8>,
    wire: Vec<u8>,
}

impl Handler for Consumer {
    fn up(&mut self, _: &mut Faces, _: u32) {}
    fn down(&mut self, _: &mut Faces, _: u32) {}
    fn packets(&mut self, _: &mut Faces, packets: &[Whole<'_>]) {
        for Whole { headers, packet, .. } in packets {
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
    fn packets(&mut self, faces: &mut Faces, packets: &[Whole<'_>]) {
        for Whole { face, headers, packet } in packets {
            let Ok(interest) = Interest::read(packet) else { continue };
            self.wire.clear();
            let (name, content) = (interest.name, &self.content);
            NewData { name, freshness_ms: Some(1000), content }.write(&mut self.wire);
            faces.send(*face, &Headers { token: headers.token, ..Headers::default() }, &self.wire);
        }
    }
}

fn main() -> ExitCode {
    match arguments().and_then(|asked| run(&asked)) {
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

fn run(asked: &Asked) -> Result<String, String> {
    let open = |at: SocketAddr| {
        let udp_offload = asked.offload;
        Faces::open(Settings { udp: vec![at], udp_offload, ..Settings::default() })
            .map_err(|error| error.to_string())
    };
    let mut asking = open("127.0.0.1:0".parse().map_err(|_| "no address")?)?;
    let mut answering = open(asked.answer_at)?;
    let to = Remote::Udp(asked.to);
    let (face, _) = asking.add(&to, Persistence::Permanent).map_err(|error| error.to_string())?;
    let (mut asking_in, mut answering_in) = (Intake::new(), Intake::new());
    let mut consumer = Consumer { answered: 0, nacks: 0 };
    let mut producer = Producer { content: vec![7; asked.content], wire: Vec::new() };

    let began = Instant::now();
    let mut name: NameBuf = "/load/exchange".parse().map_err(|_| "no name")?;
    let prefix = name.as_bytes().len();
    let (mut sent, mut lost, mut wire) = (0_u64, 0_u64, Vec::new());
    let (mut counted, mut latest, mut before) = (None, began, 0);
    // Names of no earlier run.
    let first = u64::from(std::process::id()) << 40;
    let until = WARM_UP + Duration::from_secs_f64(asked.seconds);
    loop {
        let done = consumer.answered + consumer.nacks + lost;
        while sent < done + asked.window {
            name.truncate(prefix);
            name.push_number(component::SEQUENCE, first + sent);
            wire.clear();
            NewInterest::new(name.as_name(), sent as u32).write(&mut wire);
            asking.send(face, &Headers::default(), &wire);
            sent += 1;
        }
        asking.flush();
        let none = Duration::ZERO;
        answering_in.wait(&answering, none).map_err(|error| error.to_string())?;
        answering_in.receive(&mut answering, 0, &mut producer);
        asking_in.wait(&asking, none).map_err(|error| error.to_string())?;
        asking_in.receive(&mut asking, 0, &mut consumer);

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

fn arguments() -> Result<Asked, String> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let value = |flag: &str| {
        let at = words.iter().position(|word| word == flag);
        let value = at.and_then(|at| words.get(at + 1));
        value.ok_or_else(|| format!("{flag} is missing"))
    };
    let wrong = |flag: &str| format!("{flag} has no such value");
    Ok(Asked {
        to: value("--to")?.parse().map_err(|_| wrong("--to"))?,
        answer_at: value("--answer-at")?.parse().map_err(|_| wrong("--answer-at"))?,
        window: value("--window")?.parse().map_err(|_| wrong("--window"))?,
        seconds: value("--seconds")?.parse().map_err(|_| wrong("--seconds"))?,
        content: value("--content")?.parse().map_err(|_| wrong("--content"))?,
        offload: words.iter().any(|word| word == "--offload"),
    })
}
