//! Captures while they are written.

use std::io::{self, Write};

use ringtap_io::capture::{MAX_CAPTURED_LEN, PcapWriter};
use ringtap_skeleton::RunError;
use ringtap_wire::LinkType;

/// Why a run ended early.
#[derive(Debug, thiserror::Error)]
pub enum FilterError {
    /// A thread failed.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The output could not be written.
    #[error("writing {what}: {error}")]
    Write {
        /// Which output.
        what: &'static str,
        /// The error.
        #[source]
        error: io::Error,
    },
}

/// A capture while it is written. Its header has the link type, so it begins with the first packet.
pub(super) struct Sink {
    what: &'static str,
    state: State,
}

enum State {
    New(Box<dyn Write + Send>),
    Open(PcapWriter<Box<dyn Write + Send>>),
}

impl Sink {
    pub(super) fn new(out: Box<dyn Write + Send>, what: &'static str) -> Self {
        Self { what, state: State::New(out) }
    }

    pub(super) fn write(
        &mut self,
        link: LinkType,
        ts_ns: u64,
        original_len: u32,
        data: &[u8],
    ) -> Result<(), FilterError> {
        let what = self.what;
        let written = self.open(link).write(ts_ns, original_len, data);
        written.map_err(|error| FilterError::Write { what, error })
    }

    /// Flushes; also writes the header of a capture without packets.
    pub(super) fn close(&mut self, link: LinkType) -> Result<(), FilterError> {
        let what = self.what;
        self.open(link).flush().map_err(|error| FilterError::Write { what, error })
    }

    fn open(&mut self, link: LinkType) -> &mut PcapWriter<Box<dyn Write + Send>> {
        if let State::New(out) = &mut self.state {
            let out = std::mem::replace(out, Box::new(io::sink()));
            self.state = State::Open(PcapWriter::new(out, link, MAX_CAPTURED_LEN));
        }
        match &mut self.state {
            State::Open(writer) => writer,
            State::New(_) => unreachable!("it was opened above"),
        }
    }
}
