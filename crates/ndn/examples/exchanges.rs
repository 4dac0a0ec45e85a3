//! Benchmark: exchanges per second on one core, in memory. An exchange is an Interest in and out,
//! and its Data in and out.
//!
//! ```text
//! cargo run --release -p ringtap-ndn --example exchanges [EXCHANGES]
//! ```
//!
//! Packets are written in advance; the measurement covers parsing, forwarding and sending. 65,536
//! Interests are pending all the time. The last lines use each name once, to show that memory is
//! constant.

use ringtap_ndn::forwarder::{Face, FaceId, Forwarder, Parallel, Settings};
use ringtap_ndn::packets::{Headers, NameBuf, NewData, NewInterest, PitToken};

#[global_allocator]
static ALLOCATOR: ringtap_base::Allocator = ringtap_base::Allocator;

const PENDING: usize = 1 << 16;
const DOWNSTREAM: FaceId = FaceId(1);
const UPSTREAM: FaceId = FaceId(2);

/// An Interest and its Data.
type Exchange = (Vec<u8>, Vec<u8>);

/// Handles a packet: time, face, headers, bytes, and the place for the PIT token of the sent
/// packet.
type Take<'a> = dyn FnMut(u64, FaceId, &Headers, &[u8], &mut PitToken) + 'a;

fn exchange(number: u64) -> Exchange {
    let mut name = NameBuf::default();
    name.push(format!("host{number}").as_bytes());
    name.push(b"file");
    name.push(&number.to_be_bytes());
    let (mut interest, mut data) = (Vec::new(), Vec::new());
    NewInterest::new(name.as_name(), number as u32).write(&mut interest);
    NewData { name: name.as_name(), freshness_ms: None, content: &[7; 100] }.write(&mut data);
    (interest, data)
}

/// CPU time of this thread in nanoseconds, which other load on the machine affects less.
fn core_ns() -> f64 {
    let schedule = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    schedule.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(f64::NAN)
}

/// Nanoseconds per exchange.
fn nanoseconds(exchanges: &[Exchange], count: usize, take: &mut Take<'_>) -> f64 {
    let mut tokens = vec![PitToken::default(); exchanges.len()];
    let mut none = PitToken::default();
    let start = core_ns();
    for at in 0..count + PENDING {
        let now_ns = at as u64 * 200;
        if at < count {
            let slot = at % exchanges.len();
            take(now_ns, DOWNSTREAM, &Headers::default(), &exchanges[slot].0, &mut tokens[slot]);
        }
        if let Some(before) = at.checked_sub(PENDING) {
            let slot = before % exchanges.len();
            let headers = Headers { token: tokens[slot], ..Headers::default() };
            take(now_ns, UPSTREAM, &headers, &exchanges[slot].1, &mut none);
        }
    }
    (core_ns() - start) / count as f64
}

#[expect(clippy::print_stdout, reason = "a benchmark prints")]
fn main() {
    let given = std::env::args().nth(1).and_then(|text| text.parse().ok());
    let count: usize = given.unwrap_or(3_000_000);
    let exchanges: Vec<_> = (0..2 * PENDING as u64).map(exchange).collect();
    let settings = |cs_bytes| Settings { cs_bytes, pit_capacity: 1 << 17, ..Settings::default() };
    let show = |what: &str, ns: f64| println!("{what:32} {ns:7.0} ns {:6.2} M/s", 1e3 / ns);
    for _ in 0..3 {
        for (what, cs) in
            [("single, no content store", 0), ("single, content store of 32 MiB", 32 << 20)]
        {
            let mut forwarder = Forwarder::new(settings(cs));
            let mut none = |_: FaceId, _: &Headers, _: &[u8]| ();
            forwarder.set_face(DOWNSTREAM, Face::NEIGHBOUR);
            forwarder.set_face(UPSTREAM, Face::NEIGHBOUR);
            let root = NameBuf::default();
            let _ = forwarder.add_route(0, &root.as_name(), UPSTREAM, 1, &mut none);
            let ns = nanoseconds(&exchanges, count, &mut |now, from, headers, wire, token| {
                let mut out = |_: FaceId, headers: &Headers, _: &[u8]| *token = headers.token;
                forwarder.take(now, from, headers, wire, &mut out);
            });
            show(what, ns);
        }
        {
            let mut parallel = Parallel::new(&settings(0), 4);
            let mut none = |_: FaceId, _: &Headers, _: &[u8]| ();
            parallel.set_face(DOWNSTREAM, Face::NEIGHBOUR);
            parallel.set_face(UPSTREAM, Face::NEIGHBOUR);
            let root = NameBuf::default();
            let _ = parallel.add_route(0, &root.as_name(), UPSTREAM, 1, &mut none);
            let ns = nanoseconds(&exchanges, count, &mut |now, from, headers, wire, token| {
                let mut out = |_: FaceId, headers: &Headers, _: &[u8]| *token = headers.token;
                parallel.take(now, from, headers, wire, &mut out);
            });
            show("4 shards on one core", ns);
        }
    }
    let mut forwarder = Forwarder::new(settings(32 << 20));
    let mut none = |_: FaceId, _: &Headers, _: &[u8]| ();
    forwarder.set_face(DOWNSTREAM, Face::NEIGHBOUR);
    forwarder.set_face(UPSTREAM, Face::NEIGHBOUR);
    let _ = forwarder.add_route(0, &NameBuf::default().as_name(), UPSTREAM, 1, &mut none);
    for number in 0..10_000_000 {
        let (interest, data) = exchange(number);
        forwarder.take(number * 1_000, DOWNSTREAM, &Headers::default(), &interest, &mut none);
        forwarder.take(number * 1_000, UPSTREAM, &Headers::default(), &data, &mut none);
        if (number + 1).is_multiple_of(2_500_000) {
            let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
            let resident =
                status.lines().find(|line| line.starts_with("VmRSS")).unwrap_or("VmRSS: ?");
            println!("{} unique names, {} stored, {resident}", number + 1, forwarder.stored());
        }
    }
}
