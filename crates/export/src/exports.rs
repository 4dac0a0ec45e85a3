//! All collectors of a run: started together, ended together.

use std::io;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::encode::{Encoder, FILE_LIMIT, Ipfix, NetFlow5, NetFlow9, STREAM_LIMIT, UDP_LIMIT};
use crate::exporter::Exporter;
use crate::feed::{Here, Lane, ROOM, RingLane};
use crate::link::{self, FileLink, Link, Store, TcpLink, TlsClient, UdpLink};
use crate::shared::Shared;
use crate::{Collector, Feed, Protocol, Sampling, Settings, Summary, Transport};

/// How long collectors have, at the end, for what is still waiting.
pub const LINGER: Duration = Duration::from_secs(5);

/// Beyond [`LINGER`], for a thread to notice. One that does not is stuck in a write, and left behind.
const NOTICE: Duration = Duration::from_secs(3);

/// A collector to which nothing can be sent at all.
#[derive(Debug, thiserror::Error)]
#[error("exporting to {collector}")]
pub struct StartError {
    collector: Collector,
    #[source]
    error: io::Error,
}

/// Starts all collectors, each with a thread of its own, but for regular files, which are written where records come
/// from. Files are opened by `open`.
///
/// # Errors
/// A host without an address, a file that cannot be written, certificates that cannot be read, sampling that the
/// protocol cannot tell of, a socket or thread that cannot be had. A collector that is merely down is none: it is tried
/// again and again.
pub fn start(
    collectors: &[Collector],
    settings: &Settings,
    mut open: impl FnMut(&Path) -> io::Result<Box<dyn Store>>,
) -> Result<(Feed, Exports), StartError> {
    let mut feed = Feed { lanes: Vec::with_capacity(collectors.len()) };
    let mut exports = Exports(Vec::with_capacity(collectors.len()));
    for (number, collector) in (1..).zip(collectors) {
        let started = start_one(collector, number, settings, &mut open);
        let (lane, started) =
            started.map_err(|error| StartError { collector: collector.clone(), error })?;
        feed.lanes.push(lane);
        exports.0.push(started);
    }
    Ok((feed, exports))
}

fn start_one(
    collector: &Collector,
    number: u32,
    settings: &Settings,
    open: &mut dyn FnMut(&Path) -> io::Result<Box<dyn Store>>,
) -> io::Result<(Lane, Started)> {
    let protocol = collector.protocol();
    if protocol == Protocol::NetFlow5
        && settings.sampling.is_some_and(|one| one.of() > Sampling::NETFLOW5_MOST)
    {
        let most = Sampling::NETFLOW5_MOST;
        return Err(io::Error::other(format!("NetFlow v5 tells of sampling up to 1:{most}")));
    }
    let mut limit = STREAM_LIMIT;
    let mut is_here = false;
    let link: Box<dyn Link> = match collector.transport() {
        Transport::Udp { host, port } => {
            limit = UDP_LIMIT;
            Box::new(UdpLink::new(link::resolve(host, *port)?)?)
        }
        Transport::Tcp { host, port } => Box::new(TcpLink::new(link::resolve(host, *port)?, None)),
        Transport::Tls { host, port } => {
            let client = TlsClient::new(host, &settings.tls)?;
            Box::new(TcpLink::new(link::resolve(host, *port)?, Some(client)))
        }
        Transport::File(path) => {
            let store = open(path)?;
            is_here = !store.may_wait();
            if is_here {
                limit = FILE_LIMIT;
            }
            Box::new(FileLink::new(store))
        }
    };
    let shared = Arc::new(Shared::default());
    shared.books().summary.collector = collector.to_string();
    let encoder = encoder(protocol, number, settings, limit);
    let exporter = Exporter::new(encoder, link, protocol, settings, Arc::clone(&shared));
    if is_here {
        let exporter = Arc::new(Mutex::new(Some(exporter)));
        let lane = Lane::Here(Here(Arc::clone(&exporter)));
        return Ok((lane, Started { shared, way: Way::Here(Here(exporter)) }));
    }
    let ring = ringtap_ring::spsc(ROOM).map_err(io::Error::other)?;
    let thread = std::thread::Builder::new().name(format!("export {number}"));
    let thread = thread.spawn(move || exporter.run(ring.1))?;
    let lane = Lane::Ring(Box::new(RingLane::new(ring.0, protocol, Arc::clone(&shared))));
    Ok((lane, Started { shared, way: Way::Thread(Some(thread)) }))
}

fn encoder(protocol: Protocol, number: u32, settings: &Settings, limit: usize) -> Box<dyn Encoder> {
    let (domain, sampling) = (settings.observation_domain, settings.sampling);
    match protocol {
        Protocol::Ipfix => {
            let encoder = Ipfix::new(domain, number, limit).sampled(sampling);
            Box::new(encoder.keyed_by_vlans(settings.vlan_in_key))
        }
        Protocol::NetFlow9 => Box::new(NetFlow9::new(domain, limit).sampled(sampling)),
        Protocol::NetFlow5 => Box::new(NetFlow5::new(domain as u16, limit).sampled(sampling)),
    }
}

/// All collectors of a run that have begun.
pub struct Exports(Vec<Started>);

struct Started {
    shared: Arc<Shared>,
    way: Way,
}

enum Way {
    Thread(Option<JoinHandle<()>>),
    Here(Here),
}

impl Exports {
    /// Files are finished and begun anew under the same names.
    pub fn renew(&self) {
        for one in &self.0 {
            match &one.way {
                // Relaxed: it carries no data.
                Way::Thread(_) => one.shared.renew.store(true, Ordering::Relaxed),
                Way::Here(here) => here.renew(),
            }
        }
    }

    /// Waits until everything is sent, for [`LINGER`] at the most and a little more, and tells what became of it. The
    /// [`Feed`] must be gone.
    pub fn finish(mut self) -> Vec<Summary> {
        self.end();
        self.0.iter().map(|one| one.shared.books().summary.clone()).collect()
    }

    fn end(&mut self) {
        for one in &self.0 {
            // Relaxed: it says when, it hands over nothing.
            one.shared.ending.store(true, Ordering::Relaxed);
        }
        let end = link::now() + LINGER + NOTICE;
        for Started { shared, way } in &mut self.0 {
            let Way::Thread(thread) = way else { continue };
            let Some(thread) = thread.take() else { continue };
            thread.thread().unpark();
            while !thread.is_finished() && link::now() < end {
                std::thread::sleep(Duration::from_millis(2));
            }
            let why = if !thread.is_finished() {
                Some("nobody takes what is written")
            } else {
                thread.join().err().map(|_| "the exporting thread panicked")
            };
            if let Some(why) = why {
                shared.books().abandon(why);
            }
        }
    }
}

impl Drop for Exports {
    fn drop(&mut self) {
        self.end();
    }
}
