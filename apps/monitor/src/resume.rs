//! Open flows between two runs.
//!
//! ```text
//! workers at the end ─▶ [`Keeper`]: frames of nearly equal size ─▶ file ─▶ [`Resumed`] ─▶ the worker of the next run that
//!                                                                                  owns the pair of addresses
//! ```
//!
//! A frame is its length (four bytes, little-endian) and an image of one table; flows with statistics have a table of their
//! own. The last frame has no flows: it says when the run stopped reading, and what the interfaces had counted then.
//! The file is untrusted.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Read, Write};
use std::sync::{Arc, Mutex, PoisonError};

use ringtap_flow::{FlowStatistics, Metering, OpenFlow, RecordSink};
use ringtap_skeleton::ShardMap;
use ringtap_state::{Error, Reader, Rows, Schema};
use serde::{Deserialize, Serialize};

use crate::state::image;

/// The tail are the facts.
static OPEN: Schema = Schema::many("open_paths", OpenFlow::CANONICAL_LEN);
/// The tail are the statistics and the facts.
static MEASURED: Schema = Schema::many("open_statistics_paths", OpenFlow::CANONICAL_LEN);

/// Bytes of flows after which a frame is written.
const FRAME_BYTES: usize = 512 << 10;
/// Memory of a worker for its frame: the rows, their order and the image.
pub(crate) const FRAME_MEMORY: u64 = 4 * FRAME_BYTES as u64;

/// What separates flows; flows of other settings are not continued.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Separation {
    uniflow: bool,
    vlan_in_key: bool,
    cut: bool,
}

/// The header of a frame.
#[derive(Serialize, Deserialize)]
struct Header {
    #[serde(flatten)]
    separation: Separation,
    /// When the run ended, in packet time, nanoseconds since 1970.
    time_ns: u64,
    /// Packets of interfaces, in the last frame.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    counters: Counters,
}

/// Packets that interfaces have sent and received, by name, as the kernel counts them.
pub type Counters = BTreeMap<String, u64>;

/// What passed while no run read the interfaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Gap {
    /// Packets, by the interfaces' own counters; `None` if these began anew.
    pub packets: Option<u64>,
    /// From the end of the run before to the begin of this one, nanoseconds.
    pub time_ns: u64,
    /// Reporting intervals that lack packets.
    pub intervals: u64,
}

/// A flow of the run before.
pub(crate) struct Earlier {
    pub(crate) flow: OpenFlow,
    /// Whether the same separates flows in this run.
    pub(crate) is_alike: bool,
    /// When the run before ended, nanoseconds.
    pub(crate) time_ns: u64,
}

impl From<&Metering> for Separation {
    fn from(metering: &Metering) -> Self {
        let &Metering { uniflow, vlan_in_key, cut_ns, .. } = metering;
        Self { uniflow, vlan_in_key, cut: cut_ns.is_some() }
    }
}

/// Writes the open flows of all workers at the end of a run.
#[derive(Clone)]
pub struct Keeper {
    separation: Separation,
    shared: Arc<Mutex<Frames>>,
}

struct Frames {
    out: Box<dyn Write + Send>,
    failed: Option<io::Error>,
    flows: u64,
    /// Reads the counters of the interfaces, once, when reading has stopped.
    read: Option<Box<dyn FnOnce() -> Counters + Send>>,
    /// The end of reading.
    last: (u64, Counters),
}

impl Keeper {
    /// A keeper of the flows of a run with this metering. `read` is called when the run has stopped reading.
    pub fn new(
        metering: &Metering,
        out: Box<dyn Write + Send>,
        read: Box<dyn FnOnce() -> Counters + Send>,
    ) -> Self {
        let (read, last) = (Some(read), Default::default());
        let frames = Frames { out, failed: None, flows: 0, read, last };
        Self { separation: metering.into(), shared: Arc::new(Mutex::new(frames)) }
    }

    /// The sink of a worker.
    pub fn sink(&self) -> Box<dyn RecordSink<OpenFlow>> {
        let rows = [&OPEN, &MEASURED].map(Rows::new);
        Box::new(Part { keeper: self.clone(), rows, bytes: 0, time_ns: 0 })
    }

    /// Ends the file, after all sinks. With an error it is not whole, and the number of flows says how many are lost.
    pub fn finish(self) -> Result<(), (u64, io::Error)> {
        let (time_ns, counters) =
            self.shared.lock().unwrap_or_else(PoisonError::into_inner).last.clone();
        if time_ns > 0 {
            self.write(&OPEN, Rows::new(&OPEN), time_ns, counters);
        }
        let mut frames = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        let failed = frames.failed.take().or_else(|| frames.out.flush().err());
        failed.map_or(Ok(()), |error| Err((frames.flows, error)))
    }

    /// Reading has stopped at this time.
    fn stopped(&self, time_ns: u64) {
        let mut frames = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(read) = frames.read.take() {
            frames.last.1 = read();
        }
        frames.last.0 = frames.last.0.max(time_ns);
    }

    fn write(&self, table: &'static Schema, rows: Rows, time_ns: u64, counters: Counters) {
        let (flows, mut rows) = (rows.len() as u64, Some(rows));
        let header = Header { separation: self.separation, time_ns, counters };
        let header = serde_json::to_vec(&header).unwrap_or_default();
        let image =
            image(&header, &[table], |_, own| rows.take().into_iter().for_each(|rows| *own = rows));
        let mut frames = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        frames.flows += flows;
        let written = match image {
            // No other frame may follow one that is cut.
            _ if frames.failed.is_some() => return,
            Ok(image) => u32::try_from(image.len())
                .map_err(io::Error::other)
                .and_then(|length| frames.out.write_all(&length.to_le_bytes()))
                .and_then(|()| frames.out.write_all(&image)),
            Err(error) => Err(io::Error::other(error)),
        };
        frames.failed = written.err();
    }
}

/// The flows of a worker.
struct Part {
    keeper: Keeper,
    /// Without and with statistics.
    rows: [Rows; 2],
    /// Bytes of the rows.
    bytes: usize,
    time_ns: u64,
}

impl RecordSink<OpenFlow> for Part {
    fn take(&mut self, flow: &OpenFlow) {
        let (facts, statistics) = (flow.record.facts.bytes(), &flow.record.statistics);
        let mut tail = statistics.as_ref().map_or_else(Vec::new, |own| own.bytes());
        tail.extend_from_slice(facts);
        let [plain, measured] = &mut self.rows;
        let rows = if statistics.is_some() { measured } else { plain };
        rows.push(&[&flow.canonical()], &[], &tail);
        self.bytes += OpenFlow::CANONICAL_LEN + tail.len();
        if self.bytes >= FRAME_BYTES {
            self.finish();
        }
    }

    fn time(&mut self, time_ns: u64) {
        self.keeper.stopped(time_ns);
        self.time_ns = time_ns;
    }

    fn finish(&mut self) {
        for (own, table) in self.rows.iter_mut().zip([&OPEN, &MEASURED]) {
            if !own.is_empty() {
                let rows = std::mem::replace(own, Rows::new(table));
                self.keeper.write(table, rows, self.time_ns, Counters::new());
            }
        }
        self.bytes = 0;
    }
}

/// The flow of these bytes; `None` if no flow has such bytes.
fn flow(
    canonical: &[u8; OpenFlow::CANONICAL_LEN],
    tail: &[u8],
    is_measured: bool,
) -> Option<OpenFlow> {
    if !is_measured {
        return OpenFlow::from_canonical(canonical, tail);
    }
    let (statistics, facts) = FlowStatistics::split_from(tail)?;
    let mut flow = OpenFlow::from_canonical(canonical, facts)?;
    flow.record.statistics = Some(Box::new(statistics));
    Some(flow)
}

/// Opens the file of open flows; each worker reads all of it.
pub type OpenFile = Arc<dyn Fn() -> io::Result<Box<dyn Read>> + Send + Sync>;

/// The open flows of the run before.
pub struct Resumed {
    open: OpenFile,
    shards: ShardMap,
    separation: Separation,
    flows: u64,
    /// The end of the run before.
    last: (u64, Counters),
}

impl Resumed {
    /// Reads the file to its end, so that no worker finds it damaged. `shards` are those of the run.
    ///
    /// # Errors
    /// It cannot be read, or is damaged.
    pub fn new(open: OpenFile, shards: ShardMap, metering: &Metering) -> Result<Self, Error> {
        let (separation, last) = (metering.into(), Default::default());
        let mut own = Self { open, shards, separation, flows: 0, last };
        let mut flows = 0;
        own.last = own.each(|_| flows += 1)?;
        own.flows = flows;
        Ok(own)
    }

    /// The number of flows.
    pub fn flows(&self) -> u64 {
        self.flows
    }

    /// What has passed since the run before, if the interfaces have counted `now` at a time; `None` if it read none.
    pub fn gap(&self, time_ns: u64, now: &Counters, interval_ns: u64) -> Option<Gap> {
        let (before_ns, before) = &self.last;
        if before.is_empty() {
            return None;
        }
        let passed = |(name, before): (&String, &u64)| now.get(name)?.checked_sub(*before);
        let interval = |time_ns: u64| time_ns / interval_ns.max(1);
        Some(Gap {
            packets: before.iter().map(passed).sum(),
            time_ns: time_ns.saturating_sub(*before_ns),
            intervals: interval(time_ns).saturating_sub(interval(*before_ns)) + 1,
        })
    }

    /// Calls `each` with the flows of a worker.
    pub(crate) fn of_worker(
        &self,
        worker: usize,
        pair: impl Fn(&OpenFlow) -> u32,
        mut each: impl FnMut(Earlier),
    ) -> Result<(), Error> {
        self.each(|earlier| {
            if self.shards.owner(pair(&earlier.flow)) == worker {
                each(earlier);
            }
        })
        .map(drop)
    }

    /// Calls `each` with all flows. Returns the end of the run.
    fn each(&self, mut each: impl FnMut(Earlier)) -> Result<(u64, Counters), Error> {
        let mut last = Default::default();
        let mut input = io::BufReader::new((self.open)()?);
        while !input.fill_buf()?.is_empty() {
            let mut length = [0; 4];
            input.read_exact(&mut length)?;
            let frame = input.by_ref().take(u32::from_le_bytes(length).into());
            let mut reader = Reader::open(frame, &[&OPEN, &MEASURED])?;
            let is_measured = reader.tables() == [&MEASURED];
            let header: Header = serde_json::from_slice(reader.header())
                .map_err(|_| Error::Damaged("the header of open flows"))?;
            while let Some(row) = reader.row(0) {
                let bytes = row.key().first_chunk();
                let flow = bytes.and_then(|bytes| flow(bytes, row.tail, is_measured));
                let flow = flow.ok_or(Error::Damaged("an open flow"))?;
                let is_alike = header.separation == self.separation;
                each(Earlier { flow, is_alike, time_ns: header.time_ns });
                reader.advance()?;
            }
            last = (header.time_ns, header.counters);
        }
        Ok(last)
    }
}
