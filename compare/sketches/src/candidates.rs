//! The candidates: data structures that count the stream, and the checks of their results.

#[cfg(datasketches_cpp)]
use crate::cpp;
use crate::stream::{Key, Stream};
use asap_sketchlib::{CountMinSketch as AsapCountMin, DataInput, FastPath, Vector2D};
use datasketches::{
    countmin::CountMinSketch as ApacheCountMin,
    frequencies::{ErrorType, FrequentItemsSketch},
};
use foldhash::{fast, quality};
use hashbrown::HashMap;
use heavykeeper::{BucketedTopK, CuckooTopK};
use ringtap_sketch::{
    CandidateCountMin, Collision, ConservativeCountMin, CountMin, Exact, HashTable, HeavyKeys,
    MisraGries, MvSketch, Shape, Sketch, SpaceSaving,
};
use std::{hash::BuildHasher, hint::black_box};

/// Keys per call of update functions for bursts.
const BURST: usize = 256;

/// The task of a candidate.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Job {
    /// Estimates for given keys.
    Count,
    /// The heavy keys, in about 500 kB.
    Heavy,
    /// Exact counts of all keys.
    Exact,
}

/// Size and quality of a candidate after the stream.
pub struct Known {
    pub bytes: Option<usize>,
    /// F1 score of the heavy keys, if the candidate lists them.
    pub f1: Option<f64>,
}

/// Calls its argument and measures the time.
pub type Timer<'a> = dyn FnMut(&mut dyn FnMut()) + 'a;

pub struct Candidate {
    pub name: &'static str,
    pub job: Job,
    pub ours: bool,
    /// Creates the structure, counts the stream within the timer, and checks the result.
    pub run: fn(&Stream, &mut Timer<'_>) -> Result<Known, String>,
}

const SEED: u64 = 0x5eed;

pub fn shape(rows: usize, width: usize) -> Shape {
    Shape::new(rows, width).expect("a valid constant shape")
}

fn feed<S: Sketch<Key = Key>>(sketch: &mut S, stream: &Stream) {
    stream.keys.chunks(BURST).for_each(|burst| sketch.update_burst(burst));
    black_box(sketch);
}

/// Checks that no estimate of a sample of keys is below the true count.
fn check(stream: &Stream, estimate: impl Fn(&Key) -> u64) -> Result<(), String> {
    let low = stream.truth.iter().step_by(97).find(|(key, count)| estimate(key) < **count);
    low.map_or(Ok(()), |(key, count)| Err(format!("{key:?}: {count}, but {}", estimate(key))))
}

fn ours<S: Sketch<Key = Key>>(
    mut sketch: S,
    stream: &Stream,
    time: &mut Timer<'_>,
) -> Result<S, String> {
    time(&mut || feed(&mut sketch, stream));
    check(stream, |key| sketch.estimate(key).upper)?;
    Ok(sketch)
}

fn ours_heavy<S: HeavyKeys<Key = Key>>(
    sketch: Result<S, ringtap_sketch::InvalidSize>,
    stream: &Stream,
    time: &mut Timer<'_>,
) -> Result<Known, String> {
    let sketch = ours(sketch.map_err(|why| why.to_string())?, stream, time)?;
    let heavy: Vec<Key> = sketch.heavy(stream.threshold).iter().map(|heavy| heavy.key).collect();
    Ok(Known { bytes: Some(sketch.memory_bytes()), f1: Some(stream.f1(&heavy)) })
}

fn map<H: BuildHasher + Default>(stream: &Stream, time: &mut Timer<'_>) -> Result<Known, String> {
    let mut map: HashMap<Key, u64, H> = HashMap::with_capacity_and_hasher(1 << 20, H::default());
    time(&mut || {
        for key in &stream.keys {
            *map.entry(*key).or_insert(0) += 1;
        }
        black_box(&mut map);
    });
    check(stream, |key| map.get(key).copied().unwrap_or(0))?;
    Ok(Known { bytes: Some(map.allocation_size()), f1: Some(1.0) })
}

/// The F1 score of the heavy keys among those that a rival lists.
fn listed(stream: &Stream, list: impl Iterator<Item = (Key, u64)>) -> Option<f64> {
    let heavy = list.filter(|(_, count)| *count >= stream.threshold);
    Some(stream.f1(&heavy.map(|(key, _)| key).collect::<Vec<_>>()))
}

macro_rules! candidate {
    ($job:ident, $ours:literal, $name:expr, $run:expr) => {
        Candidate { name: $name, job: Job::$job, ours: $ours, run: $run }
    };
}

/// Names of candidates in claims.
pub const CMS: &str = "ringtap CountMin, 4 × 2^15 of 32 bits";
pub const ASAP: &str = "asap_sketchlib CountMin, fast path, same size";
pub const APACHE_CMS: &str = "datasketches (Rust) CountMin, same size";
pub const CPP_CMS: &str = "datasketches (C++) CountMin, same size";
pub const MG: &str = "ringtap MisraGries, 12,288 counters";
pub const SAVING: &str = "ringtap SpaceSaving, 12,288 keys";
pub const CPP_FI: &str = "datasketches (C++) FrequentItems, 2^14";
pub const APACHE_FI: &str = "datasketches (Rust) FrequentItems, 2^14";
pub const HEAVYKEEPER: &str = "heavykeeper BucketedTopK, 4 × 4096";
pub const EXACT: &str = "ringtap Exact";
pub const HASHBROWN: &str = "hashbrown, foldhash fast";

pub fn all() -> Vec<Candidate> {
    vec![
        candidate!(Count, true, CMS, |stream, time| {
            let sketch = ours(CountMin::<Key, u32>::new(shape(4, 1 << 15), SEED), stream, time)?;
            Ok(Known { bytes: Some(sketch.memory_bytes()), f1: None })
        }),
        candidate!(Count, true, "ringtap ConservativeCountMin, same size", |stream, time| {
            let sketch = ConservativeCountMin::<Key, u32>::new(shape(4, 1 << 15), SEED);
            Ok(Known { bytes: Some(ours(sketch, stream, time)?.memory_bytes()), f1: None })
        }),
        candidate!(Count, false, ASAP, |stream, time| {
            let mut sketch = AsapCountMin::<Vector2D<i32>, FastPath>::with_dimensions(4, 1 << 15);
            time(&mut || {
                for key in &stream.keys {
                    sketch.update(&DataInput::Bytes(key));
                }
                black_box(&mut sketch);
            });
            check(stream, |key| sketch.estimate(&DataInput::Bytes(key)) as u64)?;
            Ok(Known { bytes: Some(sketch.memory_bytes()), f1: None })
        }),
        candidate!(Count, false, APACHE_CMS, |stream, time| {
            let sketch = ApacheCountMin::<u32>::new(4, 1 << 15);
            let mut sketch = sketch.map_err(|why| why.to_string())?;
            time(&mut || {
                for key in &stream.keys {
                    sketch.update(&key[..]);
                }
                black_box(&mut sketch);
            });
            check(stream, |key| sketch.estimate(&key[..]).into())?;
            Ok(Known { bytes: Some(sketch.estimated_size()), f1: None })
        }),
        #[cfg(datasketches_cpp)]
        candidate!(Count, false, CPP_CMS, |stream, time| {
            let mut sketch = cpp::CountMin::new(4, 1 << 15);
            time(&mut || sketch.feed(&stream.keys));
            check(stream, |key| sketch.upper(key))?;
            Ok(Known { bytes: Some(4 * (4 << 15)), f1: None })
        }),
        candidate!(Heavy, true, SAVING, |stream, time| {
            ours_heavy(SpaceSaving::<Key>::new(12_288, SEED), stream, time)
        }),
        candidate!(Heavy, true, "ringtap SpaceSaving, 8,192 keys", |stream, time| {
            ours_heavy(SpaceSaving::<Key>::new(8192, SEED), stream, time)
        }),
        candidate!(Heavy, true, MG, |stream, time| {
            ours_heavy(MisraGries::<Key>::new(12_288, SEED), stream, time)
        }),
        candidate!(Heavy, true, "ringtap MisraGries, 6,144 counters", |stream, time| {
            ours_heavy(MisraGries::<Key>::new(6144, SEED), stream, time)
        }),
        candidate!(
            Heavy,
            true,
            "ringtap CandidateCountMin, 4 × 2^12, 4,096 keys",
            |stream, time| {
                ours_heavy(
                    CandidateCountMin::<Key>::new(shape(4, 1 << 12), 4096, SEED),
                    stream,
                    time,
                )
            }
        ),
        candidate!(
            Heavy,
            true,
            "ringtap CandidateCountMin, 4 × 2^14, 4,096 keys",
            |stream, time| {
                ours_heavy(
                    CandidateCountMin::<Key>::new(shape(4, 1 << 14), 4096, SEED),
                    stream,
                    time,
                )
            }
        ),
        candidate!(Heavy, true, "ringtap MvSketch, 1 × 2^14", |stream, time| {
            ours_heavy(Ok(MvSketch::<Key>::new(shape(1, 1 << 14), SEED)), stream, time)
        }),
        candidate!(Heavy, true, "ringtap MvSketch, 2 × 2^14", |stream, time| {
            ours_heavy(Ok(MvSketch::<Key>::new(shape(2, 1 << 14), SEED)), stream, time)
        }),
        candidate!(Heavy, true, "ringtap HashTable, keep first, 20,833", |stream, time| {
            ours_heavy(HashTable::<Key>::new(20_833, Collision::KeepFirst, SEED), stream, time)
        }),
        candidate!(Heavy, false, APACHE_FI, |stream, time| {
            let sketch = FrequentItemsSketch::<Key>::new(1 << 14);
            let mut sketch = sketch.map_err(|why| why.to_string())?;
            time(&mut || {
                for key in &stream.keys {
                    sketch.update(*key);
                }
                black_box(&mut sketch);
            });
            check(stream, |key| sketch.upper_bound(key))?;
            let rows = sketch.frequent_items_with_threshold(ErrorType::NoFalseNegatives, 0);
            let f1 = listed(stream, rows.iter().map(|row| (*row.item(), row.estimate())));
            Ok(Known { bytes: Some(sketch.estimated_size()), f1 })
        }),
        #[cfg(datasketches_cpp)]
        candidate!(Heavy, false, CPP_FI, |stream, time| {
            let mut sketch = cpp::FrequentItems::new(14);
            time(&mut || sketch.feed(&stream.keys));
            check(stream, |key| sketch.upper(key))?;
            let f1 = Some(stream.f1(&sketch.heavy(stream.threshold)));
            Ok(Known { bytes: Some(sketch.bytes()), f1 })
        }),
        candidate!(Heavy, false, HEAVYKEEPER, |stream, time| {
            let mut sketch = BucketedTopK::<Key>::new(1024, 4096, 4, 0.9);
            time(&mut || {
                stream.keys.iter().for_each(|key| sketch.add(key, 1));
                black_box(&mut sketch);
            });
            let f1 = listed(stream, sketch.list().iter().map(|node| (node.item, node.count)));
            Ok(Known { bytes: Some(sketch.mem_bytes(|_| 0)), f1 })
        }),
        candidate!(Heavy, false, "heavykeeper CuckooTopK, 4 × 4096", |stream, time| {
            let mut sketch = CuckooTopK::<Key>::new(1024, 4096, 4, 0.9);
            time(&mut || {
                stream.keys.iter().for_each(|key| sketch.add(key, 1));
                black_box(&mut sketch);
            });
            let f1 = listed(stream, sketch.list().iter().map(|node| (node.item, node.count)));
            Ok(Known { bytes: Some(sketch.mem_bytes(|_| 0)), f1 })
        }),
        candidate!(Exact, true, EXACT, |stream, time| {
            ours_heavy(Exact::<Key>::reserved(1 << 20, SEED), stream, time)
        }),
        candidate!(Exact, false, HASHBROWN, map::<fast::FixedState>),
        candidate!(Exact, false, "hashbrown, foldhash quality", map::<quality::FixedState>),
    ]
}
