//! Exporting threads with collectors on loopback that are slow, down, restarted or missing.

use std::io::{self, Read};
use std::net::{TcpListener, UdpSocket};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use netflow_parser::variable_versions::ipfix::FlowSetBody;
use netflow_parser::{NetflowPacket, NetflowParser};
use ringtap_export::{
    Handle, Meter, Metered, Output, Prepared, Reason, Refresh, Sampling, Settings, Store, Summary,
};
use ringtap_flow::{FlowRecord, RecordSink};

use crate::common::{answered, record_sinks};

/// Records that differ in their ports.
fn records(count: u64) -> impl Iterator<Item = FlowRecord> {
    (0..count).map(|number| {
        let mut record = answered();
        record.key.src_port = number as u16;
        record.first_ns += number * 1_000_000;
        record.last_ns += number * 1_000_000;
        record
    })
}

fn no_file(_: &std::path::Path) -> io::Result<Box<dyn Store>> {
    unreachable!("no collector here is a file")
}

/// Makes the sink hand over its block, which it does at the writer's request.
fn hand_over(handle: &Handle, sink: &mut dyn RecordSink) {
    let packets = |handle: &Handle| handle.status()[0].made;
    let before = packets(handle);
    for _ in 0..500 {
        sink.mark();
        if packets(handle) > before {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until the condition is true, for a limited time.
pub(crate) fn wait_until(mut is: impl FnMut() -> bool) {
    for _ in 0..10_000 {
        if is() {
            return;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    panic!("the condition did not become true");
}

/// Exports to one collector; calls `half_time` between the first and the second half of the records.
fn export(url: &str, count: u64, half_time: impl FnOnce(&Handle)) -> Summary {
    export_with(&Settings::default(), url, count, half_time)
}

/// Exports to one collector with settings, as [`export`] does without.
pub(crate) fn export_with(
    settings: &Settings,
    url: &str,
    count: u64,
    half_time: impl FnOnce(&Handle),
) -> Summary {
    let output = url.parse::<Output>().unwrap();
    let prepared = Prepared::new(&[output], settings.clone()).unwrap();
    let (mut sinks, exports) = record_sinks(prepared.start(1, no_file).unwrap());
    let (handle, sink) = (exports.handle(), &mut sinks[0]);
    let mut all = records(count);
    all.by_ref().take(count as usize / 2).for_each(|record| sink.take(&record));
    hand_over(&handle, &mut **sink);
    half_time(&handle);
    all.for_each(|record| sink.take(&record));
    sink.ending();
    sink.finish();
    let mut summaries = exports.finish();
    let summary = summaries.remove(0);
    assert_eq!(summary.output, url);
    let lost: u64 = summary.not_sent.values().map(|counts| counts.packets).sum();
    assert_eq!(summary.sent.flows.packets + lost, 5 * count, "{summary:?}");
    summary
}

/// Number of flow records in IPFIX octets; each must follow its template and be in sequence. Times never decrease.
pub(crate) fn flows(octets: &[u8]) -> u64 {
    let mut parser = NetflowParser::default();
    let (mut rest, mut flows, mut sequence, mut time) = (octets, 0, None, 0);
    while rest.len() >= 16 {
        let length = usize::from(u16::from_be_bytes([rest[2], rest[3]]));
        if length > rest.len() {
            break;
        }
        let result = parser.parse_bytes(&rest[..length]);
        assert!(result.error.is_none(), "{:?}", result.error);
        let [NetflowPacket::IPFix(packet)] = &result.packets[..] else { panic!("not IPFIX") };
        let header = &packet.header;
        assert_eq!(header.sequence_number, sequence.unwrap_or(header.sequence_number));
        assert!(header.export_time >= time, "a message is older than the one before");
        time = header.export_time;
        let mut records = 0;
        for set in &packet.flowsets {
            match &set.body {
                FlowSetBody::Data(data) => {
                    flows += data.fields.len() as u64;
                    records += data.fields.len();
                }
                FlowSetBody::OptionsData(data) => records += data.fields.len(),
                FlowSetBody::NoTemplate(_) => panic!("data before their template"),
                _ => {}
            }
        }
        sequence = Some(header.sequence_number + records as u32);
        rest = &rest[length..];
    }
    flows
}

/// All data that wait at a socket; the sender has ended.
fn receive(socket: &UdpSocket) -> Vec<u8> {
    socket.set_nonblocking(true).unwrap();
    let (mut all, mut datagram) = (Vec::new(), [0; 65_536]);
    while let Ok(octets) = socket.recv(&mut datagram) {
        all.extend_from_slice(&datagram[..octets]);
    }
    all
}

#[test]
fn udp_gets_everything() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let url = format!("ipfix://{}", socket.local_addr().unwrap());
    let summary = export(&url, 900, |_| {});
    assert_eq!(flows(&receive(&socket)), 900);
    assert_eq!((summary.sent.flows.records, summary.lost(), summary.failure), (900, 0, None));
}

/// The number of fields of each record of this template in IPFIX octets; 0 is a withdrawal.
fn announced(octets: &[u8], template: u16) -> Vec<u16> {
    let half = |at: usize| u16::from_be_bytes([octets[at], octets[at + 1]]);
    let (mut at, mut all) = (0, Vec::new());
    while at < octets.len() {
        let (mut set, end) = (at + 16, at + usize::from(half(at + 2)));
        while set < end {
            if half(set) == 2 && half(set + 4) == template {
                all.push(half(set + 6));
            }
            set += usize::from(half(set + 2));
        }
        at = end;
    }
    all
}

#[test]
fn templates_are_sent_again_over_udp_and_never_withdrawn() {
    // Templates are sent twice at the beginning, and again whenever `messages` messages were sent.
    for (messages, copies) in [(1_000_000, 2..3), (3, 5..1_000)] {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let url = format!("ipfix://{}", socket.local_addr().unwrap());
        let refresh = Refresh { every: Duration::from_secs(3_600), messages };
        export_with(&Settings { refresh, ..Settings::default() }, &url, 300, |_| {});
        // Template 256 is the first one of an announcement.
        let fields = announced(&receive(&socket), 256);
        assert!(fields.iter().all(|&count| count > 10), "{fields:?}");
        assert!(copies.contains(&fields.len()), "{} of {copies:?}", fields.len());
    }
}

#[test]
fn collectors_of_one_run_share_no_state() {
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let urls = [
        format!("ipfix://{}", udp.local_addr().unwrap()),
        format!("ipfix+tcp://{}", listener.local_addr().unwrap()),
    ];
    let reader = std::thread::Builder::new().spawn(move || {
        let mut octets = Vec::new();
        listener.accept().unwrap().0.read_to_end(&mut octets).unwrap();
        octets
    });
    let outputs = urls.map(|url| url.parse::<Output>().unwrap());
    let prepared = Prepared::new(&outputs, Settings::default()).unwrap();
    let (mut sinks, exports) = record_sinks(prepared.start(1, no_file).unwrap());
    records(700).for_each(|record| sinks[0].take(&record));
    sinks[0].ending();
    sinks[0].finish();
    assert!(exports.finish().iter().all(|one| one.lost() == 0 && one.failure.is_none()));
    for octets in [receive(&udp), reader.unwrap().join().unwrap()] {
        // Each has its templates, and a sequence that begins at 0.
        assert_eq!(octets[8..12], [0; 4]);
        assert_eq!(flows(&octets), 700);
    }
}

#[test]
fn udp_without_a_listener_counts_refusals_and_is_not_a_failure() {
    let free = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let summary = export(&format!("netflow9://{free}"), 500, |_| {});
    // On a busy machine refusals may be late. There are two directions a flow.
    let refused = summary.not_sent["refused"].records;
    assert!(refused > 0, "{summary:?}");
    assert_eq!(summary.sent.flows.records + refused, 1000, "{summary:?}");
    assert_eq!(summary.failure, None);
}

#[test]
fn a_udp_collector_that_restarts_gets_templates_before_data() {
    for _ in 0..20 {
        let address = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let mut again = None;
        let summary = export(&format!("ipfix://{address}"), 1000, |handle| {
            wait_until(|| handle.status()[0].sent + handle.status()[0].lost_total() == 500);
            // On a busy machine refusals may be late. One that comes after data of the second half is too late for
            // the templates.
            let all_refused = handle.status()[0].lost_total() == 500;
            again = all_refused.then(|| UdpSocket::bind(address).unwrap());
        });
        let Some(again) = again else { continue };
        assert!(summary.failure.is_none() && summary.not_sent.len() == 1, "{summary:?}");
        assert_eq!(summary.not_sent["refused"].records, 500, "{summary:?}");
        assert_eq!(flows(&receive(&again)), 500);
        return;
    }
    panic!("refusals were always late");
}

#[test]
fn tcp_gets_everything() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("ipfix+tcp://{}", listener.local_addr().unwrap());
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut octets = Vec::new();
            listener.accept().unwrap().0.read_to_end(&mut octets).unwrap();
            octets
        });
        let summary = export(&url, 40_000, |_| {});
        assert_eq!(
            (summary.sent.flows.records, summary.lost(), summary.failure),
            (40_000, 0, None)
        );
        let octets = reader.join().unwrap();
        assert_eq!(summary.sent.message_octets as usize, octets.len());
        assert_eq!(flows(&octets), 40_000);
        assert!(
            octets.ends_with(&[1, 62, 0, 0, 1, 63, 0, 0]),
            "templates are withdrawn at the end"
        );
    });
}

/// The counts in options data of IPFIX messages, with the flow records and messages before each: of the template with
/// this number, its 64-bit numbers behind the scope of 4 octets.
fn counts(octets: &[u8], template: u16) -> Vec<(u64, u64, Vec<u64>)> {
    let half = |at: usize| u16::from_be_bytes([octets[at], octets[at + 1]]);
    let (mut at, mut messages, mut all) = (0, 0, Vec::new());
    while at < octets.len() {
        let end = at + usize::from(half(at + 2));
        let before = flows(&octets[..at]);
        let mut set = at + 16;
        while set < end {
            let next = set + usize::from(half(set + 2));
            if half(set) == template {
                let numbers = octets[set + 8..next].chunks_exact(8);
                let numbers = numbers.map(|octets| u64::from_be_bytes(octets.try_into().unwrap()));
                all.push((before, messages, numbers.collect()));
            }
            set = next;
        }
        (at, messages) = (end, messages + 1);
    }
    all
}

/// What a collector has at the end of each period is what the statistics then say.
#[test]
fn a_collector_gets_the_counts_of_each_period() {
    let metered = Metered { packets: 9_000, ignored_packets: 7, ignored_octets: 0 };
    let settings = Settings {
        statistics_ns: Some(60_000_000_000),
        meter: Some(Meter::new(move || metered)),
        ..Settings::default()
    };
    for scheme in ["ipfix", "ipfix+tcp"] {
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = if scheme == "ipfix" { udp.local_addr() } else { listener.local_addr() };
        let output = format!("{scheme}://{}", address.unwrap()).parse::<Output>().unwrap();
        let prepared = Prepared::new(&[output], settings.clone()).unwrap();
        let (mut sinks, exports) = record_sinks(prepared.start(2, no_file).unwrap());
        let reader = std::thread::Builder::new();
        let reader = reader.spawn(move || {
            let mut octets = Vec::new();
            if scheme != "ipfix" {
                listener.accept().unwrap().0.read_to_end(&mut octets).unwrap();
            }
            octets
        });
        // The periods have 100, 0 and 300 records of each worker, then 10 without an end.
        let mut all = records(820);
        for (period, count) in [100, 0, 300, 10].into_iter().enumerate() {
            for sink in &mut sinks {
                sink.time((1_000 + period as u64) * 60_000_000_000);
                all.by_ref().take(count).for_each(|record| sink.take(&record));
            }
        }
        for sink in &mut sinks {
            sink.ending();
            sink.finish();
        }
        let summary = exports.finish().remove(0);
        assert_eq!((summary.sent.flows.records, summary.lost()), (820, 0), "{summary:?}");
        let mut octets = reader.unwrap().join().unwrap();
        if scheme == "ipfix" {
            octets = receive(&udp);
        }
        let exported = counts(&octets, 320);
        for (flows, messages, numbers) in &exported {
            assert_eq!((numbers[0], numbers[1]), (*messages, *flows), "{scheme}: {exported:?}");
        }
        let mut at: Vec<_> = exported.iter().map(|(flows, ..)| *flows).collect();
        at.dedup();
        assert_eq!(at, [0, 200, 800, 820], "{scheme}");
        for (template, expected) in [(321, [0, 0, 0]), (323, [9_000, 7, 0])] {
            let all = counts(&octets, template);
            assert_eq!(all.len(), exported.len(), "{scheme}");
            assert!(all.iter().all(|(_, _, numbers)| numbers[..3] == expected), "{all:?}");
        }
    }
}

/// Records that found no room while the collector was away are in the statistics of the next period.
#[test]
fn a_collector_gets_the_counts_of_lost_records() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let output = format!("ipfix+tcp://{address}").parse::<Output>().unwrap();
    let settings = Settings {
        live: true,
        buffer_bytes: 1 << 16,
        statistics_ns: Some(60_000_000_000),
        ..Settings::default()
    };
    let prepared = Prepared::new(&[output], settings).unwrap();
    let (mut sinks, exports) = record_sinks(prepared.start(1, no_file).unwrap());
    let handle = exports.handle();
    sinks[0].time(60_000_000_000);
    records(9_000).for_each(|record| sinks[0].take(&record));
    let lost = handle.status()[0].lost(Reason::NoRoom);
    assert!(lost > 0);
    let listener = TcpListener::bind(address).unwrap();
    let reader = std::thread::Builder::new().spawn(move || {
        let mut octets = Vec::new();
        listener.accept().unwrap().0.read_to_end(&mut octets).unwrap();
        octets
    });
    handle.renew();
    sinks[0].time(120_000_000_000);
    wait_until(|| handle.status()[0].sent + lost == 9_000);
    sinks[0].ending();
    sinks[0].finish();
    let summary = exports.finish().remove(0);
    let octets = reader.unwrap().join().unwrap();
    let (_, _, last) = counts(&octets, 321).pop().unwrap();
    let not_sent = summary.not_sent["no_room"];
    assert_eq!(not_sent.records, lost);
    assert_eq!(last[..3], [not_sent.records, not_sent.packets, not_sent.octets]);
    let (_, _, last) = counts(&octets, 320).pop().unwrap();
    assert_eq!(last[1] + lost, 9_000);
    assert_eq!(last[1], flows(&octets));
}

#[test]
fn lines_over_tcp_are_those_of_a_file() {
    use ringtap_export::formats::{Format, Interfaces};
    for format in [Format::Json, Format::Csv, Format::Eve] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("{format}+tcp://{}", listener.local_addr().unwrap());
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let mut bytes = Vec::new();
                listener.accept().unwrap().0.read_to_end(&mut bytes).unwrap();
                bytes
            });
            let summary = export(&url, 3_000, |_| {});
            assert_eq!((summary.sent.flows.records, summary.lost()), (3_000, 0), "{summary:?}");
            let all: Vec<_> = records(3_000).collect();
            let file = format.encode(&all, &Interfaces::default()).unwrap();
            assert!(reader.join().unwrap() == file, "{format}");
        });
    }
}

#[test]
fn a_tcp_collector_that_restarts_is_found_again() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("ipfix+tcp://{}", listener.local_addr().unwrap());
    let connections = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let (listener, connections) = (&listener, &connections);
        let reader = scope.spawn(move || {
            // The first connection is closed after its first octets; the second one is read to its end.
            let mut first = listener.accept().unwrap().0;
            first.read_exact(&mut [0; 100]).unwrap();
            drop(first);
            connections.store(1, Ordering::SeqCst);
            let mut octets = Vec::new();
            listener.accept().unwrap().0.read_to_end(&mut octets).unwrap();
            octets
        });
        let summary = export(&url, 4000, |_| {
            while connections.load(Ordering::SeqCst) == 0 {
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        assert_eq!((summary.lost(), &summary.failure), (0, &None), "{summary:?}");
        let octets = reader.join().unwrap();
        assert_eq!(octets[8..12], [0; 4], "the sequence starts again");
        // Data that the first connection had accepted are lost with it; the second half is complete.
        assert!((2000..=4000).contains(&flows(&octets)));
    });
}

#[test]
fn a_missing_tcp_collector_costs_a_bounded_time() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let summary = export(&format!("ipfix+tcp://{free}"), 100, |_| {});
    assert_eq!(summary.not_sent["too_late"].records, 100, "{summary:?}");
    assert!(summary.failure.unwrap().contains("refused"));
}

/// A file that accepts some octets and then no more, until it has space again.
#[derive(Clone)]
struct Small {
    room: Arc<AtomicUsize>,
    kind: io::ErrorKind,
    regular: bool,
    written: Arc<Mutex<Vec<u8>>>,
    finished: Arc<Mutex<Vec<Vec<u8>>>>,
    /// Number of further attempts to finish a file that fail.
    unnamed: Arc<AtomicUsize>,
}

impl Small {
    fn new(room: usize, kind: io::ErrorKind, regular: bool) -> Self {
        let room = Arc::new(AtomicUsize::new(room));
        let (written, finished, unnamed) = (Arc::default(), Arc::default(), Arc::default());
        Self { room, kind, regular, written, finished, unnamed }
    }

    /// Starts the output with this file, for some workers.
    fn start(
        &self,
        output: &str,
        workers: usize,
        settings: Settings,
    ) -> (Vec<Box<dyn RecordSink>>, ringtap_export::Exports) {
        let output = match output.parse() {
            Ok(output) => output,
            Err(_) => Output::File(output.parse().unwrap()),
        };
        let prepared = Prepared::new(&[output], settings).unwrap();
        record_sinks(prepared.start(workers, |_| Ok(Box::new(self.clone()))).unwrap())
    }

    /// All files; the last one may be unfinished.
    fn files(&self) -> Vec<Vec<u8>> {
        self.finished.lock().unwrap().clone()
    }
}

impl Store for Small {
    fn write(&mut self, octets: &[u8]) -> io::Result<()> {
        let room = self.room.load(Ordering::SeqCst);
        let left = room.checked_sub(octets.len()).ok_or(self.kind)?;
        self.room.store(left, Ordering::SeqCst);
        self.written.lock().unwrap().extend_from_slice(octets);
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        let left = |unnamed: usize| unnamed.checked_sub(1);
        if self.unnamed.fetch_update(Ordering::SeqCst, Ordering::SeqCst, left).is_ok() {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let written = std::mem::take(&mut *self.written.lock().unwrap());
        self.finished.lock().unwrap().push(written);
        Ok(())
    }

    fn is_regular(&self) -> bool {
        self.regular
    }

    fn may_abandon(&self) -> bool {
        true
    }
}

const FILES: [&str; 6] = ["ipfix-file:f", "json:f", "csv:f", "eve:f", "zeek:f", "parquet:f"];

fn lines(bytes: &[u8]) -> Vec<&str> {
    let mut lines: Vec<_> = std::str::from_utf8(bytes).unwrap().lines().collect();
    lines.sort_unstable();
    lines
}

/// With any number of workers, a file has the lines of the sequential encoder.
#[test]
fn several_workers_write_the_lines_of_one() {
    let all: Vec<_> = records(5000).collect();
    for name in &FILES[1..5] {
        let format =
            name.split(':').next().unwrap().parse::<ringtap_export::formats::Format>().unwrap();
        let expected = format.encode(&all, &Default::default()).unwrap();
        for workers in [1, 2, 3] {
            let file = Small::new(usize::MAX, io::ErrorKind::StorageFull, true);
            let (mut sinks, exports) = file.start(name, workers, Settings::default());
            std::thread::scope(|scope| {
                for (number, sink) in sinks.iter_mut().enumerate() {
                    let own = all.iter().skip(number).step_by(workers);
                    scope.spawn(move || {
                        own.for_each(|record| sink.take(record));
                        sink.finish();
                    });
                }
            });
            let summary = exports.finish().remove(0);
            assert_eq!((summary.sent.flows.records, summary.lost()), (5000, 0));
            let files = file.files();
            assert_eq!(files.len(), 1);
            let written = &files[0];
            assert_eq!(summary.sent.message_octets as usize, written.len(), "{name}");
            if workers == 1 {
                assert_eq!(*written, expected);
            }
            // The head of Zeek's file has the time of the first record.
            let without_head = |bytes| lines(bytes).into_iter().filter(|l| !l.starts_with("#open"));
            assert!(without_head(written).eq(without_head(&expected)), "{name}, {workers} workers");
        }
    }
}

/// A run over files does not wait for a full disk: it writes complete records while there is space, and counts the
/// others.
#[test]
fn a_full_disk_is_a_failure_and_written_records_are_complete() {
    for name in FILES {
        let file = Small::new(400_000, io::ErrorKind::StorageFull, true);
        let (mut sinks, exports) = file.start(name, 1, Settings::default());
        let all: Vec<_> = records(200_000).collect();
        all.iter().for_each(|record| sinks[0].take(record));
        sinks[0].ending();
        sinks[0].finish();
        let summary = exports.finish().remove(0);
        assert_eq!(summary.failure.as_deref(), Some("no storage space"), "{name}");
        assert_eq!(summary.sent.flows.records + summary.lost(), 200_000, "{name}: {summary:?}");
        if name == "parquet:f" {
            // A row group is larger than the disk: nothing is written.
            assert_eq!(summary.sent.flows.records, 0);
            continue;
        }
        assert!(summary.sent.flows.records > 300, "{name}: {summary:?}");
        let written = file.files().concat();
        if name == "json:f" {
            assert_eq!(lines(&written).len() as u64, summary.sent.flows.records);
            assert!(written.ends_with(b"\n"));
        } else if name == "ipfix-file:f" {
            // Complete messages, one after another. Their sequence numbers show what is missing.
            let mut rest = &written[..];
            while !rest.is_empty() {
                assert_eq!(rest[..2], [0, 10]);
                rest = &rest[usize::from(u16::from_be_bytes([rest[2], rest[3]]))..];
            }
        }
    }
}

/// A live run with a full disk loses no record while the buffer has space.
#[test]
fn a_live_run_continues_when_there_is_space_again() {
    for name in FILES {
        let file = Small::new(0, io::ErrorKind::StorageFull, true);
        let settings = Settings { live: true, ..Settings::default() };
        let (mut sinks, exports) = file.start(name, 1, settings);
        let handle = exports.handle();
        let all: Vec<_> = records(10_000).collect();
        all.iter().for_each(|record| sinks[0].take(record));
        hand_over(&handle, &mut *sinks[0]);
        if name != "parquet:f" {
            while !handle.status()[0].failing {
                std::thread::sleep(Duration::from_millis(2));
            }
            let error = handle.status()[0].last_error.clone().unwrap().0;
            assert_eq!(error, "no storage space", "{name}");
        }
        file.room.store(usize::MAX, Ordering::SeqCst);
        handle.renew();
        sinks[0].ending();
        sinks[0].finish();
        let summary = exports.finish().remove(0);
        assert_eq!((summary.lost(), summary.failure), (0, None), "{name}");
    }
}

/// The disk is full, and only finished files can be moved away: a hangup starts another file nevertheless.
#[test]
fn a_full_disk_does_not_keep_a_file_from_being_finished() {
    for name in ["ipfix-file:f", "json:f", "csv:f", "eve:f", "zeek:f"] {
        let file = Small::new(200_000, io::ErrorKind::StorageFull, true);
        let settings = Settings { live: true, ..Settings::default() };
        let (mut sinks, exports) = file.start(name, 1, settings);
        let handle = exports.handle();
        records(10_000).for_each(|record| sinks[0].take(&record));
        while !handle.status()[0].failing {
            std::thread::sleep(Duration::from_millis(2));
        }
        handle.renew();
        while file.files().is_empty() {
            std::thread::sleep(Duration::from_millis(2));
        }
        // The file was moved away.
        file.room.store(usize::MAX, Ordering::SeqCst);
        sinks[0].ending();
        sinks[0].finish();
        let summary = exports.finish().remove(0);
        assert_eq!((summary.lost(), summary.failure), (0, None), "{name}");
        let files = file.files();
        assert!(files.len() >= 2, "{name}");
        if name == "json:f" {
            let all: usize = files.iter().map(|file| lines(file).len()).sum();
            assert_eq!(all, 10_000);
        }
    }
}

/// A hangup while nothing can be written; then the file cannot be renamed either.
#[test]
fn an_ipfix_file_has_templates_before_data_after_any_failure() {
    let file = Small::new(0, io::ErrorKind::StorageFull, true);
    let settings = Settings { live: true, ..Settings::default() };
    let (mut sinks, exports) = file.start("ipfix-file:f", 1, settings);
    let handle = exports.handle();
    records(100).for_each(|record| sinks[0].take(&record));
    hand_over(&handle, &mut *sinks[0]);
    wait_until(|| handle.status()[0].failing);
    file.unnamed.store(1, Ordering::SeqCst);
    handle.renew();
    wait_until(|| file.unnamed.load(Ordering::SeqCst) == 0);
    file.room.store(usize::MAX, Ordering::SeqCst);
    sinks[0].ending();
    sinks[0].finish();
    let summary = exports.finish().remove(0);
    assert_eq!((summary.lost(), summary.failure), (0, None));
    assert_eq!(flows(&file.files().concat()), 100);
}

/// There is no space for the last statistics: the file is finished without them.
#[test]
fn an_ipfix_file_without_space_for_statistics_is_finished() {
    let file = Small::new(usize::MAX, io::ErrorKind::StorageFull, true);
    let settings = Settings { live: true, ..Settings::default() };
    let (mut sinks, exports) = file.start("ipfix-file:f", 1, settings);
    let handle = exports.handle();
    records(10).for_each(|record| sinks[0].take(&record));
    hand_over(&handle, &mut *sinks[0]);
    wait_until(|| handle.status()[0].sent == 10);
    file.room.store(0, Ordering::SeqCst);
    handle.renew();
    wait_until(|| !file.files().is_empty());
    file.room.store(usize::MAX, Ordering::SeqCst);
    sinks[0].finish();
    let summary = exports.finish().remove(0);
    assert_eq!((summary.lost(), summary.failure), (0, None));
    assert_eq!(flows(&file.files()[0]), 10);
}

#[test]
fn a_reader_that_closes_stdout_is_not_a_failure() {
    for name in FILES {
        let file = Small::new(100_000, io::ErrorKind::BrokenPipe, false);
        let (mut sinks, exports) = file.start(name, 1, Settings::default());
        records(5000).for_each(|record| sinks[0].take(&record));
        sinks[0].finish();
        let summary = exports.finish().remove(0);
        assert_eq!(summary.failure, None, "{name}");
        assert_eq!(summary.sent.flows.records + summary.not_sent["reader_gone"].records, 5000);
    }
}

/// A row group and its footer: without the footer nothing can be read, not even earlier groups.
#[test]
fn a_reader_that_closes_a_parquet_file_loses_all_of_it() {
    // The magic number and a row group fit, the next one does not; another block follows.
    let file = Small::new(4_000_000, io::ErrorKind::BrokenPipe, false);
    let (mut sinks, exports) = file.start("parquet:f", 1, Settings::default());
    let all = 1 << 18;
    records(all).for_each(|record| sinks[0].take(&record));
    sinks[0].finish();
    let summary = exports.finish().remove(0);
    assert!(!file.written.lock().unwrap().is_empty());
    assert_eq!((summary.lost(), summary.failure), (all, None));
    assert_eq!(summary.not_sent["reader_gone"].records, all, "{:?}", summary.not_sent);
}

/// Only the renaming failed: the records exist, with the other name.
#[test]
fn a_complete_parquet_file_that_cannot_be_renamed_is_a_failure_without_loss() {
    let file = Small::new(usize::MAX, io::ErrorKind::StorageFull, true);
    file.unnamed.store(usize::MAX, Ordering::SeqCst);
    let (mut sinks, exports) = file.start("parquet:f", 1, Settings::default());
    records(10).for_each(|record| sinks[0].take(&record));
    sinks[0].finish();
    let summary = exports.finish().remove(0);
    assert_eq!((summary.sent.flows.records, summary.lost()), (10, 0));
    assert_eq!(summary.failure.as_deref(), Some("permission denied"));
}

/// At a hangup the file cannot be renamed; at the end of the run it can.
#[test]
fn a_file_that_is_renamed_later_is_not_a_failure() {
    for name in FILES {
        let file = Small::new(usize::MAX, io::ErrorKind::StorageFull, true);
        let settings = Settings { live: true, ..Settings::default() };
        let (mut sinks, exports) = file.start(name, 1, settings);
        let handle = exports.handle();
        records(10).for_each(|record| sinks[0].take(&record));
        hand_over(&handle, &mut *sinks[0]);
        wait_until(|| handle.status()[0].queued_bytes == 0);
        file.unnamed.store(1, Ordering::SeqCst);
        handle.renew();
        wait_until(|| handle.status()[0].failing);
        sinks[0].finish();
        let summary = exports.finish().remove(0);
        assert_eq!((summary.lost(), summary.failure), (0, None), "{name}");
    }
}

#[test]
fn a_new_file_after_a_hangup_is_complete() {
    for name in FILES {
        let file = Small::new(1 << 20, io::ErrorKind::StorageFull, true);
        let (mut sinks, exports) = file.start(name, 1, Settings::default());
        let handle = exports.handle();
        records(10).for_each(|record| sinks[0].take(&record));
        hand_over(&handle, &mut *sinks[0]);
        while handle.status()[0].queued_bytes > 0 {
            std::thread::sleep(Duration::from_millis(2));
        }
        handle.renew();
        while file.files().is_empty() {
            std::thread::sleep(Duration::from_millis(2));
        }
        records(10).for_each(|record| sinks[0].take(&record));
        sinks[0].finish();
        let summary = exports.finish().remove(0);
        assert_eq!((summary.sent.flows.records, summary.lost()), (20, 0), "{name}");
        let files = file.files();
        assert_eq!(files.len(), 2, "{name}");
        match name {
            "ipfix-file:f" => files.iter().for_each(|file| assert_eq!(flows(file), 10)),
            "parquet:f" => {
                files
                    .iter()
                    .for_each(|file| assert!(file.starts_with(b"PAR1") && file.ends_with(b"PAR1")));
            }
            _ => assert_eq!(files[0], files[1], "{name}"),
        }
    }
}

/// An output that accepts nothing: the run ends soon after an interrupt, and missing records are counted.
#[test]
fn an_interrupt_ends_the_run_in_any_state_of_the_output() {
    /// Does not return from a write while the test runs.
    struct Stuck;
    impl Store for Stuck {
        fn write(&mut self, _: &[u8]) -> io::Result<()> {
            // Time itself: longer than the test.
            std::thread::sleep(Duration::from_secs(600));
            Ok(())
        }
        fn finish(&mut self) -> io::Result<()> {
            Ok(())
        }
        fn is_regular(&self) -> bool {
            false
        }
        fn may_abandon(&self) -> bool {
            false
        }
    }
    for live in [false, true] {
        let settings = Settings { live, buffer_bytes: 1 << 20, ..Settings::default() };
        let output = Output::File("json:f".parse().unwrap());
        let prepared = Prepared::new(&[output], settings).unwrap();
        let (mut sinks, exports) =
            record_sinks(prepared.start(1, |_| Ok(Box::new(Stuck))).unwrap());
        let handle = exports.handle();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // A run over files waits; only the interrupt ends that.
                records(20_000).for_each(|record| sinks[0].take(&record));
                sinks[0].ending();
                sinks[0].finish();
            });
            while handle.status()[0].queued_bytes == 0 {
                std::thread::sleep(Duration::from_millis(2));
            }
            handle.renew();
            handle.interrupt();
        });
        let summary = exports.finish().remove(0);
        assert_eq!(summary.sent.flows.records, 0);
        assert_eq!(summary.lost(), 20_000, "{summary:?}");
        assert!(summary.failure.is_some());
        assert_eq!(summary.not_sent.contains_key(Reason::NoRoom.name()), live, "{summary:?}");
    }
}

/// An output that was idle until the flows are flushed after an interrupt accepts them.
#[test]
fn an_idle_output_accepts_the_flush_after_an_early_interrupt() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let collector = format!("netflow9://{}", socket.local_addr().unwrap());
    for output in ["json:f", &collector] {
        let file = Small::new(usize::MAX, io::ErrorKind::StorageFull, false);
        let (mut sinks, exports) = file.start(output, 1, Settings::default());
        exports.handle().interrupt();
        // Time itself: longer than an output may accept nothing after an interrupt.
        std::thread::sleep(Duration::from_secs(1));
        records(20).for_each(|record| sinks[0].take(&record));
        sinks[0].ending();
        sinks[0].finish();
        let summary = exports.finish().remove(0);
        assert_eq!((summary.lost(), summary.failure), (0, None), "{output}");
    }
}

/// A writer whose thread is abandoned and continues later, while another output is still waited for.
#[test]
fn records_of_an_abandoned_writer_are_counted_once() {
    #[derive(Clone, Default)]
    struct Flag(Arc<std::sync::atomic::AtomicBool>);
    impl Flag {
        fn set(&self) {
            self.0.store(true, Ordering::SeqCst);
        }
        fn wait(&self) {
            wait_until(|| self.0.load(Ordering::SeqCst));
        }
    }
    /// Its write returns when one flag is set; when it is finished it sets another one.
    struct Waits(bool, Flag, Flag);
    impl Store for Waits {
        fn write(&mut self, _: &[u8]) -> io::Result<()> {
            self.1.wait();
            Ok(())
        }
        fn finish(&mut self) -> io::Result<()> {
            self.2.set();
            Ok(())
        }
        fn is_regular(&self) -> bool {
            self.0
        }
        fn may_abandon(&self) -> bool {
            false
        }
    }
    let outputs = ["json:pipe", "json:file"].map(|file| Output::File(file.parse().unwrap()));
    let prepared = Prepared::new(&outputs, Settings::default()).unwrap();
    let (abandoned, gone_on) = (Flag::default(), Flag::default());
    let started = prepared.start(1, |path| {
        let flags = [abandoned.clone(), gone_on.clone()];
        let [waits_for, sets] = flags;
        Ok(Box::new(match path.to_str() {
            Some("pipe") => Waits(false, waits_for, sets),
            _ => Waits(true, sets, Flag::default()),
        }))
    });
    let (mut sinks, exports) = record_sinks(started.unwrap());
    let handle = exports.handle();
    records(10).for_each(|record| sinks[0].take(&record));
    sinks[0].ending();
    sinks[0].finish();
    handle.interrupt();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            wait_until(|| handle.status()[0].lost(Reason::TooLate) > 0);
            abandoned.set();
        });
        let summary = exports.finish().remove(0);
        assert_eq!(summary.sent.flows.records + summary.lost(), 10, "{summary:?}");
    });
}

#[test]
fn netflow5_refuses_sampling_it_cannot_express() {
    let output = "netflow5://127.0.0.1:9".parse::<Output>().unwrap();
    let sampling = Some(Sampling::Random(16_384));
    let settings = Settings { sampling, ..Settings::default() };
    let error = Prepared::new(&[output], settings).err().unwrap();
    assert!(std::error::Error::source(&error).unwrap().to_string().contains("1:16383"));
}
