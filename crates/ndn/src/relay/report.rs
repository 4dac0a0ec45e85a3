//! The report of a forwarder: its counters, with a check that every frame and packet is counted.

use std::sync::Arc;

use crate::faces::{Counters as LinkCounters, Faces, Lost};
use crate::forwarder::{Counters, Drop, FaceUse};
use crate::packets::NackReason;
use serde_json::{Map, Value, json};

use crate::forwarder::design::Access;
use crate::relay::batch::ShardReport;
use crate::relay::core::{Core, Counts};
use crate::relay::plan::ForwardPlan;
use crate::relay::trust::RefusedCommand;

/// The counters of a forwarder over its run.
#[derive(Clone, Debug)]
pub struct ForwardReport {
    plan: Arc<Value>,
    /// Duration of the run, in seconds.
    pub seconds: f64,
    /// Faces at the end of the run.
    pub faces: Vec<FaceReport>,
    /// Number and limit of faces on demand: those that neighbours' packets created.
    pub on_demand: [usize; 2],
    /// Number of faces evicted to make room for others.
    pub evicted: u64,
    /// The sum of the counters of all faces, including closed ones.
    pub links: LinkCounters,
    /// Counters of the forwarder: of all shards.
    pub forwarder: Counters,
    /// Counters of each shard.
    pub shards: Vec<ShardReport>,
    /// Packets dropped because a worker had too many waiting.
    pub worker_full: u64,
    /// Notices between shards that were dropped for the same reason.
    pub notices_lost: u64,
    /// Number of Interests that are still pending.
    pub pending: usize,
    /// Maximum number of pending Interests: of all faces, and of one.
    pub pending_max: [usize; 2],
    /// Number of Data in the content store.
    pub kept: usize,
    /// Number of bytes that these need in the content store.
    pub kept_bytes: usize,
    /// Size of the content store in bytes.
    pub kept_bytes_max: usize,
    /// Number of routes.
    pub routes: usize,
    /// Number of packets dropped because fragments were missing.
    pub incomplete: u64,
    /// Number of datagrams that the kernel dropped before they could be read.
    pub kernel_drops: u64,
    managed: Counts,
    /// Numbers of commands sent to the routing daemon, and of its answers.
    announced: [u64; 2],
    /// Number of requests that wait for an event of a face.
    waiting: usize,
}

/// A face at the end of the run.
#[derive(Clone, Debug)]
pub struct FaceReport {
    /// The number of the face.
    pub face: u32,
    /// The remote end in NFD's syntax.
    pub remote: String,
    /// The local end in NFD's syntax.
    pub local: String,
    /// The counters of the face.
    pub counters: LinkCounters,
    /// Its use of the forwarder's tables.
    pub usage: FaceUse,
}

impl FaceReport {
    /// The kind of the face: the scheme of its remote end, such as `udp4`.
    pub fn kind(&self) -> &str {
        self.remote.split_once("://").map_or("", |(scheme, _)| scheme)
    }
}

impl ForwardReport {
    pub(crate) fn new(
        plan: &ForwardPlan,
        faces: &Faces,
        core: &Core<impl Access>,
        incomplete: u64,
        kernel_drops: u64,
        ran_ns: u64,
    ) -> Self {
        let face = |(number, face): (u32, &crate::faces::Face)| FaceReport {
            face: number,
            remote: face.remote().to_string(),
            local: face.local().to_owned(),
            counters: *face.counters(),
            usage: core.workers.face_use(number),
        };
        let (settings, total) = (&plan.settings, core.workers.total());
        Self {
            plan: Arc::clone(&core.plan),
            seconds: ran_ns as f64 / 1e9,
            faces: faces.iter().map(face).collect(),
            on_demand: [faces.on_demand(), faces.table.on_demand_max],
            evicted: faces.evicted(),
            links: faces.total(),
            forwarder: total.counters,
            shards: core.workers.shards(),
            worker_full: core.workers.dropped(),
            notices_lost: core.workers.notices_dropped(),
            pending: total.pending,
            pending_max: [
                settings.pit_capacity,
                settings.pit_per_face.unwrap_or(settings.pit_capacity),
            ],
            kept: total.kept,
            kept_bytes: total.kept_bytes,
            kept_bytes_max: settings.cs_bytes,
            routes: core.rib.len(),
            incomplete,
            kernel_drops,
            managed: core.counts(),
            announced: [core.announcer.sent, core.announcer.acknowledged],
            waiting: core.events.waiting() + core.requests.len(),
        }
    }

    /// Number of requests that the management answered.
    pub fn managed(&self) -> u64 {
        self.managed.answered
    }

    /// Numbers of commands sent to the routing daemon, and of its answers.
    pub fn announced(&self) -> [u64; 2] {
        self.announced
    }

    /// Number of commands refused for this reason.
    pub fn refused_for(&self, reason: RefusedCommand) -> u64 {
        self.managed.refused[reason as usize]
    }

    /// Numbers of refused commands by reason; only those above 0.
    pub fn refused_commands(&self) -> Vec<(&'static str, u64)> {
        let number = |reason: RefusedCommand| (reason.name(), self.refused_for(reason));
        RefusedCommand::ALL.into_iter().map(number).filter(|(_, number)| *number > 0).collect()
    }

    /// Number of received requests.
    fn managed_in(&self) -> u64 {
        let Counts { answered, unanswered, dropped, .. } = self.managed;
        answered + unanswered + dropped + self.waiting as u64
    }

    /// The part of `pit-per-face` that the pending Interests of a face use, 0 to 1.
    pub fn share(&self, face: &FaceReport) -> f64 {
        face.usage.pending as f64 / self.pending_max[1].max(1) as f64
    }

    /// Number of received frames whose sender has no face.
    pub fn refused(&self) -> u64 {
        self.links.lost(Lost::NoFace)
    }

    /// Numbers of drops by reason, on the links and in the forwarder; only those above 0.
    pub fn dropped(&self) -> Vec<(&'static str, u64)> {
        let links = Lost::ALL.map(|reason| (reason.name(), self.links.lost(reason)));
        let packets = Drop::ALL.map(|reason| (reason.name(), self.forwarder.dropped(reason)));
        let workers = [("worker-full", self.worker_full), ("notice-lost", self.notices_lost)];
        let all = links.into_iter().chain(packets).chain(workers);
        all.filter(|(_, number)| *number > 0).collect()
    }

    /// Number of frames and packets that no counter covers; must be 0.
    pub fn residual(&self) -> i64 {
        self.links.residual() + self.packets_residual()
    }

    /// Number of complete packets that no counter of the forwarder or the management covers.
    fn packets_residual(&self) -> i64 {
        let covered = self.managed_in()
            + self.worker_full
            + self.announced[1]
            + self.forwarder.interests_in
            + self.forwarder.data_in
            + self.forwarder.nacks_in
            + self.forwarder.dropped(Drop::Malformed)
            + self.forwarder.dropped(Drop::NoFace);
        self.links.packets_in() as i64 - covered as i64
    }

    /// The report as JSON.
    pub fn to_json(&self, version: &str) -> Value {
        let face = |face: &FaceReport| {
            let mut row = link(&face.counters);
            row.insert("face".into(), face.face.into());
            row.insert("remote".into(), face.remote.clone().into());
            row.insert("local".into(), face.local.clone().into());
            row.insert("kind".into(), face.kind().into());
            row.insert("exchanges".into(), face.usage.exchanges.into());
            row.insert("content_store_hits".into(), face.usage.cs_hits.into());
            row.insert("pending".into(), face.usage.pending.into());
            row.insert("pit_share".into(), self.share(face).into());
            Value::Object(row)
        };
        let counters = &self.forwarder;
        let refused = RefusedCommand::ALL;
        let refused =
            by_reason(refused.map(|one| (one.name(), self.managed.refused[one as usize])));
        let dropped = Drop::ALL.map(|one| (one.name(), counters.dropped(one)));
        let dropped = by_reason(dropped.into_iter().chain([("worker-full", self.worker_full)]));
        let frames_lost: u64 = Lost::ALL
            .into_iter()
            .filter(|reason| reason.is_incoming())
            .map(|reason| self.links.lost(reason))
            .sum();
        json!({
            "version": version,
            "plan": *self.plan,
            "seconds": self.seconds,
            "packets": {
                "interests_in": counters.interests_in, "data_in": counters.data_in,
                "nacks_in": counters.nacks_in, "interests_out": counters.interests_out,
                "data_out": counters.data_out, "nacks_out": counters.nacks_out,
                "dropped": dropped,
            },
            "interests": { "satisfied": counters.satisfied, "exchanges": counters.exchanges, "unsatisfied": counters.unsatisfied,
                "pending": self.pending },
            "content_store": { "kept": self.kept, "bytes": self.kept_bytes,
                "hits": counters.cs_hits, "misses": counters.cs_misses, "evicted": counters.cs_evicted },
            "tokens": { "right": counters.tokens_right, "wrong": counters.tokens_wrong },
            "dead_nonces": { "evicted": counters.nonces_evicted },
            "management": { "answered": self.managed.answered,
                "unanswered": self.managed.unanswered, "dropped": self.managed.dropped,
                "waiting": self.waiting,
                "announced": self.announced[0],
                "acknowledged": self.announced[1], "refused": refused },
            "workers": self.shards.iter().map(shard).collect::<Vec<_>>(),
            "routes": self.routes,
            "links": link(&self.links),
            "pieces": { "incomplete_packets": self.incomplete },
            "kernel_dropped": self.kernel_drops,
            "faces_on_demand": { "now": self.on_demand[0], "most": self.on_demand[1],
                "evicted": self.evicted, "refused_frames": self.refused() },
            "faces": self.faces.iter().map(face).collect::<Vec<_>>(),
            "ledger": { "residual": self.residual(), "stages": [
                { "stage": "links", "in": self.links.frames_in,
                  "out": self.links.packets_in(),
                  "pieces": self.links.fragments_in, "idle": self.links.idle_in,
                  "dropped": frames_lost },
                { "stage": "packets", "in": self.links.packets_in(),
                  "forwarder": counters.interests_in + counters.data_in + counters.nacks_in,
                  "management": self.managed_in() + self.announced[1],
                  "dropped": self.worker_full + counters.dropped(Drop::Malformed)
                    + counters.dropped(Drop::NoFace) },
            ] },
        })
    }
}

fn shard(shard: &ShardReport) -> Value {
    let counters = &shard.counters;
    json!({ "interests_in": counters.interests_in, "data_in": counters.data_in,
        "nacks_in": counters.nacks_in, "satisfied": counters.satisfied,
        "unsatisfied": counters.unsatisfied, "pending": shard.pending, "kept": shard.kept })
}

fn link(counters: &LinkCounters) -> Map<String, Value> {
    let mut row = Map::new();
    for (name, number) in [
        ("interests_in", counters.interests_in),
        ("data_in", counters.data_in),
        ("nacks_in", counters.nacks_in),
        ("interests_out", counters.interests_out),
        ("data_out", counters.data_out),
        ("nacks_out", counters.nacks_out),
        ("frames_in", counters.frames_in),
        ("frames_out", counters.frames_out),
        ("octets_in", counters.octets_in),
        ("octets_out", counters.octets_out),
    ] {
        row.insert(name.into(), number.into());
    }
    let dropped = by_reason(Lost::ALL.map(|reason| (reason.name(), counters.lost(reason))));
    row.insert("dropped".into(), dropped);
    let reasons = NackReason::ALL;
    let nacks = reasons.map(|reason| (reason.name(), counters.nacks_in_for(reason)));
    row.insert("nacks_in_by_reason".into(), by_reason(nacks));
    let nacks = reasons.map(|reason| (reason.name(), counters.nacks_out_for(reason)));
    row.insert("nacks_out_by_reason".into(), by_reason(nacks));
    row
}

fn by_reason<'a>(reasons: impl IntoIterator<Item = (&'a str, u64)>) -> Value {
    let nonzero = reasons.into_iter().filter(|(_, number)| *number > 0);
    Value::Object(nonzero.map(|(name, number)| (name.to_owned(), number.into())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faces::Settings;
    use crate::forwarder::Parallel;

    #[test]
    fn reports_share_the_plan() {
        let plan = ForwardPlan::default();
        let faces = Faces::open(Settings::default()).unwrap();
        let core =
            Core::start(&plan, Parallel::new(&plan.settings, plan.workers), 0, "test").unwrap();
        let [one, other] = [1, 2].map(|ns| ForwardReport::new(&plan, &faces, &core, 0, 0, ns));
        assert!(Arc::ptr_eq(&one.plan, &other.plan));
        assert_eq!(other.to_json("test")["plan"], plan.to_json());
    }

    #[test]
    fn packets_for_which_a_worker_has_no_room_are_named() {
        let plan = ForwardPlan::default();
        let faces = Faces::open(Settings::default()).unwrap();
        let core =
            Core::start(&plan, Parallel::new(&plan.settings, plan.workers), 0, "test").unwrap();
        let mut report = ForwardReport::new(&plan, &faces, &core, 0, 0, 1);
        report.worker_full = 7;
        let dropped = &report.to_json("test")["packets"]["dropped"];
        assert_eq!(*dropped, json!({ "worker-full": 7 }));
    }
}
