//! What a manifest says about a file, computed from the file.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use ringtap_export::sums::Sums;
use sha2::{Digest as _, Sha256};

use crate::arrived;
use crate::layout::Kind;
use crate::manifest::hex;

/// Bytes read at a time.
const PIECE: usize = 256 << 10;

/// A file as it is.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) rows: u64,
    pub(crate) octets: u64,
    pub(crate) sha256: String,
    /// Of flow records, by the interval of the flows' ends.
    pub(crate) sums: Option<Sums>,
}

/// Reads a file.
///
/// # Errors
/// That of the system; flow records that cannot be read.
pub(crate) fn measure(kind: Kind, path: &Path, interval_s: u64) -> io::Result<Measured> {
    let mut file = File::open(path)?;
    let (mut hash, mut octets, mut lines) = (Sha256::new(), 0, 0);
    let mut piece = vec![0; PIECE];
    loop {
        let len = match file.read(&mut piece) {
            Ok(0) => break,
            Ok(len) => len,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        hash.update(&piece[..len]);
        octets += len as u64;
        lines += piece[..len].iter().filter(|&&byte| byte == b'\n').count() as u64;
    }
    let sha256 = hex(&hash.finalize());
    if kind != Kind::Flows {
        return Ok(Measured { rows: lines, octets, sha256, sums: None });
    }
    let sums = sums(path, interval_s)?;
    Ok(Measured { rows: sums.total().rows, octets, sha256, sums: Some(sums) })
}

/// The sums of a file of flow records.
fn sums(path: &Path, interval_s: u64) -> io::Result<Sums> {
    let mut sums = Sums::default();
    let counts = arrived::read(path, &mut |row| sums.add(&row.sum, interval_s));
    match counts.map_err(io::Error::other)?.first_invalid {
        Some(invalid) => Err(io::Error::new(io::ErrorKind::InvalidData, invalid.to_string())),
        None => Ok(sums),
    }
}
