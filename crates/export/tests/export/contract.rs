//! The contract of all outputs (see the head of the crate), held by each of them.
#![expect(clippy::disallowed_methods, reason = "receivers have threads of their own")]

use std::io::{self, Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use ringtap_export::{
    EventOutput, Exports, Handle, Items, Notice, Output, Prepared, Settings, Severity, StatePart,
    Store, Summary,
};
use ringtap_flow::{Event, Kind, Sinks};

use crate::common::answered;
use crate::links::wait_until;

const ITEMS: u64 = 500;
const ROOM: usize = 1 << 20;

/// The far side of an output.
struct Place {
    output: Output,
    /// Whether what is sent to it is known to have arrived.
    is_certain: bool,
    /// Whether it has files.
    is_file: bool,
    /// Sockets and threads of receivers.
    _receivers: Vec<Box<dyn std::any::Any>>,
}

/// A file in memory, which may be full.
#[derive(Clone, Default)]
struct Memory {
    full: Arc<AtomicBool>,
    written: Arc<Mutex<Vec<u8>>>,
    finished: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Store for Memory {
    fn write(&mut self, octets: &[u8]) -> io::Result<()> {
        if self.full.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.written.lock().unwrap().extend_from_slice(octets);
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        let written = std::mem::take(&mut *self.written.lock().unwrap());
        self.finished.lock().unwrap().push(written);
        Ok(())
    }

    fn is_regular(&self) -> bool {
        true
    }

    fn may_abandon(&self) -> bool {
        false
    }
}

fn place(output: Output, is_certain: bool) -> Place {
    let is_file = output.path().is_some() && output.items() != Items::Alerts;
    Place { output, is_certain, is_file, _receivers: Vec::new() }
}

fn exported(url: &str) -> Output {
    url.parse().unwrap_or_else(|error| panic!("{error}"))
}

fn alerts(to: &str) -> Output {
    Output::Alerts(to.parse().unwrap_or_else(|error| panic!("{error}")))
}

/// A port on which each connection is read to its end, and answered as HTTP.
fn server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    // Ends with the test's process.
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            std::thread::spawn(move || {
                let mut piece = [0; 65_536];
                let _ = stream.set_read_timeout(Some(std::time::Duration::from_secs(60)));
                while let Ok(octets @ 1..) = stream.read(&mut piece) {
                    if piece[..octets].starts_with(b"POST ") {
                        let _ = stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n");
                        return;
                    }
                }
            });
        }
    });
    address
}

/// Every kind of output, with a receiver or without. One without accepts nothing.
fn places(folder: &Path, up: bool) -> Vec<Place> {
    let mut all: Vec<Place> = ["json:f", "csv:f", "eve:f", "zeek:f", "parquet:f"]
        .iter()
        .filter_map(|text| text.parse().ok())
        .map(|file| place(Output::File(file), true))
        .collect();
    all.push(place(exported("ipfix-file:f"), true));
    all.extend(
        EventOutput::named("json:f")
            .unwrap()
            .into_iter()
            .map(|file| place(Output::Events(file), true)),
    );
    for name in ["ipfix", "netflow9", "netflow5"] {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let url = format!("{name}://{}", socket.local_addr().unwrap());
        all.push(place(exported(&url), false));
        if up {
            all.last_mut().unwrap()._receivers.push(Box::new(socket));
        }
    }
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let peer = || if up { server() } else { closed.clone() };
    all.push(place(exported(&format!("ipfix+tcp://{}", peer())), true));
    all.push(place(exported(&format!("json+tcp://{}", peer())), true));
    all.push(place(alerts(&format!("syslog+tcp://{}", peer())), true));
    all.push(place(alerts(&format!("http://{}/hook", peer())), true));
    for local in [false, true] {
        let path = folder.join(format!("socket-{up}-{local}"));
        let to = path.to_str().unwrap();
        let output = if local {
            exported(&format!("ipfix+local://{to}"))
        } else {
            alerts(&format!("syslog:{to}"))
        };
        all.push(place(output, true));
        if up {
            let socket = UnixDatagram::bind(&path).unwrap();
            // A socket takes few datagrams that are not read.
            std::thread::spawn(move || while socket.recv(&mut [0; 65_536]).is_ok() {});
        }
    }
    let list = if up { folder.join("alerts.json") } else { "/dev/full".into() };
    all.push(place(alerts(&format!("json:{}", list.display())), true));
    #[cfg(feature = "kafka")]
    if !up {
        all.push(place(exported(&format!("kafka://{closed}/flows")), true));
        all.push(place(exported(&format!("kafka://{closed}/states?format=state")), true));
    }
    #[cfg(feature = "arrow")]
    if up {
        all.push(place(Output::Batches(ringtap_export::Batches::default()), true));
    }
    all
}

fn start(place: &Place, file: &Memory, settings: &Settings) -> (Vec<Sinks>, Exports) {
    let prepared = Prepared::new(std::slice::from_ref(&place.output), settings.clone()).unwrap();
    prepared.start(2, |_| Ok(Box::new(file.clone()))).unwrap()
}

/// Hands over items of the kind that the output takes.
struct Giver {
    sinks: Vec<Sinks>,
    alerts: ringtap_export::Alerts,
    states: ringtap_export::States,
    items: Items,
}

impl Giver {
    fn new(place: &Place, sinks: Vec<Sinks>, exports: &mut Exports) -> Self {
        let (mut alerts, states) = (exports.take_alerts(), exports.take_states());
        if alerts.is_empty() {
            alerts = exports.take_totals();
        }
        Self { sinks, alerts, states, items: place.output.items() }
    }

    fn give(&mut self, number: u64) {
        let worker = number as usize % self.sinks.len();
        match self.items {
            Items::Flows => {
                let mut record = answered();
                record.key.src_port = number as u16;
                // NetFlow has a record for each direction.
                (record.packets[1], record.octets[1]) = (0, 0);
                self.sinks[worker].records.as_mut().unwrap().take(&record);
            }
            Items::Events => {
                let mut event = Event { time_ns: number, ..Event::default() };
                event.values.push(Kind::Protocol, b"dns");
                self.sinks[worker].events.as_mut().unwrap().take(&event);
            }
            Items::Alerts | Items::Totals => self.alerts.send(&Notice {
                json: format!("{{\"id\":{number}}}"),
                text: "a scan".into(),
                kind: "vertical_scan",
                severity: Severity::Medium,
                is_end: false,
                fields: Vec::new(),
                time_ns: 0,
                packets_of: Vec::new(),
                lost_before: 0,
            }),
            Items::States => self.states.send(&StatePart {
                probe: "p".into(),
                run: 1,
                part: number,
                is_last: false,
                from_ns: 0,
                until_ns: 1,
                bytes: vec![0; 1_000].into(),
            }),
        }
    }

    /// A mark of packet time.
    fn mark(&mut self) {
        for sinks in &mut self.sinks {
            sinks.records.iter_mut().for_each(|sink| sink.mark());
            sinks.events.iter_mut().for_each(|sink| sink.mark());
        }
    }

    /// The end of the run.
    fn finish(mut self) {
        for sinks in &mut self.sinks {
            sinks.records.iter_mut().for_each(|sink| sink.ending());
            sinks.events.iter_mut().for_each(|sink| sink.ending());
            sinks.records.iter_mut().for_each(|sink| sink.finish());
            sinks.events.iter_mut().for_each(|sink| sink.finish());
        }
    }
}

/// Items that are sent or lost.
fn counted(summary: &Summary) -> u64 {
    summary.sent.flows.records + summary.lost()
}

/// Waits until the writer has all that was handed over.
fn settle(handle: &Handle, giver: &mut Giver, made: u64) {
    wait_until(|| {
        giver.mark();
        let status = &handle.status()[0];
        status.made >= made && status.queued_bytes == 0
    });
}

#[test]
fn what_is_handed_over_is_sent_and_a_file_can_be_renewed() {
    let folder = tempfile::tempdir().unwrap();
    for place in places(folder.path(), true) {
        let (file, settings) = (Memory::default(), Settings::default());
        let (sinks, mut exports) = start(&place, &file, &settings);
        let handle = exports.handle();
        let mut giver = Giver::new(&place, sinks, &mut exports);
        (0..ITEMS).for_each(|number| giver.give(number));
        settle(&handle, &mut giver, ITEMS);
        handle.renew();
        if place.is_file {
            wait_until(|| file.finished.lock().unwrap().len() == 1);
        }
        (0..ITEMS).for_each(|number| giver.give(number));
        giver.finish();
        let summary = exports.finish().remove(0);
        assert_eq!(summary.output, place.output.to_string());
        assert_eq!(counted(&summary), 2 * ITEMS, "{summary:?}");
        if place.is_certain {
            assert_eq!((summary.lost(), &summary.failure), (0, &None), "{summary:?}");
        }
        if place.is_file {
            let finished = file.finished.lock().unwrap();
            let lens: Vec<_> = finished.iter().map(Vec::len).collect();
            assert!(
                lens.len() == 2 && lens.iter().all(|len| *len > 100),
                "{place:?}: {lens:?}",
                place = place.output
            );
        }
    }
}

#[test]
fn an_output_that_accepts_nothing_takes_bounded_memory_and_counts_what_it_loses() {
    let folder = tempfile::tempdir().unwrap();
    for place in places(folder.path(), false) {
        let file = Memory::default();
        file.full.store(true, Ordering::Relaxed);
        let settings = Settings { live: true, buffer_bytes: ROOM, ..Settings::default() };
        let (sinks, mut exports) = start(&place, &file, &settings);
        let handle = exports.handle();
        let mut giver = Giver::new(&place, sinks, &mut exports);
        for number in 0..20 * ITEMS {
            giver.give(number);
            let queued = handle.status()[0].queued_bytes;
            assert!(queued <= 3 * ROOM as u64, "{:?}: {queued} bytes wait", place.output);
        }
        // The user wants to stop: nothing is waited for.
        handle.interrupt();
        giver.finish();
        let summary = exports.finish().remove(0);
        assert_eq!(counted(&summary), 20 * ITEMS, "{summary:?}");
        if place.is_certain {
            assert_eq!(summary.lost(), 20 * ITEMS, "{summary:?}");
            assert!(summary.failure.is_some(), "{summary:?}");
        }
        assert!(file.written.lock().unwrap().is_empty());
    }
}

#[test]
fn an_aborted_run_ends_at_once_and_finishes_no_file() {
    let folder = tempfile::tempdir().unwrap();
    for place in places(folder.path(), false) {
        let file = Memory::default();
        let (sinks, mut exports) = start(&place, &file, &Settings::default());
        let mut giver = Giver::new(&place, sinks, &mut exports);
        (0..10).for_each(|number| giver.give(number));
        drop(exports);
        assert!(file.finished.lock().unwrap().is_empty(), "{:?}", place.output);
    }
}
