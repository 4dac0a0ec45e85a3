//! Flow records on their way to collectors.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Mutex;

use ringtap_export::{Collector, Exports, Feed, Settings, Store, Transport};
use ringtap_plan::Exported;

use crate::numbers::count;
use crate::usage::Usage;
use crate::whole::{Part, Whole};

/// The collectors of a run. Records come from the workers, orders from the attendant.
pub(crate) struct Exporting {
    exports: Mutex<Option<Exports>>,
    /// Files that are not whole yet.
    parts: Vec<Part>,
}

impl Exporting {
    /// Starts them all, or none; `None` where records go in if there are none.
    pub(crate) fn start(
        collectors: &[Collector],
        settings: &Settings,
    ) -> anyhow::Result<(Self, Option<Feed>)> {
        for (number, one) in collectors.iter().enumerate() {
            // Two copies to one collector would be counted twice there, two to one file destroy it.
            if collectors[..number].iter().any(|other| other == one) {
                return Err(Usage::of(format!("--export names {one} twice")));
            }
        }
        let mut parts = Vec::new();
        let mut open = |path: &Path| -> io::Result<Box<dyn Store>> {
            let mut file = Whole::new(path.to_owned());
            parts.push(file.part());
            let out = file.begin()?;
            Ok(Box::new(IpfixFile { out, file }))
        };
        let (feed, exports) = ringtap_export::start(collectors, settings, &mut open)?;
        let feed = (!collectors.is_empty()).then_some(feed);
        Ok((Self { exports: Mutex::new(Some(exports)), parts }, feed))
    }

    pub(crate) fn has_files(&self) -> bool {
        !self.parts.is_empty()
    }

    /// Finishes the files and begins new ones under the same names.
    pub(crate) fn renew(&self) {
        if let Some(exports) = &*self.exports() {
            exports.renew();
        }
    }

    /// Waits for the collectors, for a while; what became of the records.
    pub(crate) fn finish(&self) -> Vec<Exported> {
        let exports = self.exports().take();
        exports.map_or_else(Vec::new, Exports::finish)
    }

    /// Removes what is half done.
    pub(crate) fn abandon(&self) {
        self.parts.iter().for_each(Part::remove);
    }

    fn exports(&self) -> std::sync::MutexGuard<'_, Option<Exports>> {
        self.exports.lock().unwrap_or_else(|poison| poison.into_inner())
    }
}

/// What there is to complain of, as kind and text; none if every record was sent.
pub(crate) fn complaints(exported: &[Exported]) -> Vec<(&'static str, String)> {
    let mut all = Vec::new();
    for one in exported {
        if let Some(failure) = &one.failure {
            all.push(("error", format!("exporting to {}: {failure}", one.collector)));
        }
        for (reason, flows) in &one.not_sent {
            let what = match *reason {
                "refused" => "nobody listened there",
                "no_room" => "the collector was down or slow, and patience at an end",
                "too_late" => "the time at the end was over",
                "ipv6" => "NetFlow v5 knows no IPv6",
                "time_span" => "the protocol's 32 bits hold no such times",
                "counter_range" => "the protocol's 32 bits hold no such counts",
                _ => "it could not be written",
            };
            let records = count(flows.records);
            all.push(("warning", format!("{}: {records} records not sent: {what}", one.collector)));
        }
    }
    all
}

/// The file that a collector is, if it is one.
pub(crate) fn path(collector: &Collector) -> Option<&Path> {
    match collector.transport() {
        Transport::File(path) => Some(path),
        _ => None,
    }
}

struct IpfixFile {
    out: Box<dyn Write + Send>,
    file: Whole,
}

impl Store for IpfixFile {
    fn write(&mut self, octets: &[u8]) -> io::Result<()> {
        self.out.write_all(octets)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.out.flush()?;
        self.file.finish().map(drop)
    }

    fn renew(&mut self) -> io::Result<()> {
        self.out.flush()?;
        if self.file.finish()? {
            self.out = self.file.begin()?;
        }
        Ok(())
    }

    fn may_wait(&self) -> bool {
        !self.file.is_regular()
    }

    fn may_be_left(&self) -> bool {
        self.file.is_stdout()
    }
}
