//! `--cut`: the parts of flows in each format.

use std::collections::HashMap;
use std::fs;

use serde_json::Value;

use crate::common::{json, office, ringtap};

/// The lines of a file, without those that begin with `#`.
fn lines(path: &std::path::Path) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap();
    text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
}

#[test]
fn each_format_has_the_parts_that_it_can_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let mut command = ringtap();
    command.args(["monitor", "-q", "-r"]).arg(office()).args(["--cut", "1s", "--report", "json"]);
    for format in ["json", "csv", "eve", "zeek"] {
        command.arg(format!("--write={format}:{}", path(format).display()));
    }
    let output = command.arg("--digest").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let parts: Vec<Value> =
        lines(&path("json")).iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(report["flows"]["parts"], parts.len());
    assert!(report["flows"]["records"].as_u64().unwrap() < parts.len() as u64);

    // A flow has one identifier, and numbers without gaps.
    let mut flows: HashMap<u64, Vec<&Value>> = HashMap::new();
    for part in &parts {
        flows.entry(part["flowId"].as_u64().unwrap()).or_default().push(part);
    }
    assert_eq!(report["flows"]["records"], flows.len());
    for parts in flows.values_mut() {
        parts.sort_by_key(|part| part["flowPart"].as_u64());
        for (number, part) in parts.iter().enumerate() {
            assert_eq!(part["flowPart"], number);
            assert_eq!(part["communityId"], parts[0]["communityId"]);
            let [first, last] = ["flowStartMilliseconds", "flowEndMilliseconds"]
                .map(|time| part[time].as_u64().unwrap() / 1000);
            assert_eq!(first, last);
        }
    }
    let empty =
        |part: &&Value| part["packetDeltaCount"] == 0 && part["reversePacketDeltaCount"] == 0;
    let silent = parts.iter().filter(empty).count();
    assert!(silent > 0, "no part without packets");

    assert_eq!(lines(&path("csv")).len(), parts.len() + 1);
    // These have no field for the number of a part.
    for format in ["eve", "zeek"] {
        assert_eq!(lines(&path(format)).len(), parts.len() - silent, "{format}");
    }
    let eve: Value = serde_json::from_str(&lines(&path("eve"))[0]).unwrap();
    assert!(flows.contains_key(&eve["flow_id"].as_u64().unwrap()));

    let whole = json(&office(), &["--digest"]);
    assert_eq!(whole["digest"], report["digest"]);
}

#[test]
fn cuts_need_records_and_whole_seconds() {
    for (flags, error) in [
        (&["--cut", "60s"][..], "--cut has no effect: it needs an output for flow records"),
        (&["--cut", "1500ms", "--write", "json:-"], "use whole seconds, as in 60s"),
    ] {
        let output = ringtap().args(["monitor", "-r"]).arg(office()).args(flags).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(errors.contains(error), "{errors}");
    }
}
