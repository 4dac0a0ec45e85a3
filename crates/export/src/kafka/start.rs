//! The start of a topic.

use std::io;
use std::path::{Path, PathBuf};

use super::producer::HELD_MAX;
use super::records::{RecordEncoder, TopicSink};
use super::session::Access;
use super::states::{PartEncoder, PartSender, PartSink};
use crate::launch::{Launch, Ready, Started};
use crate::place::Place;
use crate::settings::Settings;
use crate::shared::WaitPolicy;
use crate::summary::Items;
use crate::topic::{Contents, KafkaTopic};

/// Memory of the writer besides the blocks, in bytes: messages without an answer, the same as requests that the system
/// has not taken yet, and answers.
const WRITER_BYTES: usize = 2 * HELD_MAX + (1 << 20);

impl Place for KafkaTopic {
    fn is_encrypted(&self) -> bool {
        self.tls
    }

    fn reads(&self) -> Vec<&Path> {
        let password = self.login.as_ref().map(|login| &login.password_file);
        self.authorities.iter().chain(password).map(PathBuf::as_path).collect()
    }

    fn fixed_bytes(&self) -> u64 {
        WRITER_BYTES as u64
    }

    fn joins_parts(&self) -> bool {
        self.contents != Contents::FlowMessages
    }

    fn items(&self) -> Items {
        if self.contents == Contents::States { Items::States } else { Items::Flows }
    }

    fn prepare(&self, settings: &Settings) -> io::Result<Ready> {
        let (access, contents) = (Access::new(self, settings)?, self.contents);
        Ok(Box::new(move |launch| match contents {
            Contents::States => states(access, launch),
            Contents::Json | Contents::FlowMessages => records(access, contents, launch),
        }))
    }
}

fn records(access: Access, contents: Contents, launch: &mut Launch<'_>) -> io::Result<Started> {
    let (settings, sampler) = (launch.settings, access.sampler());
    let sink = TopicSink::new(access, contents, settings)?;
    let encoder = || RecordEncoder::new(contents, settings, sampler);
    launch.records(WaitPolicy::Collector, encoder, sink)
}

fn states(access: Access, launch: &mut Launch<'_>) -> io::Result<Started> {
    let Settings { buffer_bytes, live, .. } = *launch.settings;
    let shared = launch.shared(WaitPolicy::Collector, Items::States);
    let sink = PartSink::new(access)?;
    let (own, started) = launch.single(&shared, PartSender::ROOM, PartEncoder, sink)?;
    launch.sinks.states.push(Box::new(PartSender::new(Box::new(own), shared, buffer_bytes, live)));
    Ok(started)
}
