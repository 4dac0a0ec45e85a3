//! All candidates. A new variant of `ringtap_ring::Kind` is included automatically.

use crate::{
    ends::Pair,
    item::{Bytes64, with_item},
};
use ringtap_ring::{Kind, ring, spsc};
use std::fmt;

mod cpp;
mod limit;
mod literal;
mod ours;
mod rust;

pub use cpp::MISSING;

/// The paper's batch, for our rings with batches.
const BATCH: usize = 50;

const SMALL: &str = "a ring of 64 megabytes at most";

/// How a candidate is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    /// One item per call.
    Single,
    /// Several items per call, copied from and to a buffer of the caller.
    Copy,
    /// Several items per call, written and read in the ring's slots.
    InPlace,
    /// One item per call; the call sleeps while there is none. For idle CPU and latency only.
    Blocking,
    /// The streaming limit, not a queue.
    Limit,
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Single => "single",
            Self::Copy => "copy",
            Self::InPlace => "in place",
            Self::Blocking => "blocking",
            Self::Limit => "limit",
        })
    }
}

/// Origin of a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// `ringtap_ring::spsc`, our default.
    Ours,
    /// `ringtap_ring::ring` of some kind.
    OursByKind,
    Rival,
    /// The paper's pseudocode.
    Paper,
    /// The limit of the machine.
    Machine,
}

/// Creates the ends from bytes per item, capacity in items, and items per burst.
type Make = Box<dyn Fn(usize, usize, usize) -> Pair>;

/// A ring, queue or limit that is measured.
pub struct Candidate {
    pub name: String,
    pub mode: Mode,
    pub origin: Origin,
    make: Make,
}

impl Candidate {
    fn new(name: &str, mode: Mode, origin: Origin, make: Make) -> Self {
        Self { name: name.to_owned(), mode, origin, make }
    }

    /// The two ends of a new ring.
    pub fn ends(&self, bytes: usize, capacity: usize, burst: usize) -> Pair {
        (self.make)(bytes, capacity, burst)
    }

    /// The burst lengths to try in a ring of `capacity` items.
    pub fn bursts(&self, capacity: usize) -> Vec<usize> {
        let lengths: &[usize] = match self.mode {
            Mode::Single | Mode::Blocking => &[1],
            Mode::Copy | Mode::InPlace => &[32, 256, 1024],
            Mode::Limit => &[8, 32, 128, 512, 2048],
        };
        lengths.iter().copied().filter(|&n| n == 1 || n <= capacity / 4).collect()
    }

    pub fn is_ours(&self) -> bool {
        matches!(self.origin, Origin::Ours | Origin::OursByKind)
    }

    /// The label in tables; ours are bold.
    pub fn heading(&self) -> String {
        if self.is_ours() { format!("**{}**", self.label()) } else { self.label() }
    }

    pub fn label(&self) -> String {
        format!("{} {}", self.name, self.mode)
    }
}

/// Defines a candidate by a generic function of (capacity, burst).
macro_rules! candidate {
    ($name:literal, $mode:ident, $origin:expr, $module:ident::$make:ident) => {{
        let make = |bytes, capacity, burst| with_item!(bytes, T => $module::$make::<T>(capacity, burst));
        Candidate::new($name, Mode::$mode, $origin, Box::new(make))
    }};
}

/// All candidates: ours, the paper's, the rivals, the limit.
pub fn all() -> Vec<Candidate> {
    let mut all = Vec::new();
    macro_rules! ours {
        ($name:expr, $origin:ident, $ends:expr, [$($mode:ident = $make:ident),*]) => {$(
            let make = move |bytes, capacity, burst| {
                with_item!(bytes, T => ours::$make::<T, _>($ends(capacity).expect(SMALL), burst))
            };
            all.push(Candidate::new($name, Mode::$mode, Origin::$origin, Box::new(make)));
        )*};
        ($name:expr, $origin:ident, $ends:expr) => {
            ours!($name, $origin, $ends, [Single = single, Copy = copy, InPlace = in_place])
        };
    }
    ours!("spsc", Ours, spsc);
    ours!("spsc", Ours, spsc, [Blocking = parking]);
    for kind in Kind::ALL {
        ours!(kind.name(), OursByKind, |capacity| ring(kind, capacity, BATCH));
    }
    use Origin::Rival;
    all.extend([
        candidate!("mcring-literal(50)", Single, Origin::Paper, literal::single),
        candidate!("rtrb", Single, Rival, rust::rtrb_single),
        candidate!("rtrb", Copy, Rival, rust::rtrb_copy),
        candidate!("rtrb", InPlace, Rival, rust::rtrb_in_place),
        candidate!("ringbuf", Single, Rival, rust::ringbuf_single),
        candidate!("ringbuf", Copy, Rival, rust::ringbuf_copy),
        candidate!("ringbuf", InPlace, Rival, rust::ringbuf_in_place),
        candidate!("disruptor", Single, Rival, rust::disruptor_single),
        candidate!("disruptor", InPlace, Rival, rust::disruptor_in_place),
        candidate!("crossbeam-queue", Single, Rival, rust::array_queue),
        candidate!("crossbeam-channel", Single, Rival, rust::crossbeam_channel),
        candidate!("crossbeam-channel", Blocking, Rival, rust::crossbeam_channel_blocking),
        candidate!("kanal", Single, Rival, rust::kanal),
        candidate!("kanal", Blocking, Rival, rust::kanal_blocking),
        candidate!("std sync_channel", Single, Rival, rust::sync_channel),
        candidate!("std sync_channel", Blocking, Rival, rust::sync_channel_blocking),
    ]);
    all.extend(cpp::all());
    let limit = |name, prefetch| {
        let make = move |bytes, capacity, block| {
            assert_eq!(bytes, size_of::<Bytes64>(), "the limit is that of cache lines");
            limit::stream(prefetch, capacity, block)
        };
        Candidate::new(name, Mode::Limit, Origin::Machine, Box::new(make))
    };
    all.extend([limit("stream", false), limit("stream+prefetch", true)]);
    all
}
