//! A file: RFC 5655, section 6: "An IPFIX File is an aligned series of IPFIX Messages": just the messages.

use std::io::{self, ErrorKind};

use super::{Delivery, Link, Opened, Trouble, Until};
use crate::Reason;

/// Where a file's octets go; what it is called, and when, is its owner's matter.
pub trait Store: Send {
    /// Writes all of `octets`.
    ///
    /// # Errors
    /// What the system says. Nothing is written afterwards.
    fn write(&mut self, octets: &[u8]) -> io::Result<()>;

    /// The file is whole.
    ///
    /// # Errors
    /// What the system says.
    fn finish(&mut self) -> io::Result<()>;

    /// The file is whole, and another one begins.
    ///
    /// # Errors
    /// What the system says.
    fn renew(&mut self) -> io::Result<()>;

    /// Whether writing may wait for a reader, as with a pipe: then it is not done where records come from.
    fn may_wait(&self) -> bool;

    /// Whether a reader may go before the end without that being a failure.
    fn may_be_left(&self) -> bool;
}

pub(crate) struct FileLink {
    store: Box<dyn Store>,
    fresh: bool,
    broken: bool,
    trouble: Option<io::Error>,
}

impl FileLink {
    pub(crate) fn new(store: Box<dyn Store>) -> Self {
        Self { store, fresh: true, broken: false, trouble: None }
    }

    fn note(&mut self, error: io::Error) {
        self.broken = true;
        if error.kind() != ErrorKind::BrokenPipe || !self.store.may_be_left() {
            self.trouble = Some(error);
        }
    }
}

impl Link for FileLink {
    fn open(&mut self, _until: &mut Until) -> Opened {
        if self.broken {
            return Opened::Never(Reason::Failed);
        }
        if std::mem::take(&mut self.fresh) { Opened::Anew } else { Opened::Still }
    }

    fn send(&mut self, message: &[u8], _until: &mut Until) -> Result<Delivery, Trouble> {
        match self.store.write(message) {
            Ok(()) => Ok(Delivery::Taken),
            Err(error) => {
                self.note(error);
                Err(Trouble::Lost(Reason::Failed))
            }
        }
    }

    fn close(&mut self, _until: &mut Until) -> Delivery {
        if !self.broken
            && let Err(error) = self.store.finish()
        {
            self.note(error);
        }
        Delivery::Taken
    }

    fn renew(&mut self) {
        if !self.broken {
            match self.store.renew() {
                Ok(()) => self.fresh = true,
                Err(error) => self.note(error),
            }
        }
    }

    fn trouble(&self) -> Option<(String, bool)> {
        self.trouble.as_ref().map(|error| (error.to_string(), true))
    }
}
