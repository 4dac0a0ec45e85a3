//! The files in `packaging/` that map fields of flow records to names of other programs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Value, json};

use super::*;

/// The names in JSON lines of a topic.
fn names() -> BTreeSet<&'static str> {
    let keys = FIELDS.iter().flat_map(|field| field.keys);
    let trimmed = keys.map(|key| key.trim_matches(|sign| ",\":".contains(sign)));
    trimmed.chain(["probe"]).collect()
}

fn packaging(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging").join(name);
    std::fs::read_to_string(path).expect(name)
}

/// Names of ECS 9.4, with their types.
const ECS: &str = "
    @timestamp:date event.kind:keyword event.category:keyword event.type:keyword event.dataset:keyword event.start:date
    event.end:date source.ip:ip source.port:long source.bytes:long source.packets:long source.mac:keyword
    source.geo.country_iso_code:keyword source.as.number:long source.as.organization.name:keyword destination.ip:ip
    destination.port:long destination.bytes:long destination.packets:long destination.mac:keyword
    destination.geo.country_iso_code:keyword destination.as.number:long destination.as.organization.name:keyword
    network.iana_number:keyword network.community_id:keyword network.application:keyword network.protocol:keyword
    network.vlan.id:keyword network.inner.vlan.id:keyword tls.client.server_name:keyword tls.cipher:keyword
    tls.client.ja3:keyword tls.server.ja3s:keyword dns.question.name:keyword dns.question.type:keyword
    dns.response_code:keyword http.request.method:keyword http.response.status_code:long url.domain:keyword
    http.request.referrer:keyword http.response.body.bytes:long
    url.original:wildcard user_agent.original:keyword observer.ingress.interface.id:keyword observer.name:keyword";

/// What processors make of a line.
fn processed(pipeline: &Value, line: &Value) -> BTreeMap<String, Value> {
    let mut event: BTreeMap<_, _> = line
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    for processor in pipeline["processors"].as_array().unwrap() {
        let (kind, settings) = processor.as_object().unwrap().iter().next().unwrap();
        let name = |key: &str| settings[key].as_str().unwrap_or_default().to_owned();
        let (field, target) = (name("field"), name("target_field"));
        let value = event.get(&field).cloned();
        assert!(
            value.is_some() || settings["ignore_missing"] == true || kind == "set",
            "{processor}"
        );
        let value = value.unwrap_or_default();
        let text = || value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        match kind.as_str() {
            "set" => _ = event.insert(field, settings["value"].clone()),
            "date" => {
                assert!(settings["formats"] == json!(["UNIX_MS"]) && value.is_u64(), "{processor}");
                event.insert(target, value);
            }
            "remove" => {
                for name in settings["field"].as_array().unwrap() {
                    event.remove(name.as_str().unwrap());
                }
            }
            _ if value.is_null() => {}
            "rename" => {
                event.remove(&field);
                assert_eq!(event.insert(target, value), None, "{processor}");
            }
            "convert" => {
                assert_eq!(settings["type"], "string");
                event.insert(field, text().into());
            }
            "gsub" => {
                let replaced = text().replace(&name("pattern"), &name("replacement"));
                event.insert(field, replaced.into());
            }
            "uppercase" => _ = event.insert(target, text().to_uppercase().into()),
            _ => panic!("{processor}"),
        }
    }
    event
}

#[test]
fn the_pipeline_of_elastic_names_fields_and_makes_events_of_ecs() {
    let pipeline: Value = serde_json::from_str(&packaging("elastic/pipeline.json")).unwrap();
    let types: BTreeMap<_, _> =
        ECS.split_whitespace().map(|entry| entry.split_once(':').unwrap()).collect();
    // A line with all fields: lists have two values.
    let sample = |field: &Field| match (field.value, field.shape) {
        (Type::Text, Shape::List) => json!(["a", "b"]),
        (Type::Text, _) => json!("aa:bb"),
        (_, Shape::List) => json!([1, 2]),
        _ => json!(1),
    };
    let key = |key: &'static str| key.trim_matches(|sign| ",\":".contains(sign)).to_owned();
    for version in 0..2 {
        let mut line: Value = FIELDS
            .iter()
            .map(|field| (key(field.keys[version]), sample(field)))
            .collect::<serde_json::Map<_, _>>()
            .into();
        line["probe"] = json!("a");
        let event = processed(&pipeline, &line);
        let mapped: BTreeMap<_, _> =
            event.iter().filter(|(name, _)| name.contains('.') || name.starts_with('@')).collect();
        for (name, value) in &mapped {
            let of = types.get(name.as_str()).unwrap_or_else(|| panic!("{name} is not of ECS"));
            let one = value.as_array().map_or(*value, |list| &list[0]);
            let is_right = match *of {
                "long" | "date" => one.is_u64(),
                _ => one.is_string(),
            };
            assert!(is_right, "{name} is {of}: {value}");
        }
        // All of the list are made, and all others are fields.
        assert_eq!(mapped.len(), types.len());
        for name in event.keys().filter(|name| !mapped.contains_key(name)) {
            assert!(names().contains(name.as_str()), "{name}");
        }
        assert_eq!(event["source.mac"], "AA-BB");
    }
}

/// The words of a text that begin with a lower-case letter and have a capital or are a field.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|sign: char| !sign.is_ascii_alphanumeric()).filter(|word| !word.is_empty())
}

#[test]
fn alloy_reads_fields_and_few_values_are_labels() {
    let text = packaging("loki/config.alloy");
    let block = |begin: &str| text.split_once(begin).unwrap().1.split_once("}\n").unwrap().0;
    let expressions: BTreeMap<_, _> = block("expressions = {\n")
        .lines()
        .filter_map(|line| line.trim().split_once('='))
        .map(|(name, path)| (name.trim(), path.trim().trim_matches([',', '"'])))
        .collect();
    for path in expressions.values() {
        for name in path.split(" || ") {
            assert!(names().contains(name), "{name} is no field");
        }
    }
    let used =
        |begin| words(block(begin)).filter(|word| *word != "values").collect::<BTreeSet<_>>();
    let labels = used("stage.labels {\n");
    let fields: Vec<_> = labels.iter().map(|label| expressions[label]).collect();
    assert_eq!(fields, ["application", "protocolIdentifier", "flowEndReason"]);
    let metadata = text.split_once("stage.structured_metadata {").unwrap().1;
    let metadata = metadata.split_once("}\n").unwrap().0.replace("values", "");
    for name in metadata.split(['{', ',', '=', '"', ' ', '\n']).filter(|name| !name.is_empty()) {
        assert!(expressions.contains_key(name), "{name} is no expression");
    }
}

#[test]
fn the_collector_of_opentelemetry_moves_fields() {
    let text = packaging("otel/collector.yaml");
    let operators: Vec<_> = text.lines().filter(|line| line.contains("type: move")).collect();
    assert!(operators.len() > 10);
    for line in text.lines().filter(|line| line.contains("attributes.")) {
        for rest in line.split("attributes.").skip(1) {
            let name = words(rest).next().unwrap();
            assert!(names().contains(name), "{name} is no field");
        }
    }
    for line in operators {
        let from = |key: &str| words(line.split_once(key).unwrap().1).nth(1).unwrap();
        assert_eq!(from("from: "), from("if: '"), "{line}");
    }
}
