//! What an output is before it starts.

use std::fmt::{Debug, Display};
use std::io;
use std::path::Path;

use crate::cut::Cut;
use crate::launch::Ready;
use crate::settings::Settings;
use crate::summary::Items;

/// An output as given by the user.
pub(crate) trait Place: Debug + Display {
    /// The name in messages.
    fn name(&self) -> String {
        self.to_string()
    }

    /// The path, if it is a file; `-` is standard output.
    fn path(&self) -> Option<&Path> {
        None
    }

    /// Whether a reader takes its records while the run goes on.
    fn is_read(&self) -> bool {
        false
    }

    /// Whether it is a file that has its name while it is written.
    fn is_open(&self) -> bool {
        false
    }

    /// Where a file can be cut whose process ended early; `None` if it is appended to in place, or not a file.
    fn cut(&self) -> Option<Cut> {
        None
    }

    /// Returns true if its connections are encrypted.
    fn is_encrypted(&self) -> bool {
        false
    }

    /// Files of its own that it reads when it begins, besides those of all outputs.
    fn reads(&self) -> Vec<&Path> {
        Vec::new()
    }

    /// Bytes of memory besides the blocks.
    fn fixed_bytes(&self) -> u64 {
        0
    }

    /// What it takes.
    fn items(&self) -> Items {
        Items::Flows
    }

    /// Whether its records say which part of a flow they are, so that a part without packets has a meaning.
    fn joins_parts(&self) -> bool {
        true
    }

    /// Resolves hosts, reads certificates and opens sockets, but no files. Returns how it starts.
    ///
    /// # Errors
    /// Those of the outside, and settings that the output cannot represent.
    fn prepare(&self, settings: &Settings) -> io::Result<Ready>;
}
