//! What was written is read back with one sum, whatever its format.

use std::path::Path;

use ringtap_export::sums::Sum;
use ringtap_store::arrived;

use crate::common::{captures, json};

/// The sum of the records in a file or folder, all of which are valid; and whether they have all fields.
pub(crate) fn sum(path: &Path) -> (Sum, bool) {
    let (mut sum, mut is_whole) = (Sum::default(), true);
    let counts = arrived::read(path, &mut |arrived| {
        sum += (&arrived.sum).into();
        is_whole &= arrived.is_whole;
    });
    let counts = counts.unwrap();
    assert_eq!((counts.rows, counts.invalid, counts.skipped), (sum.rows, 0, 0), "{counts:?}");
    (sum, is_whole)
}

#[test]
fn records_of_captures_have_one_sum_in_all_formats() {
    let folder = tempfile::tempdir().unwrap();
    let mut flows = 0;
    for capture in captures() {
        let formats: &[&str] = &[
            "json",
            "csv",
            #[cfg(feature = "parquet")]
            "parquet",
        ];
        // The extension is not that of the format.
        let paths = formats.iter().map(|format| folder.path().join(format!("{format}.flows")));
        let paths: Vec<_> = paths.collect();
        let writes = formats.iter().zip(&paths);
        let writes: Vec<_> =
            writes.map(|(format, path)| format!("{format}:{}", path.display())).collect();
        let mut flags =
            vec!["--force", "--extract", "all", "--analyses", "all,tcp,statistics", "--cut", "60s"];
        writes.iter().for_each(|write| flags.extend(["--write", write]));
        let report = json(&capture, &flags);
        let (expected, is_whole) = sum(&paths[0]);
        assert!(is_whole);
        for path in &paths[1..] {
            assert_eq!(sum(path), (expected, true), "{}: {}", capture.display(), path.display());
        }
        flows += expected.rows;
        assert_eq!(report["write"][0]["records"], expected.rows, "{}", capture.display());
    }
    assert!(flows > 0);
}
