//! Tests of `doctor`, which reports facts about the machine.

use serde_json::Value;

use crate::common::{output_of, ringtap};

#[test]
fn text_and_json_have_the_same_facts() {
    let (text, errors, code) = output_of(ringtap().arg("doctor"));
    assert_eq!((errors.as_str(), code), ("", 0));
    let (json, _, _) = output_of(ringtap().args(["doctor", "--report", "json"]));
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
