//! Compares the messages of HTTP in real captures with those that tshark finds: how often each value occurs, by file and
//! column. Each difference has a reason in a list here; RINGTAP_DIFFERENCES=1 prints all.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use ringtap_extract::Kind;

use crate::reading::{captures, has, messages};

/// The columns: field of tshark, and kind here.
const COLUMNS: [(&str, Kind); 9] = [
    ("http.request.method", Kind::HttpMethod),
    ("http.request.uri", Kind::HttpTarget),
    ("http.host", Kind::HttpHost),
    ("http.user_agent", Kind::HttpUserAgent),
    ("http.referer", Kind::HttpReferer),
    ("http.response.code", Kind::HttpStatus),
    ("http.content_type", Kind::HttpContentType),
    ("http.location", Kind::HttpLocation),
    ("http.content_length_header", Kind::HttpResponseLength),
];

/// Values are compared up to this number of characters; the longest ones are cut here.
const LONGEST: usize = 500;

/// How often each value of a column occurs.
type Values = BTreeMap<(&'static str, String), usize>;

/// What is found here in messages over TCP.
fn ours(path: &Path) -> Values {
    let mut all = Values::new();
    let (messages, _) = messages(path);
    // The length of a body that ends later stands behind another message.
    for (kind, value) in
        messages.iter().filter(|own| own.protocol != b"ssdp").flat_map(|own| &own.facts)
    {
        // A length in a request is in its header, too.
        let kind = if *kind == Kind::HttpRequestLength { Kind::HttpResponseLength } else { *kind };
        if let Some((column, _)) = COLUMNS.iter().find(|column| column.1 == kind) {
            let value = String::from_utf8_lossy(value).chars().take(LONGEST).collect();
            *all.entry((column, value)).or_default() += 1;
        }
    }
    all
}

/// What tshark finds. It shows a message when its body is complete; or, without bodies, only those that begin a segment.
fn theirs(path: &Path) -> Values {
    let mut all = Values::new();
    for bodies in ["TRUE", "FALSE"] {
        let mut command = Command::new("tshark");
        command.args(["-n", "-Y", "http and tcp and not icmp", "-T", "fields", "-r"]).arg(path);
        command.args(["-E", "aggregator=\u{1f}", "-o", &format!("http.desegment_body:{bodies}")]);
        COLUMNS.iter().for_each(|(field, _)| _ = command.args(["-e", field]));
        let output = command.output().expect("tshark, which scripts/setup-test.sh installs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut found = Values::new();
        for line in text.lines() {
            for ((column, _), values) in COLUMNS.iter().zip(line.split('\t')) {
                for value in values.split('\u{1f}').filter(|value| !value.is_empty()) {
                    let cut = value.chars().take(LONGEST).collect();
                    *found.entry((column, cut)).or_default() += 1;
                }
            }
        }
        for (value, number) in found {
            let own = all.entry(value).or_default();
            *own = number.max(*own);
        }
    }
    all
}

/// Differences with their reason: the beginnings of the file's name and of the column, and whether the value is here.
const REASONS: &[(&str, &str, bool, &str)] = &[
    (
        "",
        "http.content_length_header",
        true,
        "the length of chunks, up to the end of the connection, or of no body",
    ),
    (
        "heuristic_tcp_ack_payload",
        "http.",
        true,
        "acknowledgements carry stray bytes, so tshark takes the segments for out of order",
    ),
    ("o001-example", "http.", true, UNFINISHED),
    ("o007-http", "http.", true, UNFINISHED),
    ("soap", "http.", true, UNFINISHED),
    ("o009-fragtest", "http.request.method", false, CUT),
    ("o050-combined", "http.request.uri", false, CUT),
    ("o013-mixed-vlan-mpls", "http.request", false, "the same packet on two networks"),
    (
        "o019-gtp1_gn_normal_incl_fragmentation",
        "http.",
        false,
        "the packet around a tunnel is in fragments",
    ),
    ("o021-teredo_bubble_with_payload", "http.", true, "Teredo that tshark does not open"),
    ("http-body-looks-like-request", "http.", false, "a body that looks like a request"),
    ("http-unknown-method", "http.", true, "a method that tshark does not know"),
];

const UNFINISHED: &str = "tshark waits for the rest of a body, which is not in the capture";
const CUT: &str = "the start line was cut when it was captured";

#[test]
fn messages_are_those_that_tshark_finds() {
    let captures = captures();
    if captures.is_empty() {
        println!("SKIPPED: the captures with application data are not on this machine");
        return;
    }
    if Command::new("tshark").arg("-v").output().is_err() {
        println!("SKIPPED: no tshark on this machine");
        return;
    }
    let verbose = std::env::var_os("RINGTAP_DIFFERENCES").is_some();
    let mut table: BTreeMap<&str, [usize; 4]> = BTreeMap::new();
    for path in captures {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let ours = ours(&path);
        if ours.is_empty() && !has(&path, |bytes| bytes == b"HTTP/") {
            continue;
        }
        let theirs = theirs(&path);
        let all: BTreeMap<_, ()> = ours.keys().chain(theirs.keys()).map(|key| (key, ())).collect();
        for key in all.into_keys() {
            let [own, other] = [&ours, &theirs].map(|values| values.get(key).copied().unwrap_or(0));
            let (column, value) = (key.0, &key.1);
            let [common, missed, more, classified] = table.entry(column).or_default();
            *common += own.min(other);
            if own == other {
                continue;
            }
            let judged = |(file, start, is_more, _): &&(&str, &str, bool, &str)| {
                name.starts_with(file) && column.starts_with(start) && *is_more == (own > other)
            };
            let reason = REASONS.iter().find(judged).map(|reason| reason.3);
            match reason {
                Some(_) => *classified += own.abs_diff(other),
                None if own > other => *more += own - other,
                None => *missed += other - own,
            }
            if verbose || reason.is_none() {
                println!("{name} {column} {value:?}: here {own}, tshark {other}: {reason:?}");
            }
        }
    }
    for (column, [common, missed, more, classified]) in &table {
        println!(
            "{column:26} {common:5} equal, {classified} classified, {missed} missing, {more} more"
        );
    }
    assert!(table.values().all(|[_, missed, more, _]| missed + more == 0), "{table:?}");
    assert!(table["http.request.method"][0] > 500, "{table:?}");
}
