//! All flags of all commands: values without a meaning, flags that are given twice, and flags without an effect. What is
//! special is in [`LINES`], and in the lists of `testkit/src/flag_table.rs`.

use std::fs;
use std::path::Path;

use ringtap_testkit::flag_table::{FlagTable, Lines};

use crate::common::{office, ringtap};

/// Lines for each command, with `|` where further flags are put, and the flags that are refused there because they have no
/// effect. Without a fault a line ends at once: it prints a plan, or something does not exist.
const LINES: Lines = &[
    (
        "monitor | -r a.pcap --dry-run",
        "interface capture cut rotate keep keep-size keep-free dpdk-args duration shed user setup-nic no-promiscuous probe observation-domain template-refresh \
         tls-ca tls-cert tls-key web-token tui statistics-packets recent",
    ),
    (
        "monitor | -i lo --dry-run",
        "read dpdk-args cut rotate keep keep-size keep-free probe observation-domain template-refresh tls-ca tls-cert tls-key web-token statistics-packets recent",
    ),
    (
        "monitor | -i lo --web 1 --export ipfix+tls://127.0.0.1:1 --tls-cert c --tls-key k --state s --dry-run",
        "read anonymise dpdk-args resume statistics-packets recent",
    ),
    ("monitor | -r a.pcap --alert-to packets:. --dry-run", "all but recent"),
    ("monitor | -r a.pcap --analyses all,statistics --dry-run", "all but statistics-packets"),
    // Other flags are on the lines above: this one opens a device.
    ("monitor | -i 0000:00:00.0 --capture dpdk --dry-run", "all but dpdk-args"),
    (
        "filter | -r a.pcap --dry-run",
        "interface output both-ways capture send duration control control-port control-key queues",
    ),
    (
        "filter | -i lo -o lo --dry-run",
        "read write sequential workers digest control-port control-key",
    ),
    (
        "filter | -r a.pcap --control-port 7 --control-key k --dry-run",
        "interface output both-ways capture send duration control queues",
    ),
    ("filter ctl | no-socket list", ""),
    (
        "measure | -r a.pcap --rate 9 --dry-run",
        "interface profile duration capture advise interval",
    ),
    ("measure | --profile mix --dry-run", "read interface duration capture advise interval"),
    ("measure | -r a.pcap --interval 60s --dry-run", "profile rate packets advise write"),
    ("measure | -r a.pcap --report csv", "check distinct advise dry-run"),
    ("measure | --profile mix", "read interface duration capture"),
    ("measure | -i lo --dry-run", "read profile rate packets advise"),
    ("merge | no.state", ""),
    ("verify | no-store", ""),
    ("extract | a.pcap --flow 1:LQU9qZlK+B5F3KDmev6m5PMibrg= -w /dev/null", "where"),
    ("extract | a.pcap --where tcp -w /dev/null", "flow"),
    ("query | no-store top hosts", "sql with"),
    ("query | no-store --sql select", "explain limit"),
    (
        "generate | -w /dev/null --packets 8",
        "interface method queue read loop src-mac dst-mac report",
    ),
    ("generate | -i no-interface", "write queue loop"),
    ("generate | -i no-interface --method af-xdp", "write loop"),
    ("generate | -i no-interface -r a.pcap", "write queue profile zipf size seed truth flows"),
    ("check | -i no-interface", ""),
    ("check-config no.toml |", ""),
    ("doctor |", "apply dry-run"),
    ("doctor | no-interface --apply", ""),
];

fn table() -> FlagTable {
    FlagTable::new(ringtap::definition(), LINES, prepare, ringtap)
}

/// Creates the files that the lines name.
fn prepare(folder: &Path) {
    fs::copy(office(), folder.join("a.pcap")).unwrap();
    fs::write(folder.join("k"), [7; 32]).unwrap();
}

#[test]
fn values_without_a_meaning_are_refused_with_a_remedy() {
    table().values_without_a_meaning_are_refused();
}

#[test]
fn a_flag_given_twice_has_its_last_value_or_is_a_list() {
    table().flags_given_twice_have_their_last_value();
}

#[test]
fn flags_without_an_effect_on_a_line_are_refused() {
    table().flags_without_an_effect_are_refused();
}
