//! What a forwarder has done, and that nothing is missing.

use crate::faces::{Counters as LinkCounters, Faces, Lost};
use crate::forwarder::{Counters, Drop};
use serde_json::{Map, Value, json};

use crate::relay::core::{Core, Counts};
use crate::relay::plan::ForwardPlan;

/// What a forwarder counted from its start to its end.
#[derive(Clone, Debug)]
pub struct ForwardReport {
    plan: Value,
    /// How long it ran.
    pub seconds: f64,
    /// All faces that are there at the end.
    pub faces: Vec<FaceReport>,
    /// Of these, faces that neighbours made by sending a packet, and how many there may be.
    pub on_demand: [usize; 2],
    /// Faces of neighbours that were closed to make room for others.
    pub evicted: u64,
    /// The sum over all faces, those that are gone among them.
    pub links: LinkCounters,
    /// What the forwarder did.
    pub forwarder: Counters,
    /// Interests that are pending still.
    pub pending: usize,
    /// Data that are kept.
    pub kept: usize,
    /// Routes that there are.
    pub routes: usize,
    /// Packets given up, for their other pieces did not come.
    pub incomplete: u64,
    /// Datagrams that the kernel had no room for, before they could be counted here.
    pub kernel_drops: u64,
    managed: Counts,
}

/// A face at the end.
#[derive(Clone, Debug)]
pub struct FaceReport {
    /// Its number.
    pub face: u32,
    /// Who is at the other end.
    pub remote: String,
    /// Our end.
    pub local: String,
    /// What went over it.
    pub counters: LinkCounters,
}

impl ForwardReport {
    pub(crate) fn new(
        plan: &ForwardPlan,
        faces: &Faces,
        core: &Core,
        incomplete: u64,
        kernel_drops: u64,
        ran_ns: u64,
    ) -> Self {
        let face = |(number, face): (u32, &crate::faces::Face)| FaceReport {
            face: number,
            remote: face.remote().to_string(),
            local: face.local().to_owned(),
            counters: *face.counters(),
        };
        Self {
            plan: plan.to_json(),
            seconds: ran_ns as f64 / 1e9,
            faces: faces.iter().map(face).collect(),
            on_demand: [faces.on_demand(), faces.on_demand_max()],
            evicted: faces.evicted(),
            links: faces.total(),
            forwarder: core.forwarder.counters(),
            pending: core.forwarder.pending(),
            kept: core.forwarder.kept(),
            routes: core.rib.len(),
            incomplete,
            kernel_drops,
            managed: core.counts,
        }
    }

    /// Requests that the management answered.
    pub fn managed(&self) -> u64 {
        self.managed.answered
    }

    /// Frames of senders that got no face.
    pub fn refused(&self) -> u64 {
        self.links.lost(Lost::NoFace)
    }

    /// What was dropped, by reason, and how many; on the links and in the forwarder.
    pub fn dropped(&self) -> Vec<(&'static str, u64)> {
        let links = Lost::ALL.map(|reason| (reason.name(), self.links.lost(reason)));
        let packets = Drop::ALL.map(|reason| (reason.name(), self.forwarder.dropped(reason)));
        links.into_iter().chain(packets).filter(|(_, number)| *number > 0).collect()
    }

    /// Frames and packets that are unaccounted for: 0.
    pub fn residual(&self) -> i64 {
        self.links.residual() + self.packets_residual()
    }

    /// Packets that came whole, less those that were taken by somebody or are none.
    fn packets_residual(&self) -> i64 {
        let taken = self.managed.answered
            + self.managed.unanswered
            + self.forwarder.interests_in
            + self.forwarder.data_in
            + self.forwarder.nacks_in
            + self.forwarder.dropped(Drop::Malformed)
            + self.forwarder.dropped(Drop::NoFace);
        self.links.packets_in() as i64 - taken as i64
    }

    /// For programs.
    pub fn to_json(&self, version: &str) -> Value {
        let face = |face: &FaceReport| {
            let mut row = link(&face.counters);
            row.insert("face".into(), face.face.into());
            row.insert("remote".into(), face.remote.clone().into());
            row.insert("local".into(), face.local.clone().into());
            Value::Object(row)
        };
        let counters = &self.forwarder;
        let dropped = by_reason(Drop::ALL.map(|one| (one.name(), counters.dropped(one))));
        let frames_lost: u64 = Lost::ALL
            .into_iter()
            .filter(|reason| reason.is_incoming())
            .map(|reason| self.links.lost(reason))
            .sum();
        json!({
            "version": version,
            "plan": self.plan,
            "seconds": self.seconds,
            "packets": {
                "interests_in": counters.interests_in, "data_in": counters.data_in,
                "nacks_in": counters.nacks_in, "interests_out": counters.interests_out,
                "data_out": counters.data_out, "nacks_out": counters.nacks_out,
                "dropped": dropped,
            },
            "interests": { "satisfied": counters.satisfied, "unsatisfied": counters.unsatisfied,
                "pending": self.pending },
            "content_store": { "kept": self.kept, "hits": counters.cs_hits,
                "misses": counters.cs_misses, "evicted": counters.cs_evicted },
            "tokens": { "right": counters.tokens_right, "wrong": counters.tokens_wrong },
            "dead_nonces": { "evicted": counters.nonces_evicted },
            "management": { "answered": self.managed.answered,
                "unanswered": self.managed.unanswered },
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
                  "pieces": self.links.pieces_in, "idle": self.links.idle_in,
                  "dropped": frames_lost },
                { "stage": "packets", "in": self.links.packets_in(),
                  "forwarder": counters.interests_in + counters.data_in + counters.nacks_in,
                  "management": self.managed.answered + self.managed.unanswered,
                  "dropped": counters.dropped(Drop::Malformed) + counters.dropped(Drop::NoFace) },
            ] },
        })
    }
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
    row
}

fn by_reason<const N: usize>(reasons: [(&str, u64); N]) -> Value {
    let told = reasons.into_iter().filter(|(_, number)| *number > 0);
    Value::Object(told.map(|(name, number)| (name.to_owned(), number.into())).collect())
}
