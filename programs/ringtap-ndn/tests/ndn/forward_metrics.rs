//! Tests of `ringtap-ndn forward --metrics`: the page agrees with the report.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use serde_json::Value;

use crate::forward::{Running, answer, from_many, interest, neighbour, received};
use ringtap_testkit::{SCRAPE, free_address, request};

/// The samples of a page: by name and labels, without the prefix of all names.
struct Page(BTreeMap<String, f64>);

/// The names of metrics in the documentation's table.
fn documented() -> BTreeSet<String> {
    let page = include_str!("../../README.md");
    let (_, section) = page.split_once("## Metrics").unwrap();
    let (section, _) = section.split_once("## Tools").unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    let names = rows.map(|row| row.split('|').nth(1).unwrap());
    names.flat_map(|names| names.split('`').skip(1).step_by(2)).map(str::to_owned).collect()
}

impl Page {
    /// The page at this address, once `condition` holds; the last one after 12 seconds.
    fn when(address: SocketAddr, condition: impl Fn(&Self) -> bool) -> Self {
        let mut page = Self(BTreeMap::new());
        for _ in 0..600 {
            page = Self::read(&request(address, SCRAPE));
            if condition(&page) {
                return page;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        panic!("{:?}", page.0);
    }

    /// Reads a page, and checks its form. Without a report there are no samples.
    fn read(response: &str) -> Self {
        let (head, body) = response.split_once("\r\n\r\n").unwrap();
        if head.starts_with("HTTP/1.1 503") {
            return Self(BTreeMap::new());
        }
        assert!(head.contains("application/openmetrics-text; version=1.0.0"), "{head}");
        let body = body.strip_suffix("# EOF\n").expect(body);
        let (mut samples, mut family) = (BTreeMap::new(), "");
        for line in body.lines() {
            if let Some(described) = line.strip_prefix("# TYPE ") {
                family = described.split(' ').next().unwrap();
                continue;
            }
            if line.starts_with("# HELP ") {
                continue;
            }
            let (name, value) = line.rsplit_once(' ').unwrap();
            assert!(name.starts_with(family), "{name} in the family {family}");
            let name = name.strip_prefix("ringtap_forward_").unwrap();
            let repeated = samples.insert(name.to_owned(), value.parse().unwrap());
            assert_eq!(repeated, None, "{line}");
        }
        Self(samples)
    }

    /// The value of a sample; 0 if there is none.
    fn value(&self, name: &str) -> f64 {
        self.0.get(name).copied().unwrap_or(0.0)
    }

    /// The sum of the samples of a metric by face, with these further labels at their end.
    fn sum(&self, metric: &str, labels: &str) -> f64 {
        let begins = format!("{metric}{{face=");
        let is_one = |name: &str| name.starts_with(&begins) && name.ends_with(labels);
        self.0.iter().filter(|(name, _)| is_one(name)).map(|(_, value)| value).sum()
    }
}

fn start(in_udp: &str, more: &str) -> (Running, SocketAddr) {
    let address = free_address();
    let flags = ["--metrics", &address.to_string()];
    (Running::with_flags(&flags, in_udp, more), address)
}

/// Compares a page with the report of the same run.
fn compare(page: &Page, report: &Value) {
    let equal = |name: &str, value: &Value| {
        assert_eq!(page.value(name), value.as_f64().unwrap(), "{name}: {:?}\n{report}", page.0);
    };
    for packet in ["interest", "data", "nack"] {
        for direction in ["in", "out"] {
            let labels = format!("packet=\"{packet}\",direction=\"{direction}\"}}");
            let plural = if packet == "data" { "" } else { "s" };
            let value = &report["links"][format!("{packet}{plural}_{direction}")];
            equal(&format!("packets_total{{{labels}"), value);
            let sum = page.sum("face_packets_total", &labels);
            assert_eq!(Some(sum), value.as_f64(), "{labels}: {:?}", page.0);
        }
    }
    for (metric, field) in [("frames", "frames"), ("bytes", "octets")] {
        for direction in ["in", "out"] {
            let value = &report["links"][format!("{field}_{direction}")];
            equal(&format!("{metric}_total{{direction=\"{direction}\"}}"), value);
            let labels = format!("direction=\"{direction}\"}}");
            let sum = page.sum(&format!("face_{metric}_total"), &labels);
            assert_eq!(Some(sum), value.as_f64());
        }
    }
    let (store, interests) = (&report["content_store"], &report["interests"]);
    for (name, value) in [
        ("interests_satisfied_total", &interests["satisfied"]),
        ("interests_unsatisfied_total", &interests["unsatisfied"]),
        ("pit_entries", &interests["pending"]),
        ("pit_capacity", &report["plan"]["pit"]),
        ("pit_capacity_per_face", &report["plan"]["pit_per_face"]),
        ("content_store_entries", &store["kept"]),
        ("content_store_bytes", &store["bytes"]),
        ("content_store_capacity_bytes", &report["plan"]["content_store_bytes"]),
        ("content_store_hits_total", &store["hits"]),
        ("content_store_misses_total", &store["misses"]),
        ("content_store_evicted_total", &store["evicted"]),
        ("faces_on_demand", &report["faces_on_demand"]["now"]),
        ("faces_evicted_total", &report["faces_on_demand"]["evicted"]),
        ("routes", &report["routes"]),
    ] {
        equal(name, value);
    }
    for (metric, value) in [
        ("face_exchanges_total", &interests["exchanges"]),
        ("face_content_store_hits_total", &store["hits"]),
    ] {
        assert_eq!(Some(page.sum(metric, "")), value.as_f64(), "{metric}");
    }
    for (metric, dropped) in [
        ("dropped_packets_total", &report["packets"]["dropped"]),
        ("lost_frames_total", &report["links"]["dropped"]),
        ("refused_commands_total", &report["management"]["refused"]),
    ] {
        for (reason, number) in dropped.as_object().unwrap() {
            equal(&format!("{metric}{{reason=\"{reason}\"}}"), number);
        }
    }
}

#[test]
fn the_page_agrees_with_the_report() {
    let (producer, consumer, other) = (neighbour(), neighbour(), neighbour());
    let far = format!(
        "[[route]]\nprefix = \"/far\"\nto = \"udp://{}\"\n",
        producer.local_addr().unwrap()
    );
    let (running, address) = start("", &format!("[tables]\npit-per-face = 10\n{far}"));
    // Two faces ask for one name: one pending Interest, and two exchanges.
    consumer.send_to(&interest("/far/a", 1, &[1]), running.udp).unwrap();
    other.send_to(&interest("/far/a", 2, &[2]), running.udp).unwrap();
    running.wait_until(&["status"], |reply| reply.contains("in:  2 Interests"));
    answer(&producer, b"content");
    received(&consumer);
    received(&other);
    // A hit, a Nack, a malformed frame, and an Interest that stays pending.
    other.send_to(&interest("/far/a", 3, &[3]), running.udp).unwrap();
    received(&other);
    consumer.send_to(&interest("/elsewhere", 4, &[4]), running.udp).unwrap();
    received(&consumer);
    consumer.send_to(b"no packet", running.udp).unwrap();
    consumer.send_to(&interest("/far/pending", 5, &[5]), running.udp).unwrap();
    received(&producer);

    let listed = running.reply(&["faces"]);
    let labels = |socket: &std::net::UdpSocket| {
        let at = socket.local_addr().unwrap().to_string();
        let row = listed.lines().find(|line| line.contains(&at)).expect(&listed);
        let face = row.split_whitespace().next().unwrap();
        format!("face=\"{face}\",remote=\"udp4://{at}\",kind=\"udp4\"")
    };
    let of_consumer = labels(&consumer);
    let pending = format!("face_pending_interests{{{of_consumer}}}");
    let first = Page::when(address, |page| page.value(&pending) == 1.0);
    // The next report was made after all packets.
    let later = first.value("run_seconds");
    let page = Page::when(address, |page| page.value("run_seconds") > later);
    for (name, value) in [
        (format!("face_pit_share_ratio{{{of_consumer}}}"), 0.1),
        (format!("face_exchanges_total{{{of_consumer}}}"), 1.0),
        (format!("face_exchanges_total{{{}}}", labels(&other)), 1.0),
        (format!("face_content_store_hits_total{{{}}}", labels(&other)), 1.0),
        (format!("face_content_store_hits_total{{{of_consumer}}}"), 0.0),
        (format!("face_nacks_total{{{of_consumer},reason=\"no-route\",direction=\"out\"}}"), 1.0),
        (format!("face_lost_frames_total{{{of_consumer},reason=\"malformed\"}}"), 1.0),
        (
            format!("face_packets_total{{{},packet=\"data\",direction=\"in\"}}", labels(&producer)),
            1.0,
        ),
    ] {
        assert_eq!(page.value(&name), value, "{name}: {:?}", page.0);
    }
    let at = consumer.local_addr().unwrap().to_string();
    let row = listed.lines().find(|line| line.contains(&at)).unwrap();
    let words: Vec<_> = row.split_whitespace().rev().take(3).collect();
    assert_eq!(words, ["1", "0", "1"], "pending, hits, exchanges: {listed}");
    assert!(request(address, "GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404"));
    let names = page.0.keys().map(|name| name.split('{').next().unwrap().to_owned());
    assert_eq!(names.collect::<BTreeSet<_>>(), documented());
    let report = running.end();
    compare(&page, &report);
    let face = report["faces"]
        .as_array()
        .unwrap()
        .iter()
        .find(|face| face["remote"] == format!("udp4://{}", consumer.local_addr().unwrap()));
    let face = face.unwrap();
    assert_eq!(face["kind"], "udp4");
    assert_eq!([&face["exchanges"], &face["pending"], &face["content_store_hits"]], [1, 1, 0]);
    assert_eq!(
        (&face["pit_share"], &face["nacks_out_by_reason"]["no-route"]),
        (&0.1.into(), &1.into())
    );
}

#[test]
fn faces_beyond_256_are_summed() {
    let (running, address) = start("", "[faces]\nmost = 400\non-demand = 300\n");
    from_many(running.udp, 350, |number| interest("/none", number, &[1]));
    running.wait_until(&["status"], |reply| reply.contains("in:  350 Interests"));
    let page = Page::when(address, |page| {
        page.value("packets_total{packet=\"nack\",direction=\"out\"}") >= 350.0
    });
    let faces = page.0.keys().filter(|name| name.starts_with("face_exchanges_total{"));
    assert_eq!(faces.count(), 257);
    // 50 faces were evicted, and at least 44 have no samples of their own.
    let others = page.value("face_packets_total{face=\"other\",remote=\"\",kind=\"other\",packet=\"interest\",direction=\"in\"}");
    assert!((94.0..=150.0).contains(&others), "{others}");
    // The total also has those of programs that query the status.
    let labels = "packet=\"interest\",direction=\"in\"}";
    let total = page.value(&format!("packets_total{{{labels}"));
    assert_eq!((page.sum("face_packets_total", labels), total >= 350.0), (total, true));
    running.end();
}
