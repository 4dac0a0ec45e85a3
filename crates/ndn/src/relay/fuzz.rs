//! Entry point for fuzzers: interprets any bytes as frames of programs and neighbours of a relay with
//! small tables.
//!
//! ```text
//!  input:  | (time step in 4 ms | sender and length: 2 | frame) … |
//!
//!  senders 0, 1: programs    2, 3: neighbours with routes    4 to 6: others    7: cleanup
//! ```
//!
//! After each frame, the tables must be within their bounds, the routes must be of open faces, and
//! the counters must cover all frames and packets.

use std::net::UdpSocket;
use std::os::unix::net::UnixStream;
use std::sync::OnceLock;
use std::time::Duration;

use crate::faces::{
    Faces, Handler, Intake, Persistence, Remote, Settings as FaceSettings, close_idle,
};
use crate::forwarder::{Settings, Strategy, Unsolicited};
use crate::packets::NameBuf;
use crate::packets::management::{CHILD_INHERIT, ORIGIN_STATIC};

use crate::forwarder::Parallel;
use crate::forwarder::design::OwnTables;
use crate::relay::core::Core;
use crate::relay::plan::ForwardPlan;
use crate::relay::report::ForwardReport;
use crate::relay::rib::Route;

/// A time step in ns.
const STEP_NS: u64 = 4_000_000;

const PROGRAMS: usize = 2;
const NEIGHBOURS: usize = 5;

/// Runs the script in `bytes`; panics if a table or a counter is wrong.
pub fn fuzz(bytes: &[u8]) {
    let mut run = Run::new();
    let mut rest = bytes;
    while let Some((&[step, high, low], tail)) = rest.split_first_chunk::<3>() {
        let len = usize::from(high & 0x1f) << 8 | usize::from(low);
        let (frame, tail) = tail.split_at(len.min(tail.len()));
        rest = tail;
        run.wait(u64::from(step) * STEP_NS);
        run.receive(usize::from(high >> 5), frame);
        run.check();
    }
    run.end();
}

/// Sockets of the neighbours. They are never read: what the relay sends to them is lost.
fn neighbours() -> &'static [UdpSocket; NEIGHBOURS] {
    static SOCKETS: OnceLock<[UdpSocket; NEIGHBOURS]> = OnceLock::new();
    SOCKETS.get_or_init(|| std::array::from_fn(|_| UdpSocket::bind("127.0.0.1:0").expect("a port")))
}

fn name(text: &str) -> NameBuf {
    text.parse().expect("a name")
}

/// A relay and its programs.
struct Run {
    plan: ForwardPlan,
    faces: Faces,
    intake: Intake,
    core: Core<OwnTables>,
    /// Faces and far ends of the programs.
    programs: Vec<(u32, UnixStream)>,
}

impl Run {
    fn new() -> Self {
        let plan = ForwardPlan {
            settings: Settings {
                pit_capacity: 12,
                pit_per_face: Some(5),
                cs_bytes: 2048,
                dead_nonces: 8,
                lifetime_max_ms: 1000,
                unsolicited: Unsolicited::KeepLocal,
                regions: vec![name("/h")],
                ..Settings::default()
            },
            faces: FaceSettings {
                udp: vec!["127.0.0.1:0".parse().expect("an address")],
                udp_offload: false,
                idle: Duration::from_secs(1),
                faces_max: 6,
                on_demand_max: Some(2),
                ..FaceSettings::default()
            },
            ..ForwardPlan::default()
        };
        let mut faces = Faces::open(plan.faces.clone()).expect("a socket");
        let now_ns = 1_000_000_000;
        let mut core =
            Core::start(&plan, Parallel::new(&plan.settings, plan.workers), now_ns, "fuzz")
                .expect("a core");
        core.set_strategy(&NameBuf::default(), Strategy::BestRoute);
        core.set_strategy(&name("/m"), Strategy::Multicast);
        let mut programs = Vec::new();
        for _ in 0..PROGRAMS {
            let (far, near) = UnixStream::pair().expect("sockets");
            near.set_nonblocking(true).expect("a socket");
            let name = "unix://fuzz".to_owned();
            let face = faces
                .streams
                .add_program(&mut faces.table, name, near.into(), now_ns)
                .expect("a face");
            core.up(&mut faces, face);
            programs.push((face, far));
        }
        for (at, prefixes) in [(0, ["/a", "/m"]), (1, ["/", "/m"])] {
            let remote = Remote::Udp(neighbours()[at].local_addr().expect("an address"));
            let (face, _) = faces.add(&remote, Persistence::Permanent).expect("a face");
            core.up(&mut faces, face);
            for prefix in prefixes {
                let (origin, flags) = (ORIGIN_STATIC, CHILD_INHERIT);
                let route = Route { face, origin, cost: at as u64, flags, ends_ns: None };
                assert!(core.set_route(&mut faces, &name(prefix), route));
            }
        }
        Self { plan, faces, intake: Intake::new(), core, programs }
    }

    fn wait(&mut self, ns: u64) {
        self.core.now_ns += ns;
        self.core.workers.advance(self.core.now_ns);
    }

    /// Handles a frame of a sender, as the main loop does.
    fn receive(&mut self, sender: usize, frame: &[u8]) {
        let Self { faces, intake, core, programs, .. } = self;
        let now_ns = core.now_ns;
        let from = match sender.checked_sub(PROGRAMS) {
            None => Err(programs[sender].0),
            Some(at) => match neighbours().get(at) {
                Some(neighbour) => Ok(neighbour.local_addr().expect("an address")),
                None => {
                    close_idle(faces, now_ns, core);
                    core.expire_routes(faces);
                    return;
                }
            },
        };
        // A program's face may be closed: it has no socket to send on then.
        if from.is_err_and(|face| faces.get(face).is_none()) {
            return;
        }
        intake.frame(faces, now_ns, from, frame, core);
        core.serve(faces);
        core.workers.advance(now_ns);
        core.announcer.announce(&mut core.rib, faces);
    }

    fn check(&self) {
        let Self { plan, faces, core, .. } = self;
        assert!(faces.len() <= plan.faces.faces_max);
        assert!(faces.on_demand() <= faces.table.on_demand_max);
        let (settings, workers) = (&plan.settings, &core.workers);
        assert!(workers.total().pending <= settings.pit_capacity);
        assert!(workers.total().kept_bytes <= settings.cs_bytes);
        let share = settings.pit_per_face.unwrap_or(usize::MAX);
        for (face, _) in faces.iter() {
            assert!(workers.face_use(face).pending as usize <= share);
        }
        for (_, entry) in core.rib.iter() {
            assert!(entry.routes.iter().all(|route| faces.get(route.face).is_some()));
            assert!(entry.next_hops.iter().all(|hop| faces.get(hop.0).is_some()));
        }
        assert_eq!(faces.total().residual(), 0, "{:?}", faces.total());
    }

    /// Everything ends: pending Interests with their lifetime, routes with their faces.
    fn end(mut self) {
        self.wait(2 * self.plan.settings.lifetime_max_ms * 1_000_000);
        assert_eq!(self.core.workers.total().pending, 0);
        let open: Vec<u32> = self.faces.iter().map(|(face, _)| face).collect();
        for face in open {
            assert!(self.faces.close(face));
            self.core.down(&mut self.faces, face);
        }
        assert_eq!((self.faces.len(), self.core.rib.len()), (0, 0));
        self.check();
        let Self { plan, faces, core, intake, .. } = &self;
        let report = ForwardReport::new(plan, faces, core, intake.incomplete(), 0, 0);
        assert_eq!(report.residual(), 0, "{report:?}");
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::forwarder::Drop;
    use crate::packets::management::{ControlParameters, command};
    use crate::packets::{Headers, NackReason, PitToken};
    use crate::packets::{NewData, NewInterest, fragments, write_lp};

    fn step(time: u8, sender: u8, frame: &[u8]) -> Vec<u8> {
        [&[time, sender << 5 | (frame.len() >> 8) as u8, frame.len() as u8][..], frame].concat()
    }

    /// Valid frames: Interests, Data, Nacks and fragments of a few names, and commands.
    fn frames() -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        for (nonce, text) in
            (1..).zip(["/a", "/a/b", "/m/x", "/h/x", "/localhop/x", "/localhost/x"])
        {
            let name = name(text);
            let mut interest = Vec::new();
            let mut new = NewInterest::new(name.as_name(), nonce);
            new.can_be_prefix = nonce % 2 == 0;
            new.lifetime_ms = Some(200 << nonce);
            new.write(&mut interest);
            let mut data = Vec::new();
            NewData { name: name.as_name(), freshness_ms: Some(100), content: &[7; 300] }
                .write(&mut data);
            let token = PitToken::new(&[0, 0, 0, 0, 0, nonce as u8]).unwrap();
            let nack = Headers { nack: Some(NackReason::NoRoute), ..Headers::NONE };
            write_lp(&nack, &interest, frames.push_mut(Vec::new()));
            let with_token = Headers { token, ..Headers::NONE };
            write_lp(&with_token, &data, frames.push_mut(Vec::new()));
            fragments(&with_token, &data, 200, 9, &mut Vec::new(), |piece| {
                frames.push(piece.to_vec());
            });
            frames.extend([interest, data]);
        }
        for (origin, prefix) in [(0, "/a"), (65, "/p"), (65, "/localhost/nlsr")] {
            let parameters = ControlParameters {
                name: Some(name(prefix)),
                origin: Some(origin),
                face: (origin == 0).then_some(257),
                expiration_ms: Some(500),
                flags: Some(1),
                mask: Some(1),
                ..ControlParameters::default()
            };
            for (module, verb) in [
                ("rib", "register"),
                ("rib", "unregister"),
                ("faces", "update"),
                ("faces", "destroy"),
                ("strategy-choice", "unset"),
                ("faces", "list"),
            ] {
                command("localhost", module, verb, &parameters, 1, 2, frames.push_mut(Vec::new()));
            }
        }
        frames
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_frames_of_any_senders_are_counted(
            steps in prop::collection::vec(
                (any::<u8>(), 0..8_u8, any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0..20_u8), 0..60,
            ),
        ) {
            let frames = frames();
            let mut script = Vec::new();
            for (time, sender, at, changed, byte) in steps {
                let mut frame = at.get(&frames).clone();
                // One frame in 20 has a changed byte.
                if byte == 0 {
                    let at = changed.index(frame.len());
                    frame[at] ^= time | 1;
                }
                script.extend(step(time % 40, sender, &frame));
            }
            fuzz(&script);
        }
    }

    /// The script reaches the forwarder, the management and the reassembly.
    #[test]
    fn frames_reach_all_parts() {
        let mut run = Run::new();
        let frames = frames();
        for sender in [4, 2, 0, 3, 5, 6, 1] {
            for frame in &frames {
                run.receive(sender, frame);
                run.check();
            }
        }
        let report = ForwardReport::new(&run.plan, &run.faces, &run.core, 0, 0, 0);
        let counts = report.forwarder;
        assert!(counts.satisfied > 0 && counts.cs_hits > 0 && counts.nacks_in > 0, "{report:?}");
        assert!(counts.dropped(Drop::Scope) > 0 && report.managed() > 0, "{report:?}");
        assert!(report.links.reassembled > 0 && report.evicted > 0, "{report:?}");
        run.end();
    }
}
