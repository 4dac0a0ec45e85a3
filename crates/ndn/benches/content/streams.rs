//! Streams of requests.

use ringtap_base::SplitMix;

/// Sizes of content in bytes: from 100 to this, as likely below as above the geometric mean.
pub(crate) const SIZE_MAX: usize = 8_000;
const SIZE_MIN: f64 = 100.0;

/// Number of popular names.
const NAMES: usize = 100_000;

/// A request for a name.
pub(crate) struct Request {
    pub(crate) key: u64,
    /// Bytes of content.
    pub(crate) size: usize,
}

/// A stream of requests.
pub(crate) struct Stream {
    pub(crate) name: &'static str,
    pub(crate) requests: Vec<Request>,
}

/// The size of a key's content.
fn size(key: u64) -> usize {
    let share = SplitMix::new(key ^ 0x5eed).unit();
    (SIZE_MIN * (SIZE_MAX as f64 / SIZE_MIN).powf(share)) as usize
}

fn request(key: u64) -> Request {
    Request { key, size: size(key) }
}

/// Ranks from 0, with a Zipf distribution.
struct Zipf {
    sums: Vec<f64>,
    random: SplitMix,
}

impl Zipf {
    fn new(exponent: f64) -> Self {
        let mut sum = 0.0;
        let next = |rank: usize| {
            sum += (rank as f64).powf(-exponent);
            sum
        };
        Self { sums: (1..=NAMES).map(next).collect(), random: SplitMix::new(7) }
    }

    fn rank(&mut self) -> u64 {
        let point = self.random.unit() * self.sums.last().copied().unwrap_or_default();
        self.sums.partition_point(|&sum| sum < point) as u64
    }
}

/// A Zipf stream; `new` of each `of` requests are for names that are used once.
fn mixed(exponent: f64, new: usize, of: usize, requests: usize) -> Vec<Request> {
    let mut zipf = Zipf::new(exponent);
    let key = |at: usize| if at % of < new { 1 << 40 | at as u64 } else { zipf.rank() };
    (0..requests).map(key).map(request).collect()
}

/// A Zipf stream whose names are all replaced, one after the other, three times.
fn shifting(exponent: f64, requests: usize) -> Vec<Request> {
    let mut zipf = Zipf::new(exponent);
    let shift = |at: usize| (at * 3 * NAMES / requests) as u64;
    // A name is popular for as long as its rank plus a multiple of the number of names is current.
    let key = |at: usize| {
        let rank = zipf.rank();
        let spread = rank.wrapping_mul(0x9e37_79b9) % NAMES as u64;
        (spread + shift(at)) / NAMES as u64 * NAMES as u64 + rank
    };
    (0..requests).map(key).map(request).collect()
}

/// A loop over names whose Data need a tenth more than `bytes`.
fn looped(bytes: usize, requests: usize) -> Vec<Request> {
    let mut sum = 0;
    let fits = |&key: &u64| {
        sum += crate::rivals::weight(size(key));
        sum < bytes + bytes / 10
    };
    let names = (0..).take_while(fits).count().max(1);
    (0..requests).map(|at| request((at % names) as u64)).collect()
}

/// All streams.
pub(crate) fn all(bytes: usize, requests: usize) -> impl Iterator<Item = Stream> {
    type Make = fn(usize, usize) -> Vec<Request>;
    let makes: [(&str, Make); 8] = [
        ("Zipf 0.8", |_, requests| mixed(0.8, 0, 1, requests)),
        ("Zipf 1.0", |_, requests| mixed(1.0, 0, 1, requests)),
        ("Zipf 0.8 and a scan, 1:1", |_, requests| mixed(0.8, 1, 2, requests)),
        ("Zipf 1.0 and a scan, 1:1", |_, requests| mixed(1.0, 1, 2, requests)),
        ("Zipf 1.0 and names used once, 1:4", |_, requests| mixed(1.0, 4, 5, requests)),
        ("Zipf 1.0, all names replaced", |_, requests| shifting(1.0, requests)),
        ("a loop, 10 % above the store", looped),
        ("a loop, half the store", |bytes, requests| looped(bytes / 2, requests)),
    ];
    makes.into_iter().map(move |(name, make)| Stream { name, requests: make(bytes, requests) })
}
