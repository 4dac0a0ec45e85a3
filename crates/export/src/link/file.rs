//! A file: RFC 5655, section 6: "An IPFIX File is an aligned series of IPFIX Messages": just the messages.

use super::{Delivery, Link, Opened, Trouble, Until};
use crate::Reason;
use crate::store::{Retry, Store, Unwritten, persist};

pub(crate) struct FileLink {
    store: Box<dyn Store>,
    fresh: bool,
    /// The reader of stdout has gone.
    left: bool,
}

impl FileLink {
    pub(crate) fn new(store: Box<dyn Store>) -> Self {
        Self { store, fresh: true, left: false }
    }
}

impl Link for FileLink {
    fn open(&mut self, _until: &Until) -> Opened {
        if self.left {
            return Opened::Never(Reason::ReaderGone);
        }
        if std::mem::take(&mut self.fresh) { Opened::Anew } else { Opened::Still }
    }

    fn send(&mut self, message: &[u8], until: &Until) -> Result<Delivery, Trouble> {
        match persist(&mut *self.store, message, until.shared(), Retry::UntilRenewal) {
            Ok(()) => Ok(Delivery::Taken),
            Err(Unwritten::Lost(reason)) => {
                self.left |= reason == Reason::ReaderGone;
                Err(Trouble::Lost(reason))
            }
            Err(Unwritten::Renewal) => {
                self.close(until);
                Err(Trouble::Broken)
            }
        }
    }

    fn close(&mut self, until: &Until) -> Delivery {
        if !self.left {
            match self.store.finish() {
                Ok(()) => self.fresh = true,
                Err(error) => until.fails(&error),
            }
        }
        Delivery::Taken
    }

    fn is_file(&self) -> bool {
        self.store.is_regular()
    }
}
