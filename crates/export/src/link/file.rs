//! A file: RFC 5655, section 6: "An IPFIX File is an aligned series of IPFIX Messages": just the messages.

use super::{Delivery, Link, Opened, Trouble, Until};
use crate::Reason;
use crate::store::{Retry, Store, Unwritten, persist, write_once};

pub(crate) struct FileLink {
    store: Box<dyn Store>,
    fresh: bool,
    /// A message is tried once.
    hurried: bool,
    reader_gone: bool,
}

impl FileLink {
    pub(crate) fn new(store: Box<dyn Store>) -> Self {
        Self { store, fresh: true, hurried: false, reader_gone: false }
    }
}

impl Link for FileLink {
    fn open(&mut self, _until: &Until) -> Opened {
        if self.reader_gone {
            return Opened::Never(Reason::ReaderGone);
        }
        if std::mem::take(&mut self.fresh) { Opened::Anew } else { Opened::Still }
    }

    fn send(&mut self, message: &[u8], until: &Until) -> Result<Delivery, Trouble> {
        let (store, shared) = (&mut *self.store, until.shared());
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
                self.close(until);
                Err(Trouble::Broken)
            }
        }
    }

    fn close(&mut self, until: &Until) -> Delivery {
        if !self.reader_gone {
            match self.store.finish() {
                Ok(()) => self.fresh = true,
                Err(error) => until.fails(&error),
            }
        }
        Delivery::Taken
    }

    fn hurry(&mut self, on: bool) {
        self.hurried = on;
    }

    fn is_file(&self) -> bool {
        self.store.is_regular()
    }
}
