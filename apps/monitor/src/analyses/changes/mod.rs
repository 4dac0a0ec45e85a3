//! What changes about the user's own hosts: new devices, new server ports, volumes.
//!
//! ```text
//! slice of a flow ─┬ who sent ──────────────▶ (interval, host)       │ first time, octets ─┐
//!                  └ UDP: who replied ──────▶ (interval, host, port) │ first time          ├─▶ the interval is over:
//! packet ──────────── TCP: who sent SYN-ACK ▶ (interval, host, port) │ first time         ─┘   new? more than usual?
//! ```
//!
//! Workers hand cells over at marks. The merger takes an interval at the first mark after its end: then all of its slices
//! have come, so what is new is that of the packets' own times. Marks are at the same places of the stream in every
//! arrangement, so changes are equal, while there is room. What has none is counted. Changes are those of a run: states do
//! not have them.
//! Hosts that only receive have cells if volumes are compared.

mod limits;
pub(crate) mod rows;
mod volumes;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};

use ringtap_flow::{FlowKey, FlowRecord, Initiator, Slice};
use ringtap_stage::Shard;
use ringtap_wire::{Flags, PacketRecord};

use self::rows::{Changes, NewDevice, NewServerPort, VolumeChange};
use self::volumes::{Changed, HISTORY, Histories, Octets};
use super::analysis::{Analysis, Context, Merge, Signals};
use crate::alerts::{Reached, Service, Signal, Subject};
use crate::time::Time;

pub use limits::{ChangeLimits, OwnNetworks};

/// Most hosts that are known, and as many ports.
const KNOWN: usize = 1 << 16;
/// Most ports of one host: a server of FTP answers on ever more.
const PORTS_OF_HOST: usize = 256;
/// Memory of a host and a port.
const KNOWN_BYTES: u64 = 100;
/// Most hosts with a history.
const HISTORIES: usize = 1 << 14;
const HISTORY_BYTES: u64 = 168 + 2 * 16 * HISTORY;
/// Most cells of a worker between two marks, and of the merger.
const CELLS: usize = 1 << 15;
/// Memory of a cell in a worker, on its way, and in the merger.
const CELL_BYTES: u64 = 320;

const TCP: u8 = 6;
const UDP: u8 = 17;
const FIN_SYN_RST_ACK: u8 = 1 | 2 | 4 | 16;
const SYN_ACK: u8 = 2 | 16;

/// UDP ports from here on are those of clients, which other clients ask in calls and games.
const FIRST_DYNAMIC_PORT: u16 = 32_768;

/// A host, or a port of it.
type Key = (IpAddr, Option<Service>);

/// The first key in order.
const FIRST: Key = (IpAddr::V4(Ipv4Addr::UNSPECIFIED), None);

/// What a host or a port did in an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cell {
    /// When it was first seen to send or answer; `u64::MAX`: it was not.
    first_ns: u64,
    octets: u64,
}

/// By interval and key, in bounded memory.
#[derive(Default)]
struct Cells(BTreeMap<(u64, Key), Cell>);

impl Cells {
    /// Adds to a cell; false if there is no room.
    fn add(&mut self, key: (u64, Key), more: Cell) -> bool {
        let has_room = self.0.len() < CELLS;
        match self.0.get_mut(&key) {
            Some(own) => {
                own.first_ns = own.first_ns.min(more.first_ns);
                own.octets = own.octets.saturating_add(more.octets);
            }
            None if has_room => {
                self.0.insert(key, more);
            }
            None => return false,
        }
        true
    }

    /// The cells of intervals below a number.
    fn take_before(&mut self, upto: u64) -> BTreeMap<(u64, Key), Cell> {
        let rest =
            if upto == u64::MAX { BTreeMap::new() } else { self.0.split_off(&(upto, FIRST)) };
        std::mem::replace(&mut self.0, rest)
    }
}

/// The changes of one shard.
pub struct ChangeTable {
    limits: ChangeLimits,
    own: OwnNetworks,
    interval_ns: u64,
    cells: Cells,
    ignored: u64,
}

/// A worker's partial result.
#[derive(Default)]
pub struct ChangeFindings {
    cells: Vec<((u64, Key), Cell)>,
    /// At the end.
    ignored: u64,
}

impl ChangeTable {
    /// Adds to the interval of a time.
    fn add(&mut self, key: Key, time_ns: u64, cell: Cell) {
        if self.own.has(key.0) && !self.cells.add((time_ns / self.interval_ns, key), cell) {
            self.ignored += 1;
        }
    }

    /// A host answers on a port.
    fn answer(&mut self, host: IpAddr, protocol: u8, port: u16, time_ns: u64) {
        let key = (host, Some(Service { protocol, port }));
        self.add(key, time_ns, Cell { first_ns: time_ns, octets: 0 });
    }

    /// Adds the packets and octets of a flow in an interval.
    pub(crate) fn add_slice(&mut self, slice: &FlowRecord, of: Slice) {
        let octets = slice.octets.iter().fold(0, |sum: u64, octets| sum.saturating_add(*octets));
        // A page makes slices shorter than an interval, which must not change what is found: a later slice has the time
        // of its flow, in its interval.
        let (key, mut time_ns) = (&slice.key, slice.first_ns);
        if let Slice::Later { flow_first_ns } = of {
            time_ns = flow_first_ns.max(time_ns - time_ns % self.interval_ns);
        }
        let hosts = [key.source(), key.destination()];
        // A host that sends to itself counts once.
        let sides = if hosts[0] == hosts[1] { 0..1 } else { 0..2 };
        for side in sides {
            let has_sent = slice.packets[side] > 0;
            if !has_sent && self.limits.volume_change.is_none() {
                continue;
            }
            let first_ns = if has_sent { time_ns } else { u64::MAX };
            self.add((hosts[side], None), time_ns, Cell { first_ns, octets });
        }
        if key.protocol != UDP || self.limits.new_server_port.is_none() {
            return;
        }
        let (side, port) = (slice.server_side(), slice.server_port());
        // What answers is sent after the first packet of the flow, which may be in an earlier slice.
        let is_answered = slice.packets[1] > 0;
        // Of equal ports, it is unknown which one was asked.
        let is_known = key.src_port != key.dst_port || slice.initiator != Initiator::FirstPacket;
        if is_answered && is_known && (1..FIRST_DYNAMIC_PORT).contains(&port) {
            self.answer(hosts[side], UDP, port, time_ns);
        }
    }
}

impl Analysis for ChangeTable {
    const IS_FINDING: bool = true;
    const IN_ALL: bool = false;
    /// Of slices, which the flow table makes.
    const TAKES_RECORDS: bool = true;
    const WORKER_BYTES: u64 =
        CELLS as u64 * CELL_BYTES + KNOWN as u64 * KNOWN_BYTES + HISTORIES as u64 * HISTORY_BYTES;

    type Found = Box<ChangeFindings>;
    type Merger = ChangeMerger;

    fn new(context: &Context, _: Shard) -> Self {
        Self {
            limits: context.change_limits,
            own: context.own_networks.clone(),
            interval_ns: context.change_interval_ns,
            cells: Cells::default(),
            ignored: 0,
        }
    }

    fn adopt(&mut self, context: &Context, _: Shard) {
        (self.limits, self.own) = (context.change_limits, context.own_networks.clone());
    }

    fn on_packets(&mut self, packets: &[PacketRecord]) {
        if self.limits.new_server_port.is_none() {
            return;
        }
        // Only a TCP packet with its own header has flags.
        let answers = packets.iter().filter(|packet| {
            packet.tcp_flags & FIN_SYN_RST_ACK == SYN_ACK
                && packet.protocol == TCP
                && packet.flags.contains(Flags::PORTS)
        });
        for packet in answers {
            let host = FlowKey::of(packet).source();
            self.answer(host, TCP, packet.src_port, packet.ts_ns);
        }
    }

    fn on_tick(&mut self, _: u64) -> Option<Box<ChangeFindings>> {
        let cells: Vec<_> = self.cells.take_before(u64::MAX).into_iter().collect();
        (!cells.is_empty()).then(|| Box::new(ChangeFindings { cells, ignored: 0 }))
    }

    fn end(mut self) -> Box<ChangeFindings> {
        let cells = self.cells.take_before(u64::MAX).into_iter().collect();
        Box::new(ChangeFindings { cells, ignored: self.ignored })
    }
}

/// Hosts that have sent, and ports on which they have answered, each in memory of its own.
#[derive(Default)]
struct Known {
    hosts: BTreeSet<IpAddr>,
    ports: BTreeSet<(IpAddr, Service)>,
}

impl Known {
    /// Whether a host or a port is new; `None` if it has no room.
    fn add(&mut self, (host, service): Key) -> Option<bool> {
        let Some(service) = service else {
            let has_room = self.hosts.len() < KNOWN;
            return match self.hosts.contains(&host) {
                true => Some(false),
                false => has_room.then(|| self.hosts.insert(host)),
            };
        };
        if self.ports.contains(&(host, service)) {
            return Some(false);
        }
        let [first, last] = [(0, 0), (u8::MAX, u16::MAX)]
            .map(|(protocol, port)| (host, Service { protocol, port }));
        let has_room =
            self.ports.len() < KNOWN && self.ports.range(first..=last).count() < PORTS_OF_HOST;
        has_room.then(|| self.ports.insert((host, service)))
    }
}

/// Joins the workers' results.
pub struct ChangeMerger {
    limits: ChangeLimits,
    interval_ns: u64,
    /// Of intervals that are not over, when all workers have passed a mark.
    cells: Cells,
    /// Of the end.
    last: ChangeFindings,
    known: Known,
    /// From these times on devices and ports are new; unset before the first host.
    new_from_ns: Option<[u64; 2]>,
    volumes: Histories,
    /// The time of the last mark.
    time_ns: u64,
    found: Changes,
}

impl ChangeMerger {
    fn add(&mut self, found: ChangeFindings) {
        for (key, cell) in found.cells {
            self.found.ignored += u64::from(!self.cells.add(key, cell));
        }
        self.found.ignored += found.ignored;
    }

    /// Reports what has changed in the intervals below a number, which are over.
    fn close_before(&mut self, upto: u64, signals: Signals<'_>) {
        let over = self.cells.take_before(upto);
        let seen = over.iter().filter(|(_, cell)| cell.first_ns < u64::MAX);
        let Some(first_ns) = seen.clone().map(|(_, cell)| cell.first_ns).min() else {
            return self.compare(&over, upto, signals);
        };
        let learning = [self.limits.new_device, self.limits.new_server_port];
        let from_ns = *self.new_from_ns.get_or_insert_with(|| {
            learning.map(|ns| ns.map_or(u64::MAX, |ns| first_ns.saturating_add(ns)))
        });
        let mut new = Vec::new();
        let is_asked =
            |service: &Option<Service>| learning[usize::from(service.is_some())].is_some();
        for (&(_, key), cell) in seen.filter(|((_, (_, service)), _)| is_asked(service)) {
            match self.known.add(key) {
                Some(is_new) => new.extend(is_new.then_some((cell.first_ns, key))),
                None => self.found.ignored += 1,
            }
        }
        new.retain(|(first_ns, (_, service))| *first_ns >= from_ns[usize::from(service.is_some())]);
        new.sort_unstable();
        self.report_new(new, signals);
        self.compare(&over, upto, signals);
    }

    /// Reports hosts and ports that were seen for the first time.
    fn report_new(&mut self, new: Vec<(u64, Key)>, signals: Signals<'_>) {
        for (time_ns, (host, service)) in new {
            let (time, found) = (Time(time_ns), &mut self.found);
            let subject = match service {
                None => {
                    let row = NewDevice { first: time, host };
                    rows::list(&mut found.new_devices, &mut found.further, row);
                    Subject::NewDevice { host }
                }
                Some(service) => {
                    let row = NewServerPort { first: time, host, service };
                    rows::list(&mut found.new_server_ports, &mut found.further, row);
                    Subject::NewServerPort { host, services: vec![service] }
                }
            };
            signals(Signal::New { time, subject });
        }
    }

    /// Compares the volumes of intervals below a number.
    fn compare(&mut self, over: &BTreeMap<(u64, Key), Cell>, upto: u64, signals: Signals<'_>) {
        let Self { limits, interval_ns, volumes, found, .. } = self;
        if limits.volume_change.is_none() {
            return;
        }
        let hosts = over.iter().filter(|((_, (_, service)), _)| service.is_none());
        let octets: Vec<_> = hosts
            .map(|(&(number, (host, _)), &Cell { first_ns, octets })| Octets {
                number,
                host,
                octets,
                has_sent: first_ns < u64::MAX,
            })
            .collect();
        let Changes { volume_changes, further, .. } = found;
        let ignored = volumes.compare(&octets, upto, HISTORIES, limits, |number, changed| {
            let [start, end] = [number, number.saturating_add(1)];
            let [start, end] = [start, end].map(|own| Time(own.saturating_mul(*interval_ns)));
            let mut reached = Vec::new();
            for Changed { host, octets, median } in changed {
                rows::list(volume_changes, further, VolumeChange { start, host, octets, median });
                let subject = Subject::VolumeChange { host, median, interval_ns: *interval_ns };
                reached.push(Reached { subject, number: octets, flood: None });
            }
            signals(Signal::Interval { start, end, reached, of_volumes: true });
        });
        found.ignored += ignored;
    }
}

impl Merge<ChangeTable> for ChangeMerger {
    type Section = Changes;

    /// An interval has all of its cells at the mark after it.
    const IN_ORDER: bool = true;

    fn new(context: &Context) -> Self {
        Self {
            limits: context.change_limits,
            interval_ns: context.change_interval_ns,
            cells: Cells::default(),
            last: ChangeFindings::default(),
            known: Known::default(),
            new_from_ns: None,
            volumes: Histories::default(),
            time_ns: 0,
            found: Changes::default(),
        }
    }

    /// A longer or shorter learning time has the same begin; one that was off begins now.
    fn adopt(&mut self, context: &Context) {
        let learning = |limits: &ChangeLimits| [limits.new_device, limits.new_server_port];
        let pairs = learning(&self.limits).into_iter().zip(learning(&context.change_limits));
        for (from_ns, pair) in self.new_from_ns.iter_mut().flatten().zip(pairs) {
            *from_ns = match pair {
                (_, None) => u64::MAX,
                (None, Some(ns)) => self.time_ns.saturating_add(ns),
                (Some(before), Some(ns)) => from_ns.saturating_sub(before).saturating_add(ns),
            };
        }
        self.limits = context.change_limits;
    }

    fn merge(&mut self, found: Box<ChangeFindings>) {
        self.add(*found);
    }

    fn bytes(found: &Box<ChangeFindings>) -> usize {
        size_of::<ChangeFindings>() + size_of_val(&*found.cells)
    }

    fn merge_end(&mut self, found: Box<ChangeFindings>) {
        self.last.cells.extend(found.cells);
        self.last.ignored += found.ignored;
    }

    fn on_time(&mut self, time_ns: u64, signals: Signals<'_>) {
        let before_ns = std::mem::replace(&mut self.time_ns, time_ns);
        if time_ns >= before_ns {
            self.close_before(time_ns / self.interval_ns, signals);
            return;
        }
        // A clock was set back: all flows have ended. The rest of the learning time goes on, and volumes are learnt again.
        self.close_before(u64::MAX, signals);
        self.volumes.begin_again();
        for from_ns in self.new_from_ns.iter_mut().flatten().filter(|ns| **ns < u64::MAX) {
            let rest_ns = from_ns.saturating_sub(before_ns);
            *from_ns = if rest_ns > 0 { time_ns.saturating_add(rest_ns) } else { 0 };
        }
    }

    fn end(mut self, signals: Signals<'_>) -> Changes {
        let last = std::mem::take(&mut self.last);
        self.add(last);
        self.close_before(u64::MAX, signals);
        self.found
    }
}
