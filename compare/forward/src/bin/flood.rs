//! A hostile neighbour of an NDN forwarder: sends Interests with distinct names and long lifetimes
//! at a constant rate, and waits for nothing.
//!
//! ```text
//!  flood --to 127.0.0.1:6363 --prefix /void --count 10000000 --rate 200000 --lifetime-ms 3600000
//! ```
//!
//! Datagrams are sent up to 64 per system call; with `--offload` the kernel segments them from larger
//! messages, so that one core sends more than a forwarder can handle. Prints a line of JSON with the numbers of Interests
//! that were sent, of those that the system refused to send, and of answers.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use ringtap_ndn::faces::{
    Faces, Handler, Intake, Lost, Persistence, ReceivedPacket, Remote, Settings,
};
use ringtap_ndn::packets::{Headers, NameBuf, NewInterest, component};

/// Largest number of Interests that are sent together.
const BURST: u64 = 64;

/// Pause of a sender that is ahead of its rate.
const PAUSE: Duration = Duration::from_micros(100);

/// Time after the last Interest in which answers are still counted.
const LINGER: Duration = Duration::from_millis(200);

struct Options {
    to: SocketAddr,
    prefix: NameBuf,
    count: u64,
    rate: f64,
    lifetime_ms: u64,
    offload: bool,
}

/// Counts the packets that arrive.
struct Answers(u64);

impl Handler for Answers {
    fn up(&mut self, _: &mut Faces, _: u32) {}
    fn down(&mut self, _: &mut Faces, _: u32) {}
    fn packets(&mut self, _: &mut Faces, packets: &[ReceivedPacket<'_>]) {
        self.0 += packets.len() as u64;
    }
}

fn main() -> ExitCode {
    match options().and_then(|options| run(&options)) {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("flood: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<String, String> {
    let at = "127.0.0.1:0".parse().map_err(|_| "invalid address")?;
    let settings = Settings { udp: vec![at], udp_offload: options.offload, ..Settings::default() };
    let mut faces = Faces::open(settings).map_err(|error| error.to_string())?;
    let (face, _) = faces
        .add(&Remote::Udp(options.to), Persistence::Permanent)
        .map_err(|error| error.to_string())?;
    let (mut intake, mut answers) = (Intake::new(), Answers(0));
    let mut receive = |faces: &mut Faces, wait: Duration| {
        intake.wait(faces, wait).map_err(|error| error.to_string())?;
        intake.receive(faces, 0, &mut answers);
        Ok::<(), String>(())
    };

    let mut name = options.prefix.clone();
    let prefix = name.as_bytes().len();
    // Different names in each run.
    let first = u64::from(std::process::id()) << 40;
    let (began, mut sent, mut wire) = (Instant::now(), 0, Vec::new());
    while sent < options.count {
        let due = (began.elapsed().as_secs_f64() * options.rate) as u64;
        let end = due.min(options.count).min(sent + BURST);
        for number in sent..end {
            name.truncate(prefix);
            name.push_number(component::SEQUENCE, first + number);
            wire.clear();
            let mut interest = NewInterest::new(name.as_name(), number as u32);
            interest.lifetime_ms = Some(options.lifetime_ms);
            interest.write(&mut wire);
            faces.send(face, &Headers::default(), &wire);
        }
        faces.flush();
        receive(&mut faces, Duration::ZERO)?;
        if end == sent || end == due {
            std::thread::sleep(PAUSE);
        }
        sent = end;
    }
    let seconds = began.elapsed().as_secs_f64();
    let until = Instant::now() + LINGER;
    while Instant::now() < until {
        receive(&mut faces, PAUSE)?;
    }
    let counters = faces.total();
    let unsent = counters.lost(Lost::Congested) + counters.lost(Lost::Refused);
    let missed = faces.kernel_drops();
    Ok(format!(
        "{{\"sent\": {sent}, \"unsent\": {unsent}, \"answers\": {}, \"missed_answers\": {missed}, \
         \"seconds\": {seconds:.3}}}",
        answers.0
    ))
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
        prefix: value("--prefix")?.parse().map_err(|_| wrong("--prefix"))?,
        count: value("--count")?.parse().map_err(|_| wrong("--count"))?,
        rate: value("--rate")?.parse().map_err(|_| wrong("--rate"))?,
        lifetime_ms: value("--lifetime-ms")?.parse().map_err(|_| wrong("--lifetime-ms"))?,
        offload: words.iter().any(|word| word == "--offload"),
    })
}
