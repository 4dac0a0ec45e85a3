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
fn files_that_are_no_captures_are_reported_and_the_others_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let picture = place(&folder, "picture.png", b"\x89PNG\r\n\x1a\n0123456789abcdef");
    let empty = place(&folder, "empty.pcap", b"");
    let mut command = ringtap();
    command.args(["monitor", "-q", "--report", "json", "-r"]);
    let (report, errors, code) = output_of(command.arg(picture).arg(empty).arg(office()));
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    assert_eq!((&report["packets"]["received"], code), (&8_192.into(), 1));
    assert!(errors.contains("picture.png: not a capture file (magic 0x89504e47)"), "{errors}");
    assert!(errors.contains("empty.pcap: the file is empty"), "{errors}");
    assert_eq!(report["notices"].as_array().unwrap().len(), 2);
}

/// All commands that read files. They open all of them first.
#[test]
fn with_an_input_that_cannot_be_opened_nothing_is_read_or_written() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("folder")).unwrap();
    std::os::unix::fs::symlink("nowhere", folder.path().join("link")).unwrap();
    let office = office();
    let office = office.to_str().unwrap();
    fs::write(folder.path().join("old"), "kept").unwrap();
    let wrong = ["missing", "folder", "link"];
    for (before, after) in [
        (
            &["monitor", "-r", office][..],
            &["--force", "--write", "json:old", "--events", "json:new"][..],
        ),
        (&["monitor", "-r", office], &["--force", "--state", "old", "--report", "json"]),
        (&["filter", "-r", office], &["--force", "-w", "old", "--drops", "new"]),
        (&["measure", "-r", office], &["--force", "--write", "sketch:old"]),
        (&["measure", "-r", office], &["--force", "--rate", "1M", "--write", "sketch:old"]),
        (&["measure", "-r", office], &["--advise"]),
        (&["merge", office], &["--force", "--write", "sketch:old"]),
    ] {
        let mut command = ringtap();
        command.current_dir(&folder).args(before);
        // In merge, a folder stands for the states in it.
        let wrong: Vec<_> =
            wrong.iter().filter(|one| before[0] != "merge" || **one != "folder").collect();
        let (out, errors, code) = output_of(command.args(&wrong).args(after));
        assert_eq!((out.as_str(), code), ("", 1), "{before:?}: {errors}");
        for one in wrong {
            let why = if *one == "folder" { "is a directory" } else { "no such file" };
            assert!(errors.contains(&format!("opening {one}: {why}")), "{before:?}: {errors}");
        }
        assert_eq!(errors.lines().count(), 1, "{before:?}: {errors}");
        assert_eq!(fs::read_to_string(folder.path().join("old")).unwrap(), "kept", "{before:?}");
        assert!(!folder.path().join("new").exists(), "{before:?}");
    }
}

#[test]
fn a_filter_expression_among_the_files_gets_a_hint() {
    let office = office();
    let office = office.to_str().unwrap();
    for (words, expression) in [
        (&["udp", "port", "53"][..], Some("udp port 53")),
        (&["missing.pcap", "tcp", "or", "udp"], Some("tcp or udp")),
        (&["not tcp"], Some("not tcp")),
        (&["(udp)"], Some("(udp)")),
        (&["missing.pcap"], None),
        (&["udp.pcap"], None),
        (&["port", "missing.pcap"], None),
    ] {
        let mut command = ringtap();
        let (out, errors, code) = output_of(command.args(["monitor", "-r", office]).args(words));
        assert_eq!((out.as_str(), code), ("", 1), "{errors}");
        let hint = "put a filter expression after --: ringtap monitor -r ";
        assert_eq!(errors.contains(hint), expression.is_some(), "{words:?}: {errors}");
        if let Some(expression) = expression {
            assert!(errors.ends_with(&format!(" -- {expression}\n")), "{errors}");
        }
    }
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
