//! A file of a store, and its successors: with its length, its hash and its rows, for the manifest.

use std::io;
use std::sync::Arc;

use ringtap_export::Store as Target;
use ringtap_export::sums::Sums;
use ringtap_program::atomic_file::Existing;
use ringtap_program::retention::Retention;
use sha2::{Digest as _, Sha256};

use crate::layout::Kind;
use crate::manifest::{FileLine, hex};
use crate::record_file::{FileRules, RecordFile};
use crate::store::{Store, now};

/// Seconds after its period until a file is finished that gets no more lines: those of the period may be late.
const GRACE_S: u64 = 10;

/// Files of a kind, one after another.
pub struct StoreFile {
    store: Arc<Store>,
    kind: Kind,
    file: RecordFile,
    /// Of the current file.
    hash: Sha256,
    octets: u64,
    rows: u64,
    sums: Option<Sums>,
    /// The begin of its period, in seconds since 1970.
    period: Option<u64>,
    /// A complete file that the manifest does not have yet.
    unlisted: Option<FileLine>,
}

impl StoreFile {
    /// Opens the first file of this kind.
    ///
    /// # Errors
    /// That of the system.
    pub fn open(store: Arc<Store>, kind: Kind) -> io::Result<Self> {
        let names = store.file_names(kind)?;
        let rotate_ns = Some(store.layout.rotate_s * 1_000_000_000);
        let (existing, keep) = (Existing::Next, Retention::default());
        let file =
            RecordFile::open(names, FileRules { existing, rotate_ns, keep, keep_free: None })?;
        let (hash, octets, rows, sums) = (Sha256::new(), 0, 0, None);
        let (period, unlisted) = (None, None);
        Ok(Self { store, kind, file, hash, octets, rows, sums, period, unlisted })
    }

    /// Lists the file before, if that failed.
    fn list(&mut self) -> io::Result<()> {
        if let Some(line) = &self.unlisted {
            self.store.list(line.clone())?;
            self.unlisted = None;
        }
        Ok(())
    }
}

impl Target for StoreFile {
    fn write(&mut self, octets: &[u8]) -> io::Result<()> {
        self.list()?;
        self.file.write(octets)?;
        // What is written is for the next process, if this one ends early.
        self.file.keep_part();
        self.hash.update(octets);
        self.octets += octets.len() as u64;
        if self.kind != Kind::Flows {
            self.rows += octets.iter().filter(|&&byte| byte == b'\n').count() as u64;
        }
        Ok(())
    }

    fn rows(&mut self, sums: &Sums) {
        self.rows += sums.total().rows;
        self.sums.get_or_insert_default().merge(sums);
    }

    fn rewrite(&mut self, octets: &[u8]) -> io::Result<()> {
        self.file.rewrite(octets)?;
        self.hash = Sha256::new_with_prefix(octets);
        self.octets = octets.len() as u64;
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        self.list()?;
        // A run without records has no file.
        if self.octets == 0 {
            return Ok(());
        }
        self.file.finish()?;
        let root = &self.store.layout.root;
        let path = self.file.last().ok_or(io::ErrorKind::NotFound)?;
        let file = path.strip_prefix(root).unwrap_or(path).display().to_string();
        self.unlisted = Some(FileLine {
            of: self.kind,
            file,
            rows: std::mem::take(&mut self.rows),
            octets: std::mem::take(&mut self.octets),
            sha256: hex(&self.hash.finalize_reset()),
            sums: self.sums.take(),
            interval: self.store.layout.rotate_s,
            cut_octets: None,
            so_far: None,
        });
        self.list()
    }

    fn begins(&mut self, seconds: u64) {
        // Alerts and totals. Others are finished before, or cannot be.
        if self.octets > 0 && matches!(self.kind, Kind::Alerts | Kind::Totals) {
            // If that fails, the next line is in the same file.
            let _ = self.finish();
        }
        self.period = Some(seconds);
        self.file.begins(seconds);
    }

    fn tick(&mut self) -> io::Result<()> {
        self.store.beat();
        self.list()?;
        // Others end by the marks of the run.
        if !matches!(self.kind, Kind::Alerts | Kind::Totals) {
            return Ok(());
        }
        let end = self.period.map(|begin| begin + self.store.layout.rotate_s + GRACE_S);
        if self.store.is_live() && self.octets > 0 && end.is_some_and(|end| now() > end) {
            self.finish()?;
        }
        Ok(())
    }

    fn close(&mut self) -> io::Result<()> {
        self.finish()
    }

    fn removed(&self) -> u64 {
        self.store.removed()
    }

    fn is_regular(&self) -> bool {
        true
    }

    fn may_abandon(&self) -> bool {
        false
    }
}
