//! Tests of the dashboard and the rules in `packaging/`: the program serves their metrics and labels.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use ringtap_export::{Items, Reason, Space, Status};
use ringtap_monitor::report::TcpTotals;
use ringtap_monitor::{LOSSES, Totals};
use serde_json::Value;

use super::*;

/// Names of labels.
type Labels = BTreeSet<String>;

/// The labels of each metric.
type Metrics = BTreeMap<String, Labels>;

/// Labels that Prometheus adds to all metrics.
fn target_labels() -> Labels {
    ["instance", "job"].map(String::from).into()
}

/// All metrics that the program can serve.
fn served() -> Metrics {
    let watch = Watch::new();
    let output = Status {
        name: "output".into(),
        items: Items::Flows,
        made: 0,
        sent: 0,
        lost: Reason::ALL.map(|reason| (reason, 0)),
        queued_bytes: 0,
        files_removed: 0,
        space: Some(Space {
            folder: Path::new("flows").into(),
            device: 1,
            free: 1,
            total: 2,
            is_low: false,
            removes: false,
        }),
        failing: false,
        retrying: false,
        last_error: None,
    };
    let stats = RunStats {
        flows: Some(0),
        outputs: vec![output],
        totals: Totals {
            tcp: Some(TcpTotals::default()),
            responses: Some(Default::default()),
            ..Totals::default()
        },
        ..RunStats::default()
    };
    let mut served = Metrics::new();
    for interfaces in [Vec::new(), vec!["eth0".to_owned()]] {
        let page = page(&watch, 2, &interfaces, &stats).text();
        for line in page.lines().filter(|line| !line.starts_with('#')) {
            let (sample, _) = line.rsplit_once(' ').unwrap();
            let (name, labels) = sample.split_once('{').unwrap_or((sample, ""));
            let labels = labels.split(',').filter_map(|label| label.split_once('='));
            let all = served.entry(name.to_owned()).or_insert_with(target_labels);
            all.extend(labels.map(|(label, _)| label.to_owned()));
        }
    }
    served
}

/// The names in an expression of PromQL.
#[derive(Default)]
struct Names {
    metrics: BTreeSet<String>,
    /// In selectors and after `by`, `without`, `on` and `ignoring`.
    labels: Labels,
    /// After `by`; empty if the expression aggregates over all labels.
    kept: Option<Labels>,
    /// After `without`.
    removed: Labels,
}

impl Names {
    fn of(expression: &str) -> Self {
        let mut names = Self::default();
        let tokens = tokens(expression);
        // The keyword of a list of labels, and its closing bracket.
        let mut list = None;
        for (place, token) in tokens.iter().map(String::as_str).enumerate() {
            let before = place.checked_sub(1).map_or("", |before| tokens[before].as_str());
            let next = tokens.get(place + 1).map_or("", String::as_str);
            let is_name = token.starts_with(|first: char| first.is_ascii_alphabetic());
            match (token, list) {
                ("{", None) => list = Some(("{", "}")),
                ("(", None) if ["by", "without", "on", "ignoring"].contains(&before) => {
                    list = Some((before, ")"));
                }
                (_, Some((_, end))) if token == end => list = None,
                (_, Some((keyword, _))) if is_name => {
                    let label = token.to_owned();
                    match keyword {
                        "by" => _ = names.kept.get_or_insert_default().insert(label.clone()),
                        "without" => _ = names.removed.insert(label.clone()),
                        _ => {}
                    }
                    names.labels.insert(label);
                }
                ("sum" | "max" | "min" | "avg" | "count", None) if next == "(" => {
                    names.kept.get_or_insert_default();
                }
                (_, None) if token == "up" || token.contains("ringtap_") => {
                    names.metrics.insert(token.to_owned());
                }
                _ => {}
            }
        }
        names
    }

    /// The labels of the result, or what is unknown.
    fn result(&self, known: &Metrics) -> Result<Labels, String> {
        let (mut all, mut common) = (Labels::new(), None::<Labels>);
        for metric in &self.metrics {
            let labels = known.get(metric).ok_or_else(|| format!("unknown metric {metric}"))?;
            all.extend(labels.iter().cloned());
            common = Some(common.map_or_else(|| labels.clone(), |common| &common & labels));
        }
        if let Some(label) = self.labels.iter().find(|label| !all.contains(*label)) {
            return Err(format!("unknown label {label}"));
        }
        let common = common.ok_or("no metric")?;
        let kept = self.kept.as_ref().map_or_else(|| common.clone(), |kept| &common & kept);
        Ok(&kept - &self.removed)
    }
}

/// Words and single symbols, without quoted text.
fn tokens(expression: &str) -> Vec<String> {
    let bare: Vec<_> = expression.split('"').step_by(2).collect();
    let mut tokens = Vec::<String>::new();
    let mut in_word = false;
    for symbol in bare.join(" ").chars() {
        let is_word = symbol.is_ascii_alphanumeric() || "_:".contains(symbol);
        match tokens.last_mut() {
            Some(word) if is_word && in_word => word.push(symbol),
            _ if symbol.is_whitespace() => {}
            _ => tokens.push(symbol.to_string()),
        }
        in_word = is_word;
    }
    tokens
}

fn packaged(name: &str) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging").join(name);
    std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// The fields of each rule. Each field is on a line of its own.
fn rules() -> Vec<BTreeMap<String, String>> {
    let mut rules = Vec::<BTreeMap<_, _>>::new();
    let text = packaged("prometheus/ringtap.rules.yml");
    for line in text.lines().map(str::trim_start).filter(|line| !line.starts_with('#')) {
        let Some((key, value)) = line.trim_start_matches("- ").split_once(": ") else { continue };
        if ["record", "alert"].contains(&key) {
            rules.push(BTreeMap::new());
        }
        if let Some(rule) = rules.last_mut() {
            rule.insert(key.to_owned(), value.trim_matches('"').to_owned());
        }
    }
    rules
}

#[test]
fn unknown_names_are_found() {
    let known = served();
    let result = |expression: &str| Names::of(expression).result(&known);
    let labels = |names: &[&str]| -> Result<Labels, String> {
        Ok(names.iter().map(|name| (*name).to_owned()).collect())
    };
    let all = labels(&["instance", "interface", "job", "queue"]);
    assert_eq!(result("rate(ringtap_packets_total{job=~\"a_job\"}[5m])"), all);
    let without = result("sum without (queue) (ringtap_packets_total) > 1e6");
    assert_eq!(without, labels(&["instance", "interface", "job"]));
    assert_eq!(result("max by (queue) (ringtap_packets_total)"), labels(&["queue"]));
    assert_eq!(result("8 * sum(ringtap_bytes_total)"), labels(&[]));
    let both = result("ringtap_shed_packets_total + on (instance) ringtap_bytes_total");
    assert_eq!(both, labels(&["instance", "job"]));
    for (expression, error) in [
        ("ringtap_packet_total", "unknown metric ringtap_packet_total"),
        ("sum by (interfaces) (ringtap_bytes_total)", "unknown label interfaces"),
        ("ringtap_shed_packets_total{queue=\"0\"}", "unknown label queue"),
        ("1 + 1", "no metric"),
    ] {
        assert_eq!(result(expression), Err(error.to_owned()), "{expression}");
    }
}

#[test]
fn the_rules_use_served_metrics_and_labels() {
    let mut known = served();
    known.insert("up".into(), target_labels());
    let (mut records, mut alerts, mut used) = (0, 0, BTreeSet::new());
    for rule in rules() {
        let field = |key: &str| rule.get(key).unwrap_or_else(|| panic!("no {key}: {rule:?}"));
        let names = Names::of(field("expr"));
        let labels = names.result(&known);
        used.extend(names.metrics);
        let labels = labels.unwrap_or_else(|error| panic!("{error}: {rule:?}"));
        if let Some(name) = rule.get("record") {
            records += 1;
            assert_eq!(known.insert(name.clone(), labels), None, "{name} is defined twice");
            continue;
        }
        alerts += 1;
        assert!(!field("for").is_empty() && !field("severity").is_empty(), "{rule:?}");
        for text in [field("summary"), field("description")] {
            for rest in text.split("$labels.").skip(1) {
                let end = rest.find(|symbol: char| !symbol.is_alphanumeric() && symbol != '_');
                let label = &rest[..end.unwrap_or(rest.len())];
                assert!(labels.contains(label), "unknown label {label}: {rule:?}");
            }
            assert!(!text.is_empty(), "{rule:?}");
        }
    }
    for loss in LOSSES.iter().filter(|loss| !loss.metric.is_empty()) {
        assert!(used.contains(&format!("ringtap_{}", loss.metric)), "no rule has {}", loss.metric);
    }
    assert!(records > 5 && alerts > 10, "{records} records, {alerts} alerts");
}

/// The dashboard works without the rules, and shows all metrics.
#[test]
fn the_dashboard_shows_all_metrics_by_labels_that_they_have() {
    let dashboard: Value = serde_json::from_str(&packaged("grafana/ringtap.json")).unwrap();
    let known = served();
    let mut shown = BTreeSet::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        if panel["type"] == "row" {
            continue;
        }
        let title = panel["title"].as_str().unwrap();
        let text = |value: &Value| value.as_str().is_some_and(|text| !text.is_empty());
        assert!(text(&panel["description"]), "{title}: no description");
        assert!(text(&panel["fieldConfig"]["defaults"]["unit"]), "{title}: no unit");
        let targets = panel["targets"].as_array().unwrap();
        assert!(!targets.is_empty(), "{title}: no queries");
        for target in targets {
            assert_eq!(target["datasource"]["uid"], "${datasource}", "{title}");
            let names = Names::of(target["expr"].as_str().unwrap());
            let labels = names.result(&known);
            let labels = labels.unwrap_or_else(|error| panic!("{title}: {error}"));
            assert!(text(&target["legendFormat"]), "{title}: no legend");
            for rest in target["legendFormat"].as_str().unwrap().split("{{").skip(1) {
                let label = rest.split("}}").next().unwrap().trim();
                assert!(labels.contains(label), "{title}: unknown label {label}");
            }
            shown.extend(names.metrics);
        }
    }
    let missing: Vec<_> = known.keys().filter(|name| !shown.contains(*name)).collect();
    assert!(missing.is_empty(), "no panel shows {missing:?}");
    let variables = dashboard["templating"]["list"].as_array().unwrap();
    assert_eq!(variables[0]["query"], "prometheus", "the data source");
    for variable in &variables[1..] {
        let name = variable["name"].as_str().unwrap();
        let query = variable["query"]["query"].as_str().unwrap();
        Names::of(query).result(&known).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(target_labels().contains(name), "{name}");
        assert!(query.ends_with(&format!(", {name})")), "{query}");
    }
}

#[test]
fn the_panels_of_the_dashboard_do_not_overlap() {
    let dashboard: Value = serde_json::from_str(&packaged("grafana/ringtap.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    assert!(panels.len() > 20, "only {} panels", panels.len());
    let place = |panel: &Value| {
        ["x", "y", "w", "h"].map(|side| panel["gridPos"][side].as_u64().expect("a number"))
    };
    for (number, panel) in panels.iter().enumerate() {
        let [x, y, width, height] = place(panel);
        assert!(width > 0 && height > 0 && x + width <= 24, "{}", panel["title"]);
        for other in &panels[..number] {
            let [other_x, other_y, other_width, other_height] = place(other);
            let beside = x + width <= other_x || other_x + other_width <= x;
            let below = y + height <= other_y || other_y + other_height <= y;
            assert!(beside || below, "{} and {} overlap", panel["title"], other["title"]);
            assert_ne!(panel["id"], other["id"], "{} and {}", panel["title"], other["title"]);
        }
        assert!(panel["id"].as_u64().is_some(), "{}", panel["title"]);
    }
}
