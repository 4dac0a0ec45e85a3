//! The link to a file: RFC 5655, section 6: "An IPFIX File is an aligned series of IPFIX Messages": only the messages.

use crate::shared::Shared;
use crate::store::{Retry, Store, Unwritten, persist, write_once};
use crate::summary::Reason;
use crate::transports::{Delivery, Link, Opened, Trouble};

pub(crate) struct FileLink {
    store: Box<dyn Store>,
    fresh: bool,
    /// Each message is tried once.
    hurried: bool,
    reader_gone: bool,
}

impl FileLink {
    pub(crate) fn new(store: Box<dyn Store>) -> Self {
        Self { store, fresh: true, hurried: false, reader_gone: false }
    }
}

impl Link for FileLink {
    fn open(&mut self, _shared: &Shared) -> Opened {
        if self.reader_gone {
            return Opened::Never(Reason::ReaderGone);
        }
        if std::mem::take(&mut self.fresh) { Opened::Anew } else { Opened::Still }
    }

    fn send(&mut self, message: &[u8], shared: &Shared) -> Result<Delivery, Trouble> {
        let (store, shared) = (&mut *self.store, shared);
        let written = if self.hurried {
            write_once(store, message, shared).map_err(Unwritten::Lost)
        } else {
            persist(store, message, shared, Retry::UntilRenewal)
        };
        match written {
            Ok(()) => Ok(Delivery::Taken),
            Err(Unwritten::Lost(reason)) => {
                self.reader_gone |= reason == Reason::ReaderGone;
                Err(Trouble::Lost(reason))
            }
            Err(Unwritten::Renewal) => {
                self.close(shared);
                Err(Trouble::Broken)
            }
        }
    }

    fn close(&mut self, shared: &Shared) -> Delivery {
        if !self.reader_gone {
            match self.store.finish() {
                Ok(()) => self.fresh = true,
                Err(error) => shared.fails(&error),
            }
        }
        Delivery::Taken
    }

    fn hurry(&mut self, on: bool) {
        self.hurried = on;
    }

    fn store(&mut self) -> Option<&mut dyn Store> {
        Some(&mut *self.store)
    }

    fn is_file(&self) -> bool {
        self.store.is_regular()
    }
}
