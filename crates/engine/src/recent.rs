//! The latest frames of a run in memory, to write the packets that came before an alert.
//!
//! ```text
//! queue 0 ─ frames of a burst ─▶ open piece ─ full ─▶ sealed pieces, the oldest first ─ no room ─▶ overwritten
//! queue 1 ─ …                        └─ a copy ─────────────┴─ one at a time ─▶ Reader: selected frames, by time
//!
//! frame in a piece: time (8) │ link type (2) │ original length (4) │ captured length (4) │ captured bytes
//! ```
//!
//! Each queue has a part of the memory, whose frames are in the order of arrival.
//!
//! Invariants: all pieces of a queue, with the one that a reader has, fit its part of the memory. A queue waits for a
//! reader at most while that copies a piece; a sealed piece is not changed, and freed if it is overwritten meanwhile.

use std::collections::VecDeque;
use std::fmt;
use std::mem::size_of;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ringtap_io::capture::Frame;
use ringtap_wire::LinkType;

/// Longest piece, bytes: copied in some 20 µs.
const PIECE_MOST: u64 = 256 << 10;

/// Pieces of a queue, at least.
const PIECES_LEAST: u64 = 8;

/// Pieces that are not sealed: the open one, and the one of a reader.
const NOT_SEALED: usize = 2;

/// Bytes before each frame.
const HEADER: usize = size_of::<u64>() + size_of::<u16>() + 2 * size_of::<u32>();

/// The latest frames of all queues of a run, which fill it while it goes on.
pub struct Recent {
    bytes: u64,
    queues: Mutex<Vec<Arc<Queue>>>,
}

/// The frames of a queue.
struct Queue {
    /// Bytes of a piece.
    size: usize,
    /// Pieces, with those that are not sealed.
    most: usize,
    open: Mutex<Open>,
    sealed: Mutex<Sealed>,
}

/// The piece that is written.
struct Open {
    bytes: Vec<u8>,
    /// Pieces before it.
    number: u64,
    /// Frames longer than a piece, which are not kept.
    too_long: u64,
}

#[derive(Default)]
struct Sealed {
    /// The number of the oldest piece, which is the number of those overwritten.
    first: u64,
    pieces: VecDeque<Arc<Vec<u8>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Recent {
    /// Keeps the latest frames in this number of bytes.
    pub fn new(bytes: u64) -> Self {
        Self { bytes, queues: Mutex::default() }
    }

    /// Their memory.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The writing end of one queue, of this number of queues.
    pub(crate) fn keeper(&self, queues: usize) -> Keeper {
        let part = self.bytes / queues.max(1) as u64;
        let size = (part / PIECES_LEAST).clamp(1, PIECE_MOST);
        let queue = Arc::new(Queue {
            size: size as usize,
            most: (part / size) as usize,
            open: Mutex::new(Open { bytes: Vec::new(), number: 0, too_long: 0 }),
            sealed: Mutex::default(),
        });
        lock(&self.queues).push(Arc::clone(&queue));
        Keeper(queue)
    }

    /// Reads the frames that are kept now, and perhaps a few that follow. Another reader waits until this one is dropped.
    pub fn reader<T>(&self) -> Reader<'_, T> {
        let queues = lock(&self.queues);
        let mut since_ns = None;
        let mut too_long = 0;
        let cursor = |queue: &Arc<Queue>| {
            let open = lock(&queue.open);
            let sealed = lock(&queue.sealed);
            too_long += open.too_long;
            if sealed.first > 0 {
                let oldest = sealed.pieces.front().map_or(&open.bytes[..], |piece| &piece[..]);
                let oldest_ns = frame_at(oldest, 0).map(|(frame, _)| frame.ts_ns);
                since_ns = since_ns.max(oldest_ns);
            }
            Cursor {
                queue: Arc::clone(queue),
                number: sealed.first,
                last: open.number,
                piece: None,
                at: 0,
                head: None,
                has_gap: false,
            }
        };
        let cursors = queues.iter().map(cursor).collect();
        Reader { cursors, since_ns, too_long, _others_wait: queues }
    }
}

impl fmt::Debug for Recent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recent").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

/// The writing end of a queue.
pub(crate) struct Keeper(Arc<Queue>);

impl Keeper {
    /// Frames of a burst follow.
    pub(crate) fn begin(&mut self) -> Keeping<'_> {
        Keeping { queue: &self.0, open: lock(&self.0.open) }
    }
}

/// A burst that is kept.
pub(crate) struct Keeping<'a> {
    queue: &'a Queue,
    open: MutexGuard<'a, Open>,
}

impl Keeping<'_> {
    /// Keeps a frame, as the latest.
    pub(crate) fn keep(&mut self, frame: &Frame<'_>) {
        let len = HEADER + frame.data.len();
        if self.open.bytes.len() + len > self.queue.size {
            if len > self.queue.size {
                self.open.too_long += 1;
                return;
            }
            self.seal();
        }
        let bytes = &mut self.open.bytes;
        bytes.reserve_exact(self.queue.size - bytes.len());
        bytes.extend_from_slice(&frame.ts_ns.to_le_bytes());
        bytes.extend_from_slice(&frame.link.0.to_le_bytes());
        bytes.extend_from_slice(&frame.original_len.to_le_bytes());
        bytes.extend_from_slice(&(frame.data.len() as u32).to_le_bytes());
        bytes.extend_from_slice(frame.data);
    }

    /// Begins the next piece, which overwrites the oldest one if there is no room for more.
    #[cold]
    fn seal(&mut self) {
        let mut sealed = lock(&self.queue.sealed);
        let mut next = Vec::new();
        if sealed.pieces.len() + NOT_SEALED >= self.queue.most
            && let Some(oldest) = sealed.pieces.pop_front()
        {
            sealed.first += 1;
            // A reader that has it frees it.
            next = Arc::try_unwrap(oldest).unwrap_or_default();
            next.clear();
        }
        sealed.pieces.push_back(Arc::new(std::mem::replace(&mut self.open.bytes, next)));
        self.open.number += 1;
    }
}

/// Reads the frames that are kept, unless they are overwritten before their turn.
pub struct Reader<'a, T> {
    cursors: Vec<Cursor<T>>,
    since_ns: Option<u64>,
    too_long: u64,
    _others_wait: MutexGuard<'a, Vec<Arc<Queue>>>,
}

/// The position of a reader in a queue.
struct Cursor<T> {
    queue: Arc<Queue>,
    /// The number of the current piece, and of the last one that is read.
    number: u64,
    last: u64,
    piece: Option<Arc<Vec<u8>>>,
    /// Where the next frame begins.
    at: usize,
    /// The selected frame whose turn is next.
    head: Option<Head<T>>,
    /// Frames were overwritten since the last selected one.
    has_gap: bool,
}

struct Head<T> {
    ts_ns: u64,
    at: usize,
    value: T,
}

/// A frame that was selected.
pub struct Selected<'a, T> {
    /// The frame.
    pub frame: Frame<'a>,
    /// What the selection returned.
    pub value: T,
    /// Frames before it were overwritten while they were read.
    pub has_gap: bool,
}

impl<T> Reader<'_, T> {
    /// The time of the oldest frame of which all later ones are kept; `None` if none was overwritten.
    pub fn since_ns(&self) -> Option<u64> {
        self.since_ns
    }

    /// Frames that were too long to be kept.
    pub fn too_long(&self) -> u64 {
        self.too_long
    }

    /// The next frame for which `select` returns a value; that of the earliest time among the queues, each in the order
    /// of arrival. `select` gets all frames of a queue in that order.
    pub fn next(
        &mut self,
        mut select: impl FnMut(&Frame<'_>) -> Option<T>,
    ) -> Option<Selected<'_, T>> {
        self.cursors.iter_mut().for_each(|cursor| cursor.seek(&mut select));
        let time_ns = |cursor: &&mut Cursor<T>| cursor.head.as_ref().map(|head| head.ts_ns);
        let ready = self.cursors.iter_mut().filter(|cursor| cursor.head.is_some());
        ready.min_by_key(time_ns)?.take()
    }
}

impl<T> Cursor<T> {
    /// Goes to the next selected frame, unless it is there.
    fn seek(&mut self, select: &mut impl FnMut(&Frame<'_>) -> Option<T>) {
        while self.head.is_none() && self.has_piece() {
            let piece = self.piece.as_deref().map_or(&[][..], Vec::as_slice);
            let Some((frame, after)) = frame_at(piece, self.at) else {
                (self.piece, self.number) = (None, self.number + 1);
                continue;
            };
            let (ts_ns, at) = (frame.ts_ns, self.at);
            self.head = select(&frame).map(|value| Head { ts_ns, at, value });
            self.at = after;
        }
    }

    /// Gets the next piece, unless there is one; false at the end.
    fn has_piece(&mut self) -> bool {
        while self.piece.is_none() && self.number <= self.last {
            self.at = 0;
            let sealed = lock(&self.queue.sealed);
            if self.number < sealed.first {
                (self.number, self.has_gap) = (sealed.first, true);
                continue;
            }
            self.piece = sealed.pieces.get((self.number - sealed.first) as usize).cloned();
            drop(sealed);
            if self.piece.is_none() {
                let open = lock(&self.queue.open);
                // Otherwise it was sealed meanwhile.
                if open.number == self.number {
                    self.piece = Some(Arc::new(open.bytes.clone()));
                }
            }
        }
        self.piece.is_some()
    }

    /// Removes the selected frame.
    fn take(&mut self) -> Option<Selected<'_, T>> {
        let Head { at, value, .. } = self.head.take()?;
        let (frame, _) = frame_at(self.piece.as_deref()?, at)?;
        Some(Selected { frame, value, has_gap: std::mem::take(&mut self.has_gap) })
    }
}

/// The frame at this position of a piece, and the position behind it.
fn frame_at(piece: &[u8], at: usize) -> Option<(Frame<'_>, usize)> {
    let (ts_ns, rest) = piece.get(at..)?.split_first_chunk()?;
    let (link, rest) = rest.split_first_chunk()?;
    let (original_len, rest) = rest.split_first_chunk()?;
    let (len, rest) = rest.split_first_chunk()?;
    let data = rest.get(..u32::from_le_bytes(*len) as usize)?;
    let frame = Frame {
        ts_ns: u64::from_le_bytes(*ts_ns),
        link: LinkType(u16::from_le_bytes(*link)),
        original_len: u32::from_le_bytes(*original_len),
        data,
    };
    Some((frame, at + HEADER + data.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keep(keeper: &mut Keeper, frames: impl IntoIterator<Item = (u64, Vec<u8>)>) {
        let mut keeping = keeper.begin();
        for (ts_ns, data) in frames {
            let original_len = data.len() as u32 + 1;
            keeping.keep(&Frame { link: LinkType(7), ts_ns, data: &data, original_len });
        }
    }

    /// The times of all frames that `select` selects, and whether there is a gap before each.
    fn times_of(
        reader: &mut Reader<'_, ()>,
        select: impl Fn(&Frame<'_>) -> bool,
    ) -> Vec<(u64, bool)> {
        let mut times = Vec::new();
        while let Some(next) = reader.next(|frame| select(frame).then_some(())) {
            times.push((next.frame.ts_ns, next.has_gap));
        }
        times
    }

    fn times(recent: &Recent) -> Vec<u64> {
        times_of(&mut recent.reader(), |_| true).into_iter().map(|(time, _)| time).collect()
    }

    /// Bytes of all pieces.
    fn held(keeper: &Keeper) -> usize {
        let (open, sealed) = (lock(&keeper.0.open), lock(&keeper.0.sealed));
        open.bytes.capacity() + sealed.pieces.iter().map(|piece| piece.capacity()).sum::<usize>()
    }

    #[test]
    fn what_is_kept_is_read_in_the_order_of_arrival() {
        let recent = Recent::new(1 << 20);
        let mut keeper = recent.keeper(1);
        assert_eq!(times(&recent), Vec::<u64>::new());
        // Time steps back, and lengths differ.
        let kept = [5, 6, 2, 3, u64::MAX, 0];
        keep(&mut keeper, kept.map(|time| (time, vec![time as u8; (time % 9) as usize])));
        let mut reader = recent.reader();
        assert_eq!((reader.since_ns(), reader.too_long()), (None, 0));
        for time in kept {
            let next = reader.next(|frame| Some(frame.data.len())).unwrap();
            let data = vec![time as u8; (time % 9) as usize];
            let original_len = data.len() as u32 + 1;
            let frame = Frame { ts_ns: time, link: LinkType(7), original_len, data: &data };
            assert_eq!((next.frame, next.value, next.has_gap), (frame, data.len(), false));
        }
        assert!(reader.next(|_| Some(0)).is_none());
        drop(reader);
        let odd = times_of(&mut recent.reader(), |frame| frame.ts_ns % 2 == 1);
        assert_eq!(odd, [5, 3, u64::MAX].map(|time| (time, false)));
    }

    #[test]
    fn the_oldest_are_overwritten_within_the_memory() {
        let recent = Recent::new(100_000);
        let mut keeper = recent.keeper(1);
        keep(&mut keeper, (0..10_000).map(|time| (time, vec![0; 100])));
        assert!(held(&keeper) <= 100_000, "{}", held(&keeper));
        let reader = recent.reader::<()>();
        let since = reader.since_ns().unwrap();
        drop(reader);
        let times = times(&recent);
        assert_eq!(times, (since..10_000).collect::<Vec<_>>());
        // Most of the memory has frames.
        assert!((600..850).contains(&times.len()), "{}", times.len());
    }

    #[test]
    fn a_frame_without_room_is_counted_and_the_others_stay() {
        let recent = Recent::new(8_000);
        let mut keeper = recent.keeper(1);
        let frames = [(1, 10), (2, 1_000), (3, 1_000 - HEADER), (4, 100_000), (5, 0)];
        keep(&mut keeper, frames.map(|(time, len)| (time, vec![0; len])));
        assert_eq!(recent.reader::<()>().too_long(), 2);
        assert_eq!(times(&recent), [1, 3, 5]);
        // The smallest memory is none for frames.
        let recent = Recent::new(0);
        let mut keeper = recent.keeper(3);
        keep(&mut keeper, [(1, vec![])]);
        assert_eq!((times(&recent), recent.reader::<()>().too_long()), (vec![], 1));
    }

    #[test]
    fn frames_of_several_queues_are_merged_by_time() {
        let recent = Recent::new(1 << 20);
        let mut keepers = [(); 3].map(|()| recent.keeper(3));
        let of = |times: &'static [u64]| times.iter().map(|time| (*time, vec![1; 60]));
        keep(&mut keepers[0], of(&[1, 4, 7]));
        // The clock of a queue was set back: its order stays.
        keep(&mut keepers[1], of(&[2, 9, 3]));
        assert_eq!(times(&recent), [1, 2, 4, 7, 9, 3]);
    }

    #[test]
    fn what_is_overwritten_while_it_is_read_is_a_gap() {
        let recent = Recent::new(80_000);
        let mut keeper = recent.keeper(1);
        let frames = |times: std::ops::Range<u64>| times.map(|time| (time, vec![0; 1_000]));
        keep(&mut keeper, frames(0..30));
        let mut reader = recent.reader();
        let first = reader.next(|_| Some(())).map(|next| next.frame.ts_ns);
        assert_eq!(first, Some(0));
        keep(&mut keeper, frames(30..75));
        assert!(held(&keeper) <= 70_000, "{}", held(&keeper));
        let rest = times_of(&mut reader, |_| true);
        drop(reader);
        // The piece that the reader has, and what was kept at its begin and is not overwritten.
        let gaps: Vec<_> = rest.iter().filter(|(_, has_gap)| *has_gap).collect();
        assert_eq!((rest[0], gaps.len()), ((1, false), 1), "{rest:?}");
        let after = gaps[0].0;
        let expected: Vec<_> = (1..9).chain(after..36).collect();
        assert_eq!(rest.iter().map(|(time, _)| *time).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn ten_million_small_frames_take_the_same_memory() {
        let recent = Recent::new(4 << 20);
        let mut keeper = recent.keeper(2);
        let mut most = 0;
        for burst in 0..10_000_000 / 250 {
            let mut keeping = keeper.begin();
            for place in 0..250 {
                let (ts_ns, link, data) = (burst * 250 + place, LinkType(1), &[0; 60][..]);
                keeping.keep(&Frame { link, ts_ns, data, original_len: 60 });
            }
            drop(keeping);
            if burst % 1_000 == 0 {
                most = most.max(held(&keeper));
            }
        }
        assert!(most <= 2 << 20, "{most}");
        let times = times(&recent);
        assert!(times.len() > 18_000 && times.windows(2).all(|pair| pair[0] + 1 == pair[1]));
        assert_eq!(times.last(), Some(&9_999_999));
    }

    #[test]
    fn a_reader_and_a_queue_do_not_disturb_each_other() {
        let recent = Recent::new(200_000);
        let mut keeper = recent.keeper(1);
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                for time in 0..200_000 {
                    keep(&mut keeper, [(time, vec![time as u8; 50])]);
                }
            });
            let mut reads = 0;
            while !writer.is_finished() || reads < 3 {
                let mut reader = recent.reader();
                let mut before = None;
                while let Some(next) = reader.next(|frame| Some(frame.data.to_vec())) {
                    let time = next.frame.ts_ns;
                    assert_eq!(next.value, vec![time as u8; 50]);
                    let follows = before.is_none_or(|before: u64| match next.has_gap {
                        true => before < time,
                        false => before + 1 == time,
                    });
                    assert!(follows, "{before:?} {time}");
                    before = Some(time);
                }
                reads += 1;
            }
        });
        assert_eq!(times(&recent).last(), Some(&199_999));
    }
}
