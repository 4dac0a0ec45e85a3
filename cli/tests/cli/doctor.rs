//! The doctor looks and tells.

use serde_json::Value;

use crate::common::{ringtap, said};

#[test]
fn it_tells_the_same_in_text_and_json() {
    let (text, errors, code) = said(ringtap().arg("doctor"));
    assert_eq!((errors.as_str(), code), ("", 0));
    let (json, _, _) = said(ringtap().args(["doctor", "--report", "json"]));
    let json: Value = serde_json::from_str(&json).unwrap();
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    assert_eq!(json["kernel"], kernel.trim());
    let cores = &json["cores"];
    assert!(
        cores["usable"].as_u64().unwrap() >= 1
            && cores["usable"].as_u64() <= cores["online"].as_u64()
    );
    assert!(json["memory"]["total_bytes"].as_u64().unwrap() > 1 << 26);
    for section in ["Cores", "Memory", "System", "Advice", kernel.trim()] {
        assert!(text.contains(section), "{section}: {text}");
    }
    for nic in json["interfaces"].as_array().unwrap() {
        assert!(text.contains(nic["name"].as_str().unwrap()), "{nic}");
    }
    for advice in json["advice"].as_array().unwrap() {
        assert!(text.contains(advice.as_str().unwrap()), "{advice}");
    }
}
