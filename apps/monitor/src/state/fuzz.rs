//! Any bytes as a state.

use std::collections::BTreeMap;

use ringtap_engine::{Machine, Plan};
use ringtap_extract::Names;

use super::{
    Choices, Content, Header, Run, Settings, Span, image, merge_states, report, tables_of,
};
use crate::{Analyses, Options};

/// Reads bytes as a state, and as a script of its rows: reports and merges end in a result or an error.
pub fn fuzz(bytes: &[u8]) {
    check(bytes);
    if let Some(mended) = ringtap_state::mend(bytes) {
        check(&mended);
    }
    check(&rows(bytes));
}

fn check(image: &[u8]) {
    let choices = Choices {
        scan_threshold: 2,
        udp_scan_threshold: 2,
        top: 3,
        digest: true,
        names: Names::built_in(),
        memory_bytes: Some(64 << 20),
    };
    let json =
        |image| report(vec![image], &choices).map(|merged| merged.to_json("").expect("a report"));
    let Ok(once) = json(image) else { return };
    let mut copy = Vec::new();
    let header = merge_states(vec![image], &mut copy).expect("a sound state is merged");
    assert_eq!(json(&copy[..]).expect("a merged state is sound"), once);
    let twice = merge_states(vec![image, &copy], Vec::new());
    assert_eq!(twice.is_err(), !header.runs.is_empty());
}

/// A state of one run whose rows are these: the position of a table, the key and the numbers, the length of the tail,
/// the tail. What is missing is zero.
fn rows(mut script: &[u8]) -> Vec<u8> {
    let analyses = super::saved(Analyses { tcp: true, ..Analyses::ALL });
    let options = Options { analyses, ..Options::default() };
    let plan = Plan::new(ringtap_engine::Options::default(), options, &Machine::this())
        .expect("a plan of the defaults");
    let span = Span { first: 0, last: 0, from_ns: 0, until_ns: 0 };
    // A whole run, or its beginning.
    let ended = script.first().is_none_or(|byte| byte.is_multiple_of(2));
    let run = Run { probe: "fuzz".to_owned(), parts: vec![span], ended, interrupted: false };
    let header = Header {
        settings: Settings::of(&plan),
        runs: BTreeMap::from([(format!("{:016x}", 0), run)]),
        until_ns: u64::from(script.first().copied().unwrap_or(0)) << 32,
        lacks: BTreeMap::new(),
    };
    let tables = tables_of(analyses, Content::NOW);
    let mut all: Vec<Vec<(Vec<u8>, Vec<u8>)>> = vec![Vec::new(); tables.len()];
    let mut take = |length: usize| {
        let (taken, rest) = script.split_at(length.min(script.len()));
        script = rest;
        let mut bytes = taken.to_vec();
        bytes.resize(length, 0);
        (bytes, !rest.is_empty())
    };
    loop {
        let (table, _) = take(1);
        let at = usize::from(table[0]) % tables.len();
        let (fixed, _) = take(tables[at].width());
        let (length, _) = take(1);
        let (tail, more) = take(length[0].into());
        all[at].push((fixed, tail));
        if !more {
            break;
        }
    }
    let header = serde_json::to_vec(&header).expect("a header");
    image(&header, &tables, |table, rows| {
        let at = tables.iter().position(|own| *own == table).expect("a table");
        for (fixed, tail) in &all[at] {
            let (key, numbers) = fixed.split_at(table.key);
            let numbers: Vec<u64> =
                numbers.as_chunks().0.iter().copied().map(u64::from_be_bytes).collect();
            rows.push(&[key], &numbers, tail);
        }
    })
    .expect("rows of bounded size")
}
