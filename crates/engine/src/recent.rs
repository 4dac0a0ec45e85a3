//! The latest frames of a run in memory, to write the packets that came before an alert.
//!
//! ```text
//! queue 0 ─ frames of a burst ─▶ open piece ─ full ─▶ sealed pieces, the oldest first ─ no room ─▶ overwritten
//! queue 1 ─ …                        └─ a copy ─────────────┴─ one at a time ─▶ Reader: selected frames, by time
//!
//! frame in a piece: time (8) │ link type (2) │ interface (2) │ original length (4) │ captured length (4) │ captured bytes
//! ```
//!
//! Each queue has an equal part of the memory, whose frames are in the order of arrival. A piece has room for the longest
//! frame that is kept, and a part for three pieces at least.
//!
//! Invariants: all pieces of a queue, with the one that a reader has, fit its part of the memory. A queue waits for a
//! reader at most while that copies a piece; a sealed piece is not changed, and freed if it is overwritten meanwhile.

use std::collections::VecDeque;
use std::fmt;
use std::mem::size_of;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ringtap_io::capture::Frame;
use ringtap_wire::LinkType;

/// Longest frame that is kept, bytes: the largest snap length of captures. A piece has room for one, and is copied in
/// some 20 µs.
pub const LONGEST_FRAME: usize = 256 << 10;

/// Least memory of a queue, bytes.
pub(crate) const LEAST_QUEUE_BYTES: u64 = 1 << 20;

/// Pieces that are not sealed: the open one, and the one of a reader.
const NOT_SEALED: usize = 2;

/// Bytes before each frame.
const HEADER: usize = size_of::<u64>() + 2 * size_of::<u16>() + 2 * size_of::<u32>();

const _: () =
    assert!(LEAST_QUEUE_BYTES as usize > NOT_SEALED * (HEADER + LONGEST_FRAME) + LONGEST_FRAME);

/// The latest frames of all queues of a run, which fill it while it goes on.
pub struct Recent {
    bytes: u64,
    /// The longest frame that is kept, bytes.
    longest: usize,
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
#[derive(Default)]
struct Open {
    bytes: Vec<u8>,
    /// Pieces before it.
    number: u64,
    /// Frames before it.
    first: u64,
    /// Frames before the next one.
    frames: u64,
    /// Frames longer than a piece, which are not kept.
    too_long: u64,
}

#[derive(Default)]
struct Sealed {
    /// The number of the oldest piece, which is the number of those overwritten.
    first: u64,
    /// Pieces, with the number of frames before each.
    pieces: VecDeque<(u64, Arc<Vec<u8>>)>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Recent {
    /// Keeps the latest frames in this number of bytes.
    pub(crate) fn new(bytes: u64) -> Self {
        Self { bytes, longest: LONGEST_FRAME, queues: Mutex::default() }
    }

    /// The writing end of one queue, of this number of queues.
    pub(crate) fn keeper(&self, queues: usize) -> Keeper {
        let part = self.bytes / queues.max(1) as u64;
        let size = HEADER + self.longest;
        let queue = Arc::new(Queue {
            size,
            most: (part / size as u64) as usize,
            open: Mutex::default(),
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
            let oldest = sealed.pieces.front();
            if sealed.first > 0 {
                let oldest = oldest.map_or(&open.bytes[..], |(_, piece)| &piece[..]);
                let oldest_ns = kept_at(oldest, 0).map(|kept| kept.frame.ts_ns);
                since_ns = since_ns.max(oldest_ns);
            }
            Cursor {
                queue: Arc::clone(queue),
                number: sealed.first,
                last: open.number,
                frame: oldest.map_or(open.first, |(first, _)| *first),
                end: open.frames,
                piece: None,
                at: 0,
                head: None,
                overwritten: 0,
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
    /// Keeps a frame of the interface at this position of the source, as the latest.
    pub(crate) fn keep(&mut self, interface: usize, frame: &Frame<'_>) {
        let len = HEADER + frame.data.len();
        if self.open.bytes.len() + len > self.queue.size {
            if len > self.queue.size {
                self.open.too_long += 1;
                return;
            }
            self.seal();
        }
        self.open.frames += 1;
        let bytes = &mut self.open.bytes;
        bytes.reserve_exact(self.queue.size - bytes.len());
        bytes.extend_from_slice(&frame.ts_ns.to_le_bytes());
        bytes.extend_from_slice(&frame.link.0.to_le_bytes());
        bytes.extend_from_slice(&(interface as u16).to_le_bytes());
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
            && let Some((_, oldest)) = sealed.pieces.pop_front()
        {
            sealed.first += 1;
            // A reader that has it frees it.
            next = Arc::try_unwrap(oldest).unwrap_or_default();
            next.clear();
        }
        let Open { bytes, number, first, frames, .. } = &mut *self.open;
        sealed.pieces.push_back((*first, Arc::new(std::mem::replace(bytes, next))));
        (*number, *first) = (*number + 1, *frames);
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
    /// Frames before the next one, and before the first one that came after the begin.
    frame: u64,
    end: u64,
    piece: Option<Arc<Vec<u8>>>,
    /// Where the next frame begins.
    at: usize,
    /// The selected frame whose turn is next.
    head: Option<Head<T>>,
    /// Frames that were overwritten since the last selected one.
    overwritten: u64,
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
    /// The position of its interface in the source; 0 in runs over files.
    pub interface: usize,
    /// What the selection returned.
    pub value: T,
    /// Frames of its queue, selected or not, that were overwritten before their turn, since the selected one before.
    pub overwritten: u64,
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

    /// At the end: frames, selected or not, that were overwritten before their turn, after the last selected one of
    /// their queue.
    pub fn overwritten_at_end(&self) -> u64 {
        self.cursors.iter().map(|cursor| cursor.overwritten).sum()
    }
}

impl<T> Cursor<T> {
    /// Goes to the next selected frame, unless it is there.
    fn seek(&mut self, select: &mut impl FnMut(&Frame<'_>) -> Option<T>) {
        while self.head.is_none() && self.has_piece() {
            let piece = self.piece.as_deref().map_or(&[][..], Vec::as_slice);
            let Some(Kept { frame, after, .. }) = kept_at(piece, self.at) else {
                (self.piece, self.number) = (None, self.number + 1);
                continue;
            };
            let (ts_ns, at) = (frame.ts_ns, self.at);
            self.head = select(&frame).map(|value| Head { ts_ns, at, value });
            (self.at, self.frame) = (after, self.frame + 1);
        }
    }

    /// Gets the next piece, unless there is one; false at the end.
    fn has_piece(&mut self) -> bool {
        while self.piece.is_none() && self.number <= self.last {
            self.at = 0;
            let sealed = lock(&self.queue.sealed);
            if self.number < sealed.first {
                // Those that came after the begin need not be read.
                let next = sealed.pieces.front().map_or(self.end, |(first, _)| *first);
                self.overwritten += next.min(self.end).saturating_sub(self.frame);
                (self.number, self.frame) = (sealed.first, next);
                continue;
            }
            let piece = sealed.pieces.get((self.number - sealed.first) as usize);
            self.piece = piece.map(|(_, piece)| Arc::clone(piece));
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
        let Kept { frame, interface, .. } = kept_at(self.piece.as_deref()?, at)?;
        Some(Selected {
            frame,
            interface,
            value,
            overwritten: std::mem::take(&mut self.overwritten),
        })
    }
}

/// A frame in a piece.
struct Kept<'a> {
    frame: Frame<'a>,
    interface: usize,
    /// The position behind it.
    after: usize,
}

/// The frame at this position of a piece.
fn kept_at(piece: &[u8], at: usize) -> Option<Kept<'_>> {
    let (ts_ns, rest) = piece.get(at..)?.split_first_chunk()?;
    let (link, rest) = rest.split_first_chunk()?;
    let (interface, rest) = rest.split_first_chunk()?;
    let (original_len, rest) = rest.split_first_chunk()?;
    let (len, rest) = rest.split_first_chunk()?;
    let data = rest.get(..u32::from_le_bytes(*len) as usize)?;
    let frame = Frame {
        ts_ns: u64::from_le_bytes(*ts_ns),
        link: LinkType(u16::from_le_bytes(*link)),
        original_len: u32::from_le_bytes(*original_len),
        data,
    };
    let interface = u16::from_le_bytes(*interface).into();
    Some(Kept { frame, interface, after: at + HEADER + data.len() })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames in this number of bytes, with eight pieces for one queue.
    fn recent_of(bytes: usize) -> Recent {
        Recent { bytes: bytes as u64, longest: bytes / 8 - HEADER, queues: Mutex::default() }
    }

    fn keep(keeper: &mut Keeper, frames: impl IntoIterator<Item = (u64, Vec<u8>)>) {
        let mut keeping = keeper.begin();
        for (ts_ns, data) in frames {
            let original_len = data.len() as u32 + 1;
            let frame = Frame { link: LinkType(7), ts_ns, data: &data, original_len };
            keeping.keep(ts_ns as usize % 3, &frame);
        }
    }

    /// The times of all frames that `select` selects, and how many were overwritten before each.
    fn times_of(
        reader: &mut Reader<'_, ()>,
        select: impl Fn(&Frame<'_>) -> bool,
    ) -> Vec<(u64, u64)> {
        let mut times = Vec::new();
        while let Some(next) = reader.next(|frame| select(frame).then_some(())) {
            assert_eq!(next.interface as u64, next.frame.ts_ns % 3);
            times.push((next.frame.ts_ns, next.overwritten));
        }
        times
    }

    fn times(recent: &Recent) -> Vec<u64> {
        times_of(&mut recent.reader(), |_| true).into_iter().map(|(time, _)| time).collect()
    }

    /// Bytes of all pieces.
    fn held(keeper: &Keeper) -> usize {
        let (open, sealed) = (lock(&keeper.0.open), lock(&keeper.0.sealed));
        open.bytes.capacity()
            + sealed.pieces.iter().map(|(_, piece)| piece.capacity()).sum::<usize>()
    }

    #[test]
    fn what_is_kept_is_read_in_the_order_of_arrival() {
        let recent = recent_of(1 << 20);
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
            assert_eq!((next.frame, next.value, next.overwritten), (frame, data.len(), 0));
        }
        assert!(reader.next(|_| Some(0)).is_none());
        drop(reader);
        let odd = times_of(&mut recent.reader(), |frame| frame.ts_ns % 2 == 1);
        assert_eq!(odd, [5, 3, u64::MAX].map(|time| (time, 0)));
    }

    #[test]
    fn the_oldest_are_overwritten_within_the_memory() {
        let recent = recent_of(100_000);
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
        let recent = recent_of(8_000);
        let mut keeper = recent.keeper(1);
        let frames = [(1, 10), (2, 1_000), (3, 1_000 - HEADER), (4, 100_000), (5, 0)];
        keep(&mut keeper, frames.map(|(time, len)| (time, vec![0; len])));
        assert_eq!(recent.reader::<()>().too_long(), 2);
        assert_eq!(times(&recent), [1, 3, 5]);
    }

    #[test]
    fn each_queue_keeps_a_longest_frame_in_its_least_memory() {
        let queues = 64;
        let recent = Recent::new(queues as u64 * LEAST_QUEUE_BYTES);
        let mut keepers: Vec<_> = (0..queues).map(|_| recent.keeper(queues)).collect();
        for (time, keeper) in keepers.iter_mut().enumerate() {
            let lens = [LONGEST_FRAME, LONGEST_FRAME + 1, 1, 1];
            keep(keeper, lens.map(|len| (time as u64, vec![1; len])));
            assert!(held(keeper) as u64 <= LEAST_QUEUE_BYTES - LONGEST_FRAME as u64);
        }
        let mut reader = recent.reader::<()>();
        assert_eq!(reader.too_long(), queues as u64);
        let long = times_of(&mut reader, |frame| frame.data.len() == LONGEST_FRAME);
        assert_eq!(long, (0..queues as u64).map(|time| (time, 0)).collect::<Vec<_>>());
    }

    #[test]
    fn frames_of_several_queues_are_merged_by_time() {
        let recent = recent_of(1 << 20);
        let mut keepers = [(); 3].map(|()| recent.keeper(3));
        let of = |times: &'static [u64]| times.iter().map(|time| (*time, vec![1; 60]));
        keep(&mut keepers[0], of(&[1, 4, 7]));
        // The clock of a queue was set back: its order stays.
        keep(&mut keepers[1], of(&[2, 9, 3]));
        assert_eq!(times(&recent), [1, 2, 4, 7, 9, 3]);
    }

    #[test]
    fn what_is_overwritten_while_it_is_read_is_a_gap() {
        let recent = recent_of(80_000);
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
        let gaps: Vec<_> = rest.iter().filter(|(_, overwritten)| *overwritten > 0).collect();
        assert_eq!((rest[0], gaps.len()), ((1, 0), 1), "{rest:?}");
        let (after, overwritten) = *gaps[0];
        assert_eq!(overwritten, after - 9);
        let expected: Vec<_> = (1..9).chain(after..36).collect();
        assert_eq!(rest.iter().map(|(time, _)| *time).collect::<Vec<_>>(), expected);
    }

    /// Frames 0 to 29 are kept when a reader begins; then others follow.
    #[test]
    fn what_is_overwritten_behind_the_last_selected_is_counted() {
        let frames = |times: std::ops::Range<u64>| times.map(|time| (time, vec![0; 1_000]));
        for (further, overwritten) in [(0, 0), (45, 9), (1_000, 21)] {
            let recent = recent_of(80_000);
            let mut keeper = recent.keeper(1);
            keep(&mut keeper, frames(0..30));
            let mut reader = recent.reader();
            let first = |frame: &Frame<'_>| (frame.ts_ns == 0).then_some(());
            assert_eq!(reader.next(first).map(|next| next.overwritten), Some(0));
            assert_eq!(reader.overwritten_at_end(), 0);
            keep(&mut keeper, frames(30..30 + further));
            assert!(reader.next(first).is_none());
            assert_eq!(reader.overwritten_at_end(), overwritten, "{further}");
        }
        // The other queue has no selected frame, and its gap is counted once.
        let recent = recent_of(160_000);
        let mut keepers = [(); 2].map(|()| recent.keeper(2));
        keepers.iter_mut().for_each(|keeper| keep(keeper, frames(0..1)));
        let mut reader = recent.reader();
        keep(&mut keepers[1], frames(1..1_000));
        let times = times_of(&mut reader, |_| true);
        assert_eq!((times, reader.overwritten_at_end()), (vec![(0, 0)], 1));
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
                keeping.keep(ts_ns as usize % 3, &Frame { link, ts_ns, data, original_len: 60 });
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
        let recent = recent_of(200_000);
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
                    let expected = before.map_or(time, |before: u64| before + 1 + next.overwritten);
                    assert_eq!(time, expected, "{before:?}");
                    before = Some(time);
                }
                reads += 1;
            }
        });
        assert_eq!(times(&recent).last(), Some(&199_999));
    }
}
