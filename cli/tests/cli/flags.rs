//! Tests of flags without an effect, and of values without a meaning.

use crate::common::{office, output_of, ringtap};

/// Flags that would have no effect, with what they need.
#[test]
fn a_flag_without_effect_is_refused() {
    let office = office();
    let office = office.to_str().unwrap();
    for (line, words) in [
        ("monitor -r A --tls-ca ca.pem", "TLS"),
        ("monitor -r A --tls-ca ca.pem --export ipfix+tcp://h", "TLS"),
        ("monitor -r A --tls-cert c --tls-key k", "--web"),
        ("monitor -i lo --dpdk-args x", "--capture dpdk"),
        ("monitor -r A --dpdk-args x", "--read"),
        ("monitor -r A --capture af-xdp", "--read"),
        ("monitor -r A --observation-domain 7", "--export"),
        ("monitor -r A --template-refresh 7", "--export"),
        ("monitor -r A --extract all,none", "none alone"),
        ("monitor -r A --extract none --names list", "omit --extract none"),
        ("monitor -r A --analyses flows --scan-threshold 9", "analysis scans"),
        ("monitor -r A --analyses flows --udp-scan-threshold 9", "analysis udp_scans"),
        ("monitor -r A --alert volume-floor=5", "--alert volume-change="),
        ("monitor -r A --analyses flows,changes", "--alert new-device=1h"),
        ("monitor -r A --timeouts nprobe --timeouts zeek", "two presets"),
        ("monitor -r A --timeouts tcp=1,tcp=2", "tcp= twice"),
        ("monitor -r A --timeouts tcp=1 --timeouts tcp=2", "tcp= twice"),
        ("monitor -r A --top 0.0000001", "use 0 to 100000"),
        ("monitor -r A --memory 18446744073709551615", "at most 256T"),
        ("filter -r A --output nosuch", "--read"),
        ("filter -r A --both-ways", "--read"),
        ("filter -r A --duration 1s", "--read"),
        ("filter -r A --control unix:s", "--read"),
        ("filter -r A --queues 2", "--read"),
        ("filter -r A --capture af-xdp", "--read"),
        ("filter -r A --send af-xdp", "--read"),
        ("measure -r A --duration 1s", "--read"),
        ("measure --profile mix --duration 1s", "--profile"),
        ("measure -r A --capture af-xdp", "--read"),
        ("generate -i x --profile mix --loop 2", "--profile"),
        ("generate -w x --profile /dev/null", "is empty"),
    ] {
        let line = line.replace('A', office);
        let (out, errors, code) = output_of(ringtap().args(line.split(' ')));
        assert!(errors.contains(words), "{line}: {errors}");
        assert_eq!((out.as_str(), code), ("", 2), "{line}: {errors}");
    }
}

#[test]
fn a_plan_with_room_for_few_flows_has_a_warning() {
    let line = "monitor -i lo --memory 64M --write json:a --write csv:b --write zeek:c --dry-run";
    let warning = "leaves room for ";
    let run = |line: &str| output_of(ringtap().args(line.split(' ')));
    let (_, errors, code) = run(line);
    if code == 2 {
        // With many workers it is too little to begin with.
        assert!(errors.contains("use at least"), "{errors}");
        return;
    }
    assert!(errors.starts_with("warning: --memory ") && errors.contains(warning), "{errors}");
    let (_, errors, code) = run(&line.replace("64M", "1G"));
    assert!(code == 0 && !errors.contains(warning), "{errors}");
    let (_, errors, code) = run(&format!("{line} --max-flows 100"));
    assert!(code == 0 && !errors.contains(warning), "{errors}");
}
