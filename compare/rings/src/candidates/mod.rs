//! Everything that is compared. A new kind of `ringtap_ring::Kind` shows up by itself.

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

/// The paper's batch, for those of our kinds that have one.
const BATCH: usize = 50;

const SMALL: &str = "a ring of 64 megabytes at most";

/// How a candidate is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    /// One item a call.
    Single,
    /// Many items a call, copied from and to a buffer of the caller.
    Copy,
    /// Many items a call, made and read where they lie.
    InPlace,
    /// One item a call, which sleeps where there is none. For idle CPU and latency only.
    Blocking,
    /// No queue at all: the streaming limit.
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

/// Whose a candidate is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// `ringtap_ring::spsc`: what a user gets who does not choose.
    Ours,
    /// `ringtap_ring::ring` of some kind.
    OursByKind,
    Rival,
    /// The paper's pseudo-code, as printed.
    Paper,
    /// What the machine can do.
    Machine,
}

/// Makes the ends, given bytes an item, capacity in items and items a burst.
type Make = Box<dyn Fn(usize, usize, usize) -> Pair>;

/// Something that is measured.
pub struct Candidate {
    pub name: String,
    pub mode: Mode,
    pub whose: Whose,
    make: Make,
}

impl Candidate {
    fn new(name: &str, mode: Mode, whose: Whose, make: Make) -> Self {
        Self { name: name.to_owned(), mode, whose, make }
    }

    /// The two ends of a fresh ring.
    pub fn ends(&self, bytes: usize, capacity: usize, burst: usize) -> Pair {
        (self.make)(bytes, capacity, burst)
    }

    /// The burst lengths worth trying in a ring of so many items.
    pub fn bursts(&self, capacity: usize) -> Vec<usize> {
        let lengths: &[usize] = match self.mode {
            Mode::Single | Mode::Blocking => &[1],
            Mode::Copy | Mode::InPlace => &[32, 256, 1024],
            Mode::Limit => &[8, 32, 128, 512, 2048],
        };
        lengths.iter().copied().filter(|&n| n == 1 || n <= capacity / 4).collect()
    }

    pub fn is_ours(&self) -> bool {
        matches!(self.whose, Whose::Ours | Whose::OursByKind)
    }

    /// The label as a table shows it: ours stand out.
    pub fn heading(&self) -> String {
        if self.is_ours() { format!("**{}**", self.label()) } else { self.label() }
    }

    pub fn label(&self) -> String {
        format!("{} {}", self.name, self.mode)
    }
}

/// A candidate from a generic function of (capacity, burst).
macro_rules! candidate {
    ($name:literal, $mode:ident, $whose:expr, $module:ident::$make:ident) => {{
        let make = |bytes, capacity, burst| with_item!(bytes, T => $module::$make::<T>(capacity, burst));
        Candidate::new($name, Mode::$mode, $whose, Box::new(make))
    }};
}

/// All candidates: ours, the paper's, the rivals, the limit.
pub fn all() -> Vec<Candidate> {
    let mut all = Vec::new();
    macro_rules! ours {
        ($name:expr, $whose:ident, $ends:expr, [$($mode:ident = $make:ident),*]) => {$(
            let make = move |bytes, capacity, burst| {
                with_item!(bytes, T => ours::$make::<T, _>($ends(capacity).expect(SMALL), burst))
            };
            all.push(Candidate::new($name, Mode::$mode, Whose::$whose, Box::new(make)));
        )*};
        ($name:expr, $whose:ident, $ends:expr) => {
            ours!($name, $whose, $ends, [Single = single, Copy = copy, InPlace = in_place])
        };
    }
    ours!("spsc", Ours, spsc);
    ours!("spsc", Ours, spsc, [Blocking = parking]);
    for kind in Kind::ALL {
        ours!(kind.name(), OursByKind, |capacity| ring(kind, capacity, BATCH));
    }
    use Whose::Rival;
    all.extend([
        candidate!("mcring-literal(50)", Single, Whose::Paper, literal::single),
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
        Candidate::new(name, Mode::Limit, Whose::Machine, Box::new(make))
    };
    all.extend([limit("stream", false), limit("stream+prefetch", true)]);
    all
}
