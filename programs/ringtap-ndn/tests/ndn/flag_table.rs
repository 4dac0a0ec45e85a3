//! All flags of all commands: values without a meaning, flags that are given twice, and flags without an effect. What is
//! special is in [`LINES`], and in the lists of `testkit/src/flag_table.rs`.

use std::fs;
use std::path::Path;

use ringtap_testkit::flag_table::{FlagTable, Lines};

use crate::common::ndn;

/// Lines for each command, with `|` where further flags are put, and the flags that are refused there because they have no
/// effect. Without a fault a line ends at once: it prints a plan, or something does not exist.
const LINES: Lines = &[
    ("forward | --config forward.toml --dry-run", ""),
    ("forward ctl | no-socket faces", "key-name"),
    ("forward ctl | --key k no-socket faces", ""),
    ("forward ctl no-socket register | /a udp://192.0.2.1", ""),
    ("forward ctl no-socket events |", ""),
    ("ping | /a --to unix:no-socket", ""),
    ("server | /a --to unix:no-socket", "listen key-name"),
    ("server | /a --listen udp://127.0.0.1 --key k", "to register"),
    ("load | /a --to unix:no-socket", ""),
    ("key generate | /a --out no/folder/key", ""),
];

fn table() -> FlagTable {
    FlagTable::new(ringtap_ndn_program::definition(), LINES, prepare, ndn)
}

/// Creates the files that the lines name.
fn prepare(folder: &Path) {
    fs::write(folder.join("k"), [7; 32]).unwrap();
    let socket = "[unix]\nlisten = \"no/folder/socket\"\n";
    fs::write(folder.join("forward.toml"), socket).unwrap();
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
