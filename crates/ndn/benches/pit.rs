//! Benchmark: nanoseconds per pending Interest. Run `cargo bench -p ringtap-ndn`.
//!
//! Packets are written in advance, and are loaded into the cache one turn before they are used, as
//! a network card does. While 65,536 Interests are pending, each turn handles 32 new ones and the
//! Data of the 32 oldest; in one row 1,048,576 are pending. Before, the table is filled, and
//! afterwards it is emptied: that is not timed. The PIT alone hashes names, looks up, inserts and
//! removes entries. An exchange also parses packets and includes all other work of a forwarder.
//! Times are CPU times of the thread; each figure is the best of five rounds. As a test
//! (`cargo test --benches`) it runs one small round.

use ringtap_ndn::forwarder::{Face, FaceId, Forwarder, PitAlone, Settings};
use ringtap_ndn::packets::{Headers, Name, NameBuf, NewData, NewInterest, Packet, PitToken};

#[global_allocator]
static ALLOCATOR: ringtap_base::Allocator = ringtap_base::Allocator;

const TURN: usize = 32;
const DOWNSTREAM: FaceId = FaceId(1);
const UPSTREAM: FaceId = FaceId(2);

/// An Interest and its Data.
type Exchange = (Vec<u8>, Vec<u8>);

fn exchange(number: u64) -> Exchange {
    let mut name = NameBuf::default();
    name.push(format!("host{}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40).as_bytes());
    name.push(b"file");
    name.push(&number.to_be_bytes());
    let (mut interest, mut data) = (Vec::new(), Vec::new());
    NewInterest::new(name.as_name(), number as u32).write(&mut interest);
    NewData { name: name.as_name(), freshness_ms: None, content: &[7; 100] }.write(&mut data);
    (interest, data)
}

/// CPU time of this thread, in nanoseconds.
fn core_ns() -> f64 {
    let schedule = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    schedule.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(f64::NAN)
}

/// Loads a packet into the cache, as a network card would.
fn arrive(bytes: &[u8]) {
    bytes.iter().step_by(64).chain(bytes.last()).for_each(ringtap_base::prefetch);
}

/// Runs turns: each handles new Interests, and the Data of those that are `pending` older. `arrive`
/// loads the packets of the next turn. Returns nanoseconds per exchange of the `count` exchanges
/// while `pending` Interests are pending.
fn turns(
    count: usize,
    pending: usize,
    arrive: impl Fn(usize, bool),
    mut turn: impl FnMut(u64, usize, bool),
) -> f64 {
    let (filled, end) = (pending, pending + count);
    let (mut start, mut ns) = (0.0, 0.0);
    for first in (0..end + pending).step_by(TURN) {
        if first == filled {
            start = core_ns();
        } else if first == end {
            ns = core_ns() - start;
        }
        let now_ns = 1 + first as u64 * 200;
        arrive(first + TURN, true);
        if let Some(before) = (first + TURN).checked_sub(pending) {
            arrive(before, false);
        }
        if first < end {
            turn(now_ns, first, true);
        }
        if let Some(before) = first.checked_sub(pending) {
            turn(now_ns, before, false);
        }
    }
    ns / count as f64
}

fn pit_alone(exchanges: &[Exchange], count: usize, pending: usize) -> f64 {
    let (mut interests, mut data) = (Vec::new(), Vec::new());
    for exchange in exchanges {
        if let (Ok(Packet::Interest(i)), Ok(Packet::Data(d))) =
            (Packet::read(&exchange.0), Packet::read(&exchange.1))
        {
            interests.push(i);
            data.push(d);
        }
    }
    let mut pit = PitAlone::new(2 * pending, TURN);
    let (mut inserted, mut satisfied) = (0, 0);
    // The PIT reads only the names of packets.
    let load_turn = |first: usize, new: bool| {
        let turn = first % exchanges.len()..first % exchanges.len() + TURN;
        match new {
            true => interests[turn].iter().for_each(|interest| arrive(interest.name.as_bytes())),
            false => data[turn].iter().for_each(|data| arrive(data.name.as_bytes())),
        }
    };
    let ns = turns(count, pending, load_turn, |now_ns, first, new| {
        let at = first % exchanges.len();
        match new {
            true => inserted += pit.add_interests(now_ns, &interests[at..at + TURN]),
            false => satisfied += pit.satisfy(&data[at..at + TURN]),
        }
    });
    assert_eq!((inserted, satisfied, pit.is_empty()), (count + pending, count + pending, true));
    ns
}

fn forwarder(exchanges: &[Exchange], count: usize, pending: usize, cs: usize, burst: bool) -> f64 {
    let mut forwarder =
        Forwarder::new(Settings { pit_capacity: 2 * pending, cs_bytes: cs, ..Settings::default() });
    let mut none = |_: FaceId, _: &Headers, _: &[u8]| ();
    forwarder.set_face(DOWNSTREAM, Face::NEIGHBOUR);
    forwarder.set_face(UPSTREAM, Face::NEIGHBOUR);
    assert!(forwarder.add_route(0, &Name::EMPTY, UPSTREAM, 1, &mut none).is_ok());
    let mut headers = vec![Headers::NONE; exchanges.len()];
    let load_turn = |first: usize, new: bool| {
        let turn = &exchanges[first % exchanges.len()..][..TURN];
        turn.iter().for_each(|(interest, data)| arrive(if new { interest } else { data }));
    };
    let ns = turns(count, pending, load_turn, |now_ns, first, new| {
        let at = first % exchanges.len();
        let mut tokens = [PitToken::default(); TURN];
        let mut sent = 0;
        let mut out = |_: FaceId, headers: &Headers, _: &[u8]| {
            tokens[sent % TURN] = headers.token;
            sent += 1;
        };
        let packet = |place: usize| {
            let (interest, data) = &exchanges[at + place];
            match new {
                true => (DOWNSTREAM, &Headers::NONE, &interest[..]),
                false => (UPSTREAM, &headers[at + place], &data[..]),
            }
        };
        let packets: [_; TURN] = std::array::from_fn(packet);
        if burst {
            forwarder.burst(now_ns, &packets, &mut out);
        } else {
            for (from, headers, packet) in packets {
                forwarder.take(now_ns, from, headers, packet, &mut out);
            }
        }
        if new {
            // The Data carry the tokens of the Interests sent.
            for (headers, token) in headers[at..at + TURN].iter_mut().zip(tokens) {
                headers.token = token;
            }
        }
    });
    let counters = forwarder.counters();
    // Names recur, so a content store has some of them.
    let exchanged = (count + pending) as u64 - counters.cs_hits;
    assert_eq!((counters.satisfied, counters.tokens_right), (exchanged, exchanged));
    assert!(counters.cs_hits < count as u64 / 100);
    ns
}

#[expect(clippy::print_stdout, reason = "a benchmark prints")]
fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let test = !arguments.iter().any(|argument| argument == "--bench");
    let (count, pending, rounds) = if test { (4_096, 1_024, 1) } else { (1 << 20, 1 << 16, 5) };
    let exchanges: Vec<_> = (0..2 * pending as u64).map(exchange).collect();
    let through = |store, bursts| forwarder(&exchanges, count, pending, store, bursts);
    let many = if test { pending } else { 1 << 20 };
    let crowded = || {
        let exchanges: Vec<_> = (0..2 * many as u64).map(exchange).collect();
        pit_alone(&exchanges, count, many)
    };
    let benches: [(&str, &dyn Fn() -> f64); 5] = [
        ("a cycle of the PIT alone", &|| pit_alone(&exchanges, count, pending)),
        ("the same, 1,048,576 pending", &crowded),
        ("an exchange", &|| through(0, true)),
        ("an exchange, one packet at a time", &|| through(0, false)),
        ("an exchange, content store", &|| through(pending * 256, true)),
    ];
    let is_selected = |what: &str| {
        let mut words = arguments.iter().filter(|argument| !argument.starts_with("--")).peekable();
        words.peek().is_none() || words.any(|word| word == what)
    };
    let mut best = [f64::INFINITY; 5];
    for _ in 0..rounds {
        for ((what, bench), best) in benches.iter().zip(&mut best) {
            if is_selected(what) {
                *best = best.min(bench());
            }
        }
    }
    for ((what, _), ns) in benches.iter().zip(best).filter(|(_, ns)| ns.is_finite()) {
        println!("{what:34} {ns:6.0} ns  {:5.2} M/s", 1e3 / ns);
    }
}
