//! Tests of input files: compressed, truncated, missing, of other formats, on stdin.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::common::{json, office, output_of, ringtap};

fn place(folder: &TempDir, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.path().join(name);
    fs::write(&path, bytes).unwrap();
    path
}

fn digest(file: &Path) -> String {
    json(file, &["--digest"])["digest"].as_str().unwrap().into()
}

#[test]
fn a_compressed_capture_has_the_same_digest() {
    let folder = tempfile::tempdir().unwrap();
    let plain = fs::read(office()).unwrap();
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gz.write_all(&plain).unwrap();
    let gz = place(&folder, "one.pcap", &gz.finish().unwrap());
    let zst = place(&folder, "two", &zstd::encode_all(plain.as_slice(), 1).unwrap());
    let expected = digest(&office());
    assert_eq!((digest(&gz), digest(&zst)), (expected.clone(), expected));
}

#[test]
fn a_capture_on_stdin_has_the_same_digest() {
    let expected = digest(&office());
    let mut command = ringtap();
    command.args(["monitor", "-q", "--digest", "-r", "-"]).write_stdin(fs::read(office()).unwrap());
    let (text, errors, code) = output_of(&mut command);
    assert_eq!((errors.as_str(), code), ("", 0));
    assert!(text.contains(&format!("digest {expected}\n")), "{text}");
}

#[test]
fn a_truncated_file_is_read_up_to_its_last_whole_packet() {
    let folder = tempfile::tempdir().unwrap();
    let whole = fs::read(office()).unwrap();
    let cut = place(&folder, "cut.pcap", &whole[..whole.len() - 10]);
    let mut command = ringtap();
    command.args(["monitor", "-q", "--report", "json", "-r"]).arg(cut);
    let (report, errors, code) = output_of(&mut command);
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    assert_eq!((&report["packets"]["received"], code), (&8_191.into(), 0), "{errors}");
    assert!(errors.starts_with("warning: ") && errors.contains("after packet 8191"), "{errors}");
}

#[test]
fn unreadable_files_are_reported_and_the_others_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let picture = place(&folder, "picture.png", b"\x89PNG\r\n\x1a\n0123456789abcdef");
    let missing = folder.path().join("missing.pcap");
    let mut command = ringtap();
    command.args(["monitor", "-q", "--report", "json", "-r"]);
    let (report, errors, code) = output_of(command.arg(picture).arg(missing).arg(office()));
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    assert_eq!((&report["packets"]["received"], code), (&8_192.into(), 1));
    assert!(errors.contains("picture.png: not a capture file (magic 0x89504e47)"), "{errors}");
    assert!(errors.contains("missing.pcap: no such file"), "{errors}");
    assert_eq!(report["notices"].as_array().unwrap().len(), 2);
}

#[test]
fn several_files_are_read_in_order() {
    let twice = ringtap()
        .args(["monitor", "-q", "--report", "json", "-r"])
        .arg(office())
        .arg("-r")
        .arg(office())
        .output()
        .unwrap();
    let report: serde_json::Value = serde_json::from_slice(&twice.stdout).unwrap();
    assert_eq!(report["packets"]["received"], 16_384);
    assert_eq!(report["conversations"]["tcp"], 1_881);
}

#[test]
fn a_link_type_that_is_not_decoded_gives_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    let mut bytes = fs::read(office()).unwrap();
    bytes[20..24].copy_from_slice(&147_u32.to_le_bytes());
    let file = place(&folder, "user.pcap", &bytes);
    let mut command = ringtap();
    command.args(["monitor", "-q", "--report", "json", "-r"]).arg(file);
    let (report, errors, code) = output_of(&mut command);
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    let warning = "8192 packets have the link type 147 (USER0), which is not decoded";
    assert!(errors.starts_with(&format!("warning: {warning}")), "{errors}");
    assert!(report["notices"][0].as_str().unwrap().starts_with(warning), "{report}");
    assert_eq!((&report["packets"]["non_ip"], code), (&8_192.into(), 0));
}
