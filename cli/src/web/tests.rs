//! Any request and any flow has a reply that is well formed.

use std::net::SocketAddr;

use ringtap_flow::RecordSink;

use super::pace::SECOND_NS;
use super::*;

static WATCH: Watch = Watch::new();

/// A site with a flow that has hostile names.
fn site() -> Web {
    let about = About {
        title: "<b>'\"&".into(),
        is_live: false,
        measures_tcp: false,
        has_networks: false,
        has_geo: false,
        max_flows: 1000,
        threads: Vec::new(),
        idle_ns: 0,
    };
    let address = SocketAddr::from(([127, 0, 0, 1], 80));
    let (flows, mut keepers) = Flows::new(60 * SECOND_NS, 1);
    let named = flows::tests::named(1_000_000, 1, (2, 443), "<script>\"'&,\n=1+1\u{202e}");
    flows::tests::keep(&mut keepers[0], &named);
    keepers[0].finish();
    let (notes, reporter) = Notes::new();
    let parts = Parts { flows, notes, reporter };
    let metrics = Metrics::new(&WATCH, 1, &[], RunStats::default);
    let access = Access::new(address, None).unwrap();
    let mut site = Web::new(about, access, metrics, &WATCH, parts, None).unwrap();
    assert!(site.publishes());
    site
}

fn get(site: &mut Web, path: &str, query: &str) -> Reply {
    site.get(&Get { path, query, host: "localhost", authorization: "", is_foreign: false })
}

fn text(reply: Reply) -> String {
    match reply {
        Reply::Resource { body, .. } | Reply::File { body, .. } => String::from_utf8(body).unwrap(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn names_of_flows_cannot_leave_their_places() {
    let mut site = site();
    let page = text(get(&mut site, "/", ""));
    assert_eq!(page.matches("<script").count(), 1, "its own");
    assert!(page.contains("&lt;script&gt;") && page.contains("&lt;b&gt;"), "{page}");
    assert!(page.contains("?name=%3Cscript%3E%22%27%26%2C%0A%3D1%2B1"), "{page}");
    let event: serde_json::Value = serde_json::from_str(&site.event("")).unwrap();
    assert!(!event["content"].as_str().unwrap().contains("<script"), "{event}");
    let csv = text(get(&mut site, "/flows.csv", ""));
    assert!(csv.contains(",\"<script>\"\"'&,\\x0a=1+1\\xe2\\x80\\xae\","), "{csv}");
    let name = "%3Cscript%3E";
    let page = text(get(&mut site, "/", &format!("name={name}&span=2d")));
    assert!(page.contains("value=\"&lt;script&gt;\"") && page.contains("value=\"2000\""), "{page}");
}

/// Queries made of parts of right ones: no panic, and each reply is text.
#[test]
fn any_query_has_a_reply() {
    let parts = [
        "host=",
        "10.0.0.1",
        "::",
        "port=",
        "65535",
        "65536",
        "application=",
        "name=",
        "%",
        "%4",
        "%ff%00",
        "+",
        "&",
        "=",
        "span=",
        "1d",
        "until=",
        "18446744073709551615",
        "0",
        "rows=",
        "from=",
        "zone=",
        "by=",
        "-1h",
        "2026-11-26T10:02",
        "200",
        "table=",
        "Hosts",
        "<",
        "é",
    ];
    let mut site = site();
    let mut random = 1_u64;
    for _ in 0..4_000 {
        let mut query = String::new();
        for _ in 0..random >> 32 & 7 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            query += parts[(random >> 33) as usize % parts.len()];
        }
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        // The time that replies may take is another matter.
        site.pace = Pace::default();
        for path in
            ["/", "/events", "/flows.csv", "/view.csv", "/api/hosts", "/api/flows.csv", "/api/x"]
        {
            match get(&mut site, path, &query) {
                Reply::Resource { body, .. } | Reply::File { body, .. } => {
                    assert!(std::str::from_utf8(&body).is_ok(), "{path}?{query}");
                }
                Reply::Events(topic) => {
                    site.rendered.clear();
                    assert!(serde_json::from_str::<serde_json::Value>(&site.event(&topic)).is_ok());
                }
                Reply::None(status, _) => {
                    assert!(status.starts_with("40"), "{path}?{query}: {status}");
                }
            }
        }
    }
}

#[test]
fn requests_beyond_the_time_for_replies_are_refused() {
    let mut site = site();
    assert!(matches!(get(&mut site, "/", ""), Reply::Resource { .. }));
    site.pace.took_for_reply(3_600 * SECOND_NS, 0);
    for path in ["/", "/flows.csv", "/view.csv"] {
        assert!(matches!(get(&mut site, path, ""), Reply::None("503 Service Unavailable", _)));
    }
    assert!(matches!(get(&mut site, "/page.css", ""), Reply::Resource { .. }));
}
