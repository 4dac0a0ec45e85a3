//! The key of the anonymisation, from a file: 32 bytes, or 64 hexadecimal digits.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Bytes of a key.
const BYTES: usize = 32;
/// Most bytes of a file: digits and white space.
const MOST: u64 = 256;
/// Others may read the file.
const OTHERS: u32 = 0o004;

/// Why a key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum InvalidKey {
    /// The file cannot be read.
    #[error(transparent)]
    Read(#[from] io::Error),
    /// Its permissions are too wide.
    #[error("every user can read it: chmod 600 {0}")]
    Readable(String),
    /// The file has another size.
    #[error("not a key: use 32 bytes or 64 hexadecimal digits, as from head -c 32 /dev/urandom")]
    Size,
}

/// Reads a key.
///
/// # Errors
/// [`InvalidKey`].
pub fn read_key(path: &Path) -> Result<[u8; BYTES], InvalidKey> {
    let file = File::open(path)?;
    let about = file.metadata()?;
    if about.is_file() && about.mode() & OTHERS != 0 {
        return Err(InvalidKey::Readable(path.display().to_string()));
    }
    let mut bytes = Vec::with_capacity(MOST as usize);
    file.take(MOST).read_to_end(&mut bytes)?;
    parse(&bytes).ok_or(InvalidKey::Size)
}

fn parse(bytes: &[u8]) -> Option<[u8; BYTES]> {
    if let Ok(key) = bytes.try_into() {
        return Some(key);
    }
    let digits = bytes.trim_ascii();
    let mut key = [0; BYTES];
    if digits.len() != 2 * BYTES {
        return None;
    }
    for (byte, pair) in key.iter_mut().zip(digits.chunks(2)) {
        let value = |digit: u8| char::from(digit).to_digit(16);
        *byte = (value(pair[0])? << 4 | value(pair[1])?) as u8;
    }
    Some(key)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_key_is_bytes_or_digits() {
        let mut key = [0xa5; BYTES];
        key[31] = 0x0f;
        assert_eq!(parse(&key), Some(key));
        let digits = "a5".repeat(31) + "0F\n";
        assert_eq!(parse(digits.as_bytes()), Some(key));
        for wrong in ["", "a5", &"zz".repeat(32), &"a5".repeat(33)] {
            assert_eq!(parse(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn a_key_that_all_can_read_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        std::fs::write(&path, [1; BYTES]).unwrap();
        for (mode, usable) in [(0o600, true), (0o640, true), (0o644, false)] {
            std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
            assert_eq!(read_key(&path).is_ok(), usable, "{mode:o}");
        }
        assert!(matches!(
            read_key(folder.path()),
            Err(InvalidKey::Read(_) | InvalidKey::Readable(_))
        ));
    }
}
