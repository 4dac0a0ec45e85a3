//! A link: the path of messages to one collector.

use crate::shared::Shared;
use crate::store::Store;
use crate::summary::Reason;

/// A transport to one collector.
pub(crate) trait Link: Send {
    /// Makes the link ready for messages.
    fn open(&mut self, shared: &Shared) -> Opened;

    /// Sends a message.
    fn send(&mut self, message: &[u8], shared: &Shared) -> Result<Delivery, Trouble>;

    /// Everything was sent, for this file or for the run.
    fn close(&mut self, shared: &Shared) -> Delivery;

    /// Returns whether an earlier message was refused. May wait a short time for the answer to the last one.
    fn settle(&mut self, _shared: &Shared) -> Delivery {
        Delivery::Taken
    }

    /// With `true`, a message that cannot be written is dropped at once. Files only.
    fn hurry(&mut self, _on: bool) {}

    /// The file, if it is one.
    fn store(&mut self) -> Option<&mut dyn Store> {
        None
    }

    /// Returns true for a regular file, which can be finished and started again.
    fn is_file(&self) -> bool {
        false
    }

    /// Returns true if collectors may lose templates, so that they are repeated.
    fn repeats_templates(&self) -> bool {
        false
    }

    /// Returns true if there is one session from first to last message, at whose end templates are withdrawn.
    fn is_connection(&self) -> bool {
        false
    }
}

/// The result of [`Link::open`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opened {
    /// The link was open.
    Still,
    /// A new connection or file, which needs templates.
    Anew,
    /// The link cannot be opened any more, or not in time.
    Never(Reason),
}

/// The result of sending a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// The message was accepted.
    Taken,
    /// An earlier message was refused.
    EarlierRefused,
}

/// Why a message was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// The connection is broken; open it again.
    Broken,
    /// The message will never be sent.
    Lost(Reason),
}
