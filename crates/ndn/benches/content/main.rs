//! Benchmark: hit ratios of the content store beside other eviction policies, and its time for a
//! put and a look-up. Run `cargo bench -p ringtap-ndn --bench content`.
//!
//! Every policy handles the same requests: it looks up a name, and stores its Data if it has none. It
//! has the same number of bytes, and a Data counts as many bytes as it needs in the content store.
//! The first third of a stream is not counted. The store is the forwarder's; the rivals count keys
//! only. Times are CPU times of the thread, the best of five rounds. As a test
//! (`cargo test --benches`) it runs short streams and one round.

mod rivals;
mod streams;
mod times;

use ringtap_ndn::forwarder::ContentAlone;
use ringtap_ndn::packets::{Data, Interest, NameBuf, NewData, NewInterest};
use rivals::{Lru, Policy, Sieve, TinyLfu};
use streams::{Request, Stream};

#[global_allocator]
static ALLOCATOR: ringtap_base::Allocator = ringtap_base::Allocator;

/// Writes the Interest and the Data of a key.
fn packets(key: u64, size: usize, interest: &mut Vec<u8>, data: &mut Vec<u8>) {
    let mut name = NameBuf::default();
    name.push(b"site");
    name.push(format!("host{}", key % 512).as_bytes());
    name.push(&key.to_be_bytes());
    interest.clear();
    NewInterest::new(name.as_name(), key as u32).write(interest);
    data.clear();
    let content = &[7; streams::SIZE_MAX][..size];
    NewData { name: name.as_name(), freshness_ms: None, content }.write(data);
}

/// The forwarder's content store as a policy.
struct Store {
    content: ContentAlone,
    interest: Vec<u8>,
    data: Vec<u8>,
    out: Vec<u8>,
}

impl Policy for Store {
    fn request(&mut self, &Request { key, size }: &Request) -> bool {
        let Self { content, interest, data, out } = self;
        packets(key, size, interest, data);
        let (Ok(interest), Ok(data)) = (Interest::read(interest), Data::read(data)) else {
            return false;
        };
        let is_hit = content.look_up(0, &interest, out);
        if !is_hit {
            content.put(0, &data);
        }
        is_hit
    }
}

/// Hit ratios in per cent, by requests and by bytes of content.
fn ratios(policy: &mut dyn Policy, stream: &Stream) -> [f64; 2] {
    let (mut hits, mut all) = ([0; 2], [0; 2]);
    for (at, request) in stream.requests.iter().enumerate() {
        let is_hit = policy.request(request);
        if at >= stream.requests.len() / 3 {
            for (unit, amount) in [1, request.size].into_iter().enumerate() {
                all[unit] += amount;
                hits[unit] += if is_hit { amount } else { 0 };
            }
        }
    }
    [0, 1].map(|unit| hits[unit] as f64 * 100.0 / all[unit].max(1) as f64)
}

#[expect(clippy::print_stdout, reason = "a benchmark prints")]
fn main() {
    let test = !std::env::args().any(|argument| argument == "--bench");
    let (bytes, requests) = if test { (1 << 20, 20_000) } else { (16 << 20, 600_000) };
    println!("hits in per cent of requests / of bytes, {} MiB", bytes >> 20);
    println!("{:34} {:>13} {:>13} {:>13} {:>13}", "", "S3-FIFO", "LRU", "SIEVE", "W-TinyLFU");
    for stream in streams::all(bytes, requests) {
        let store = Store {
            content: ContentAlone::new(bytes),
            interest: Vec::new(),
            data: Vec::new(),
            out: Vec::new(),
        };
        let policies: [Box<dyn Policy>; 4] = [
            Box::new(store),
            Box::new(Lru::new(bytes)),
            Box::new(Sieve::new(bytes)),
            Box::new(TinyLfu::new(bytes)),
        ];
        let row = policies.map(|mut policy| {
            let [requests, bytes] = ratios(&mut *policy, &stream);
            format!("{requests:5.1} / {bytes:5.1}")
        });
        println!("{:34} {}", stream.name, row.join(" "));
    }
    for (what, ns) in times::all(test) {
        println!("{what:34} {ns:6.0} ns");
    }
}
