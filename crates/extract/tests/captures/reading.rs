//! Reads the messages of real captures.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ringtap_extract::{Extractors, Kind, Payload, Payloads};
use ringtap_io::capture::{Files, Input};
use ringtap_wire::{Decoded, Decoder, HashKey, PacketRecord, Paths};

/// A message: its facts in order, without the protocol, and the ports of the packet that completed it.
pub(crate) struct Message {
    pub(crate) protocol: Vec<u8>,
    pub(crate) facts: Vec<(Kind, Vec<u8>)>,
    pub(crate) ports: [u16; 2],
}

impl Message {
    /// Whether it has this value.
    pub(crate) fn has(&self, kind: Kind, value: &str) -> bool {
        self.facts.iter().any(|(own, bytes)| *own == kind && bytes == value.as_bytes())
    }
}

/// The folder of real captures.
pub(crate) fn traces() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces");
    folder.is_dir().then_some(folder)
}

/// All captures: of traffic in general, of applications, and with known traps.
pub(crate) fn captures() -> Vec<PathBuf> {
    let Some(folder) = traces() else { return Vec::new() };
    let is_capture = |path: &PathBuf| {
        path.extension()
            .is_some_and(|end| ["pcap", "pcapng", "trace"].iter().any(|own| end == *own))
    };
    let mut all = Vec::new();
    for folder in [folder.clone(), folder.join("applications"), folder.join("found")] {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        all.extend(entries.map(|entry| entry.path()).filter(is_capture));
    }
    all.sort();
    all
}

/// Whether any five bytes in a row of a capture are like this. Tshark takes half a second to start, and need not read a
/// capture that cannot have what is compared.
pub(crate) fn has(path: &Path, are: impl Fn(&[u8]) -> bool) -> bool {
    std::fs::read(path).is_ok_and(|bytes| bytes.windows(5).any(are))
}

/// All messages of a capture, and the counters.
pub(crate) fn messages(path: &Path) -> (Vec<Message>, BTreeMap<String, u64>) {
    let mut decoder = Decoder::new(HashKey::from_seed(1), Arc::new(Paths::new()));
    let mut payloads = Payloads::new(Extractors::ALL, 64 << 20);
    let mut all: Vec<Message> = Vec::new();
    let mut files = Files::new(vec![Input::from(path.to_owned())]);
    while files.burst(64, |frame| {
        let mut record = PacketRecord::EMPTY;
        let decoded =
            decoder.decode(frame.link, frame.ts_ns, frame.data, frame.original_len, &mut record);
        if matches!(decoded, Decoded::NonIp(_)) {
            return;
        }
        for record in [Some(record), decoder.inner(&record).copied()].into_iter().flatten() {
            let ports = [record.src_port, record.dst_port];
            let mut found = |kind, value: &[u8]| {
                if kind == Kind::Protocol {
                    all.push(Message { protocol: value.to_vec(), facts: Vec::new(), ports });
                } else if let Some(message) = all.last_mut() {
                    message.facts.push((kind, value.to_vec()));
                }
                true
            };
            if let Some(part) = decoder.part(frame.link, frame.data, &record) {
                payloads.read_part(&record, &part, &mut found);
                continue;
            }
            let payload = decoder.payload(frame.link, frame.data, &record);
            let Some(payload) = payload else { continue };
            let payload =
                Payload { record: &record, bytes: payload.bytes, sequence: payload.sequence };
            payloads.read(&payload, &mut found);
        }
    }) > 0
    {}
    let counts = payloads.counts(true);
    let mut named: BTreeMap<String, u64> =
        counts.read.iter().map(|(name, &number)| ((*name).to_owned(), number)).collect();
    named.extend(
        counts
            .unread
            .iter()
            .map(|((name, why), &number)| (format!("{name} {}", why.name()), number)),
    );
    (all, named)
}
