//! What flow records, events, alerts and rows of the report pass through before they reach an output.
//!
//! ```text
//! worker: FlowRecord, Event ─┐
//!                            ├─▶ Stage ─▶ all outputs of records and events, digest
//! merger: alerts, report ────┘            stderr, terminal view, report
//! ```
//!
//! An [`Enrichment`] holds what the user asked for; each thread that passes items on has its own [`Stage`], so no lock is
//! taken. Analyses see items before the stage, formats after it: neither has code for it. The entries of a
//! [`WatchList`] are looked up by an analysis.
//!
//! Invariants: a stage is a pure function of the item, so equal items are equal in every arrangement. With a key, no
//! item leaves it with an address or a name of the packets (`anonymiser.rs`). Memory is bounded by the files that are
//! loaded and recent results.
#![forbid(unsafe_code)]

mod anonymiser;
mod cryptopan;
mod geo;
mod key;
mod lines;
mod networks;
mod prefixes;
mod recent;
mod vendors;
mod vlans;
mod watch;

use std::net::IpAddr;
use std::sync::Arc;

use ringtap_base::Network;
use ringtap_flow::{Event, FlowKey, FlowRecord, IpVersion, Origin};

pub use anonymiser::Anonymiser;
pub use geo::{Geo, InvalidDatabase};
pub use key::{InvalidKey, read_key};
pub use lines::{InvalidList, read as read_list, wrong_network};
pub use networks::Networks;
pub use vendors::Vendors;
pub use vlans::Vlans;
pub use watch::{EntryKind, WatchList};

use anonymiser::Anonymising;
use recent::Recent;

/// What is added to items, and what is replaced.
#[derive(Clone, Debug, Default)]
pub struct Enrichment {
    /// The names of the user's networks, for records and rows of hosts.
    pub networks: Option<Arc<Networks>>,
    /// Countries and autonomous systems, for the same.
    pub geo: Option<Arc<Geo>>,
    /// The vendors of network cards, for records.
    pub vendors: Option<Arc<Vendors>>,
    /// The names of VLANs, for records.
    pub vlans: Option<Arc<Vlans>>,
    /// The interfaces of the run: the kernel's numbers, 0 until they are opened, and their names, for records.
    pub interfaces: Vec<(u32, String)>,
    /// Replaces addresses and names, after everything else.
    pub anonymiser: Option<Arc<Anonymiser>>,
}

impl Enrichment {
    /// The stage of a thread; `None` if items stay as they are.
    pub fn stage(&self) -> Option<Box<Stage>> {
        (!self.is_empty()).then(|| {
            let has_origins = self.networks.is_some() || self.geo.is_some();
            Box::new(Stage {
                networks: self.networks.clone(),
                geo: self.geo.clone(),
                vendors: self.vendors.clone(),
                vlans: self.vlans.clone(),
                // Copies, because threads that share a count would wait for each other.
                interfaces: self
                    .interfaces
                    .iter()
                    .map(|(own, name)| (*own, Arc::from(&**name)))
                    .collect(),
                origins: has_origins.then(Recent::new),
                anonymising: self.anonymiser.as_ref().map(Anonymising::new),
                record: FlowRecord::new(NO_KEY),
                event: Event::default(),
            })
        })
    }

    /// Whether items stay as they are.
    pub fn is_empty(&self) -> bool {
        self.interfaces.is_empty() && self.has_no_files()
    }

    fn has_no_files(&self) -> bool {
        let Self { networks, geo, vendors, vlans, interfaces: _, anonymiser } = self;
        let adds_none = networks.is_none() && geo.is_none() && vendors.is_none() && vlans.is_none();
        adds_none && anonymiser.is_none()
    }

    /// Bytes of memory of a stage, at most.
    pub fn stage_bytes(&self) -> u64 {
        match self.has_no_files() {
            true if self.interfaces.is_empty() => 0,
            true => RECORD_BYTES,
            false => STAGE_BYTES,
        }
    }

    /// Bytes of memory of the loaded files.
    pub fn memory(&self) -> u64 {
        let networks = self.networks.as_ref().map_or(0, |own| own.memory());
        let vendors = self.vendors.as_ref().map_or(0, |own| own.memory());
        let vlans = self.vlans.as_ref().map_or(0, |own| own.memory());
        networks + vendors + vlans + self.geo.as_ref().map_or(0, |own| own.memory())
    }
}

/// A key without meaning, until a record passes.
const NO_KEY: FlowKey = FlowKey {
    version: IpVersion::V4,
    src: [0; 16],
    dst: [0; 16],
    src_port: 0,
    dst_port: 0,
    protocol: 0,
};

/// Bytes of memory of a stage with recent results, at most.
pub const STAGE_BYTES: u64 = 2 << 20;
/// Bytes of memory of a stage's latest items, at most.
const RECORD_BYTES: u64 = 64 << 10;

/// Passes the items of one thread.
#[derive(Debug)]
pub struct Stage {
    networks: Option<Arc<Networks>>,
    geo: Option<Arc<Geo>>,
    vendors: Option<Arc<Vendors>>,
    vlans: Option<Arc<Vlans>>,
    interfaces: Box<[(u32, Arc<str>)]>,
    /// `None` if none are added.
    origins: Option<Recent<Origin>>,
    anonymising: Option<Anonymising>,
    /// The latest items, after the stage.
    record: FlowRecord,
    event: Event,
}

impl Stage {
    /// The record as outputs get it.
    pub fn record(&mut self, record: &FlowRecord) -> &FlowRecord {
        self.record.clone_from(record);
        let names_links = self.vendors.is_some() || self.vlans.is_some();
        if self.origins.is_some() || names_links || !self.interfaces.is_empty() {
            let [source, destination] = [record.key.source(), record.key.destination()];
            let mut origins = [self.origin(source), self.origin(destination)];
            // That of the first packet may be in the other direction than the key.
            let [own, _] = record.paths();
            let path = own.copied().unwrap_or_else(|| record.path.reversed());
            if let Some(vendors) = &self.vendors {
                let both = origins.iter_mut().zip(path.macs);
                both.for_each(|(origin, mac)| origin.vendor = vendors.name(mac).cloned());
            }
            if let Some(vlans) = self.vlans.as_ref().filter(|_| path.vlan_tags > 0) {
                origins[0].vlan = vlans.name(path.vlans[0]).cloned();
            }
            let ingress = record.path.ingress;
            let received = self.interfaces.iter().find(|(own, _)| ingress > 0 && *own == ingress);
            origins[0].interface = received.map(|(_, name)| Arc::clone(name));
            let known = origins.iter().any(|origin| *origin != Origin::default());
            self.record.origins = known.then(|| Box::new(origins));
        }
        if let Some(anonymising) = &mut self.anonymising {
            anonymising.record(&mut self.record);
        }
        &self.record
    }

    /// The event as outputs get it.
    pub fn event<'a>(&'a mut self, event: &'a Event) -> &'a Event {
        let Some(anonymising) = &mut self.anonymising else { return event };
        self.event.clone_from(event);
        anonymising.event(&mut self.event);
        &self.event
    }

    /// The origin of an address of the packets; without its flags nothing is known.
    pub fn origin(&mut self, address: IpAddr) -> Origin {
        let Self { networks, geo, origins, .. } = self;
        let Some(origins) = origins else { return Origin::default() };
        let origin = origins.get(address, || {
            let network = networks.as_ref().and_then(|networks| networks.name(address));
            let mut origin = Origin { network: network.cloned(), ..Origin::default() };
            geo.iter().for_each(|geo| geo.look_up(address, &mut origin));
            origin
        });
        origin.clone()
    }

    /// Whether [`replace`](Self::replace) changes anything.
    pub fn replaces(&self) -> bool {
        self.anonymising.is_some()
    }

    /// Replaces an address in an alert or in a row of the report.
    pub fn replace(&mut self, address: &mut IpAddr) {
        if let Some(anonymising) = &mut self.anonymising {
            *address = anonymising.address(*address);
        }
    }

    /// Replaces the address of a network, which keeps its length.
    pub fn replace_network(&mut self, address: &mut IpAddr, length: u8) {
        self.replace(address);
        *address = Network::around(*address, length).address;
    }

    /// Replaces the addresses of a flow.
    pub fn replace_key(&mut self, key: &mut FlowKey) {
        if let Some(anonymising) = &mut self.anonymising {
            anonymising.key(key);
        }
    }

    /// Replaces the text of an entry of a [`WatchList`].
    pub fn replace_entry(&mut self, kind: EntryKind, text: &mut String) {
        match (kind, text.parse::<Network>()) {
            (EntryKind::Name, _) => self.replace_name(text),
            (EntryKind::Network, Ok(Network { mut address, length })) => {
                self.replace_network(&mut address, length);
                let length = text.find('/').map_or("", |at| &text[at..]);
                *text = format!("{address}{length}");
            }
            (EntryKind::Network | EntryKind::Fingerprint, _) => {}
        }
    }

    /// Replaces a name.
    pub fn replace_name(&mut self, name: &mut String) {
        self.replace_by(name, Anonymiser::push_name);
    }

    /// Replaces the name of a server, perhaps with a port.
    pub fn replace_host(&mut self, name: &mut String) {
        self.replace_by(name, Anonymiser::push_host);
    }

    fn replace_by(&self, name: &mut String, push: fn(&Anonymiser, &[u8], &mut Vec<u8>)) {
        if let Some(anonymising) = &self.anonymising {
            let mut out = Vec::new();
            push(anonymising.by(), name.as_bytes(), &mut out);
            *name = String::from_utf8_lossy(&out).into_owned();
        }
    }
}

#[cfg(test)]
mod tests {
    use ringtap_flow::Initiator;

    use super::*;

    #[test]
    fn vendors_are_those_of_the_sides_of_the_key() {
        let list = b"28:00:01\tA\tClient\n28:00:02\tB\tServer\n";
        let vendors = Some(Arc::new(Vendors::parse(list).unwrap()));
        let mut stage = Enrichment { vendors, ..Enrichment::default() }.stage().unwrap();
        let mut record = FlowRecord::new(NO_KEY);
        let mut names = |initiator, macs| {
            record.initiator = initiator;
            record.path.macs = macs;
            let origins = stage.record(&record).origins.clone().unwrap();
            origins.map(|origin| origin.vendor.unwrap().to_string())
        };
        let (client, server) = ([0x28, 0, 1, 9, 9, 9], [0x28, 0, 2, 9, 9, 9]);
        assert_eq!(names(Initiator::Syn, [client, server]), ["Client", "Server"]);
        // The first packet was an answer.
        assert_eq!(names(Initiator::SynAck, [server, client]), ["Client", "Server"]);
    }

    #[test]
    fn a_record_has_the_names_of_its_interface_and_its_vlan() {
        let interfaces = vec![(0, "no number".to_owned()), (7, "eth0".to_owned())];
        let vlans = Some(Arc::new(Vlans::parse(b"10 office\n").unwrap()));
        let enrichment = Enrichment { interfaces, vlans, ..Enrichment::default() };
        assert_eq!(enrichment.stage_bytes(), STAGE_BYTES);
        let mut stage = enrichment.stage().unwrap();
        let mut names = |ingress, vlan_tags, vlan| {
            let mut record = FlowRecord::new(NO_KEY);
            (record.path.ingress, record.path.vlan_tags) = (ingress, vlan_tags);
            record.path.vlans[0] = vlan;
            let origins = stage.record(&record).origins.clone()?;
            let [Origin { interface, vlan, .. }, other] = *origins;
            assert_eq!(other, Origin::default());
            Some([interface, vlan].map(|name| name.map(|name| name.to_string())))
        };
        let [eth0, office] = ["eth0", "office"].map(|name| Some(name.to_owned()));
        assert_eq!(names(7, 1, 10), Some([eth0.clone(), office.clone()]));
        assert_eq!(names(7, 0, 10), Some([eth0, None]), "no tag");
        assert_eq!(names(8, 2, 10), Some([None, office]));
        assert_eq!([names(0, 0, 0), names(8, 1, 11)], [None, None]);
    }

    #[test]
    fn a_stage_for_interfaces_alone_takes_little_memory() {
        let mut enrichment = Enrichment::default();
        assert!(enrichment.is_empty() && enrichment.stage().is_none());
        assert_eq!(enrichment.stage_bytes(), 0);
        enrichment.interfaces = vec![(0, "eth0".to_owned())];
        assert!(!enrichment.is_empty() && enrichment.stage().is_some());
        assert_eq!(enrichment.stage_bytes(), RECORD_BYTES);
        assert!(enrichment.stage().unwrap().origins.is_none());
    }
}
