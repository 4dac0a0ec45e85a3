//! Exporting threads against collectors on loopback that are slow, down, restarted or never there.

use std::io::{self, Read};
use std::net::{TcpListener, UdpSocket};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use netflow_parser::variable_versions::ipfix::FlowSetBody;
use netflow_parser::{NetflowPacket, NetflowParser};
use ringtap_export::{Collector, Sampling, Settings, Store, Summary, start};
use ringtap_flow::FlowRecord;

use crate::common::answered;

/// Records that can be told apart: the port counts.
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

/// Exports to one collector; `half_time` comes between the first and the second half of the records.
fn export(url: &str, count: u64, half_time: impl FnOnce()) -> Summary {
    export_with(&Settings::default(), url, count, half_time)
}

/// The same with settings.
pub(crate) fn export_with(
    settings: &Settings,
    url: &str,
    count: u64,
    half_time: impl FnOnce(),
) -> Summary {
    let collector: Collector = url.parse().unwrap();
    let (mut feed, exports) = start(&[collector], settings, no_file).unwrap();
    let mut all = records(count);
    all.by_ref().take(count as usize / 2).for_each(|record| feed.take(&record));
    half_time();
    all.for_each(|record| feed.take(&record));
    drop(feed);
    let mut summaries = exports.finish();
    let summary = summaries.remove(0);
    assert_eq!(summary.collector, url);
    let lost: u64 = summary.not_sent.values().map(|tally| tally.packets).sum();
    assert_eq!(summary.sent.flows.packets + lost, 5 * count, "{summary:?}");
    summary
}

/// Data records of flows in IPFIX octets; each must come after its template and in sequence.
pub(crate) fn flows(octets: &[u8]) -> u64 {
    let mut parser = NetflowParser::default();
    let (mut rest, mut flows, mut sequence) = (octets, 0, None);
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

/// What waits at a socket: all there will be, for whoever sent it has ended.
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
    let summary = export(&url, 900, || {});
    assert_eq!(flows(&receive(&socket)), 900);
    assert_eq!((summary.sent.flows.records, summary.lost(), summary.failure), (900, 0, None));
}

#[test]
fn udp_where_nobody_listens_is_a_failure_and_every_record_is_counted() {
    let free = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let summary = export(&format!("netflow9://{free}"), 500, || {});
    assert_eq!(summary.sent.flows.records, 0, "{summary:?}");
    assert_eq!(summary.not_sent["refused"].records, 1000, "two directions a flow");
    assert!(summary.failure.unwrap().contains("refused"));
}

#[test]
fn a_udp_collector_that_restarts_gets_templates_before_data() {
    let address = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut again = None;
    let summary = export(&format!("ipfix://{address}"), 1000, || {
        // The first half is refused; the thread has seen it all when it is quiet.
        std::thread::sleep(Duration::from_secs(4));
        again = Some(UdpSocket::bind(address).unwrap());
    });
    let received = flows(&receive(&again.unwrap()));
    assert!(summary.failure.is_none() && summary.not_sent.len() == 1, "{summary:?}");
    assert_eq!(summary.not_sent["refused"].records, 500, "{summary:?}");
    assert_eq!(received, 500);
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
        let summary = export(&url, 40_000, || {});
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

#[test]
fn a_tcp_collector_that_restarts_is_found_again() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("ipfix+tcp://{}", listener.local_addr().unwrap());
    let connections = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let (listener, connections) = (&listener, &connections);
        let reader = scope.spawn(move || {
            // The first connection is cut after its first octets; the second one is read to its end.
            let mut first = listener.accept().unwrap().0;
            first.read_exact(&mut [0; 100]).unwrap();
            drop(first);
            connections.store(1, Ordering::SeqCst);
            let mut octets = Vec::new();
            listener.accept().unwrap().0.read_to_end(&mut octets).unwrap();
            octets
        });
        let summary = export(&url, 4000, || {
            while connections.load(Ordering::SeqCst) == 0 {
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        assert_eq!((summary.lost(), &summary.failure), (0, &None), "{summary:?}");
        let octets = reader.join().unwrap();
        assert_eq!(octets[8..12], [0; 4], "the sequence begins anew");
        // What the first one had taken before it was cut is gone with it; the second half is whole.
        assert!((2000..=4000).contains(&flows(&octets)));
    });
}

#[test]
fn a_tcp_collector_that_never_comes_costs_a_bounded_time() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let summary = export(&format!("ipfix+tcp://{free}"), 100, || {});
    assert_eq!(summary.not_sent["too_late"].records, 100, "{summary:?}");
    assert!(summary.failure.unwrap().contains("refused"));
}

/// A file that takes some octets and then no more.
struct Small {
    room: usize,
    kind: io::ErrorKind,
    waits: bool,
    finished: Arc<Mutex<Vec<&'static str>>>,
}

impl Store for Small {
    fn write(&mut self, octets: &[u8]) -> io::Result<()> {
        self.room = self.room.checked_sub(octets.len()).ok_or(self.kind)?;
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        self.finished.lock().unwrap().push("finished");
        Ok(())
    }

    fn renew(&mut self) -> io::Result<()> {
        self.finished.lock().unwrap().push("renewed");
        Ok(())
    }

    fn may_wait(&self) -> bool {
        self.waits
    }

    fn may_be_left(&self) -> bool {
        true
    }
}

#[test]
fn a_full_disk_is_a_failure_and_a_reader_that_leaves_is_none() {
    for (kind, failure) in [
        (io::ErrorKind::StorageFull, Some("no storage space".to_owned())),
        (io::ErrorKind::BrokenPipe, None),
    ] {
        for waits in [true, false] {
            let finished = Arc::default();
            let file: Collector = "ipfix-file:f".parse().unwrap();
            let (mut feed, exports) = start(&[file], &Settings::default(), |_| {
                let finished = Arc::clone(&finished);
                Ok(Box::new(Small { room: 100_000, kind, waits, finished }))
            })
            .unwrap();
            records(5000).for_each(|record| feed.take(&record));
            drop(feed);
            let summary = exports.finish().remove(0);
            assert_eq!(summary.failure, failure);
            assert!(summary.sent.flows.records > 300 && summary.sent.message_octets <= 100_000);
            assert_eq!(summary.sent.flows.records + summary.not_sent["failed"].records, 5000);
            assert!(finished.lock().unwrap().is_empty(), "half a file is not whole");
        }
    }
}

#[test]
fn a_file_begun_anew_has_templates_of_its_own() {
    for waits in [true, false] {
        let finished = Arc::default();
        let file: Collector = "ipfix-file:f".parse().unwrap();
        let (mut feed, exports) = start(&[file], &Settings::default(), |_| {
            let (kind, finished) = (io::ErrorKind::StorageFull, Arc::clone(&finished));
            Ok(Box::new(Small { room: 1 << 20, kind, waits, finished }))
        })
        .unwrap();
        records(10).for_each(|record| feed.take(&record));
        exports.renew();
        while finished.lock().unwrap().is_empty() {
            assert!(waits, "where there is no thread, it is done at once");
            std::thread::sleep(Duration::from_millis(2));
        }
        records(10).for_each(|record| feed.take(&record));
        drop(feed);
        if !waits {
            assert_eq!(
                *finished.lock().unwrap(),
                ["renewed", "finished"],
                "without waiting for it"
            );
        }
        let summary = exports.finish().remove(0);
        assert_eq!(*finished.lock().unwrap(), ["renewed", "finished"]);
        // Twice templates, flow keys, and statistics at begin and end; the records in one message or two.
        assert_eq!((summary.sent.flows.records, summary.lost()), (20, 0));
        assert!((9..=10).contains(&summary.sent.messages), "{summary:?}");
    }
}

#[test]
fn netflow5_refuses_sampling_it_cannot_tell_of() {
    let collector: Collector = "netflow5://127.0.0.1:9".parse().unwrap();
    let sampling = Some(Sampling::Random(16_384));
    let settings = Settings { sampling, ..Settings::default() };
    let error = start(&[collector], &settings, no_file).err().unwrap();
    assert!(std::error::Error::source(&error).unwrap().to_string().contains("1:16383"));
}
