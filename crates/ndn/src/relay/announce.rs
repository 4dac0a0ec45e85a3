//! Announces prefixes of local programs to a routing daemon on this machine, as NFD's
//! `readvertise_nlsr` does.
//!
//! ```text
//!  program ─ rib/register, origin 65 ─▶ RIB ─ /localhost/nlsr/rib/register ─▶ routing daemon
//! ```
//!
//! The daemon is the program that registered `/localhost/nlsr`. A daemon that connects later gets
//! all prefixes. Its answers carry the token of our commands; they are counted and need no PIT
//! entry.

use ringtap_base::now_ns;

use crate::faces::{Face, Faces, ReceivedPacket};
use crate::packets::management::{ControlParameters, NewCommand, ORIGIN_CLIENT};
use crate::packets::{Headers, NameBuf, PitToken, kind};

use crate::relay::rib::{Exposed, Rib};

/// The prefix that a routing daemon registers.
const DAEMON: &str = "/localhost/nlsr";

/// The token of our commands. No PIT token of the forwarder is equal: entry numbers are smaller.
const TOKEN: [u8; 6] = [0xff; 6];

/// The routing daemon, and what was announced to it.
#[derive(Debug, Default)]
pub(crate) struct Announcer {
    /// The face of the daemon.
    daemon: Option<u32>,
    /// The version of the RIB that was announced.
    version: u64,
    /// Number of commands that were sent.
    pub(crate) sent: u64,
    /// Number of the daemon's answers.
    pub(crate) acknowledged: u64,
}

impl Announcer {
    /// Sends the daemon the changes since the last call.
    pub(crate) fn announce(&mut self, rib: &mut Rib, faces: &mut Faces) {
        if self.version == rib.version() {
            return;
        }
        self.version = rib.version();
        let changes = rib.take_exposed();
        let Ok(prefix) = DAEMON.parse::<NameBuf>() else { return };
        let is_local = |face: &u32| faces.get(*face).is_some_and(Face::is_local);
        let daemon = rib.get(&prefix).iter().map(|route| route.face).find(is_local);
        let is_new = std::mem::replace(&mut self.daemon, daemon) != daemon;
        let Some(daemon) = daemon else { return };
        let changes = if is_new { all_exposed(rib) } else { changes };
        for change in &changes {
            self.send_change(faces, daemon, change);
        }
        faces.flush();
    }

    fn send_change(&mut self, faces: &mut Faces, daemon: u32, change: &Exposed) {
        let parameters = ControlParameters {
            name: Some(change.prefix.clone()),
            face: Some(change.face.into()),
            cost: change.cost,
            ..ControlParameters::default()
        };
        let verb = if change.cost.is_some() { "register" } else { "unregister" };
        let (mut interest, now_ns) = (Vec::new(), now_ns());
        self.sent += 1;
        // Two commands of one millisecond must differ.
        let nonce = (now_ns as u32).wrapping_add(self.sent as u32);
        let command = NewCommand {
            scope: "localhost",
            application: "nlsr",
            module: "rib",
            verb,
            parameters: &parameters,
            nonce,
            time_ms: now_ns / 1_000_000,
        };
        command.write(&mut interest);
        let token = PitToken::new(&TOKEN).unwrap_or_default();
        faces.send(daemon, &Headers { token, ..Headers::default() }, &interest);
    }
}

/// All routes that a new daemon must announce.
fn all_exposed(rib: &Rib) -> Vec<Exposed> {
    let mut all = Vec::new();
    for (prefix, entry) in rib.iter() {
        let exposed = entry.routes.iter().filter(|route| route.origin == ORIGIN_CLIENT);
        all.extend(exposed.map(|route| Exposed {
            prefix: prefix.clone(),
            face: route.face,
            cost: Some(route.cost),
        }));
    }
    all
}

/// Whether a packet is a daemon's answer to a command of [`Announcer::announce`].
pub(crate) fn is_answer(faces: &Faces, received: &ReceivedPacket<'_>) -> bool {
    received.headers.token.as_bytes() == TOKEN
        && received.headers.nack.is_none()
        && received.packet.first().is_some_and(|&first| u32::from(first) == kind::DATA)
        && faces.get(received.face).is_some_and(Face::is_local)
}
