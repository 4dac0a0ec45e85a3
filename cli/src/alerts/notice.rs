//! An alert as outputs get it.

use ringtap_base::text::json_document;
use ringtap_export::Notice;
use ringtap_monitor::{Alert, AlertState};
use serde_json::Value;

/// The alert as a JSON object, a sentence and fields. An object within it becomes fields of its own: `flow_source`.
pub(crate) fn notice(alert: &Alert) -> Notice {
    let object = serde_json::to_value(alert).unwrap_or_default();
    let mut fields = Vec::new();
    add_fields("", &object, &mut fields);
    fields.retain(|(name, _)| name != "text");
    Notice {
        json: json_document(serde_json::to_string(alert).unwrap_or_default()),
        text: alert.to_string(),
        kind: alert.subject.kind().name(),
        severity: alert.subject.kind().severity(),
        is_end: matches!(alert.state, AlertState::Ends | AlertState::Withdrawn),
        fields,
        time_ns: alert.time.0,
        packets_of: alert.packets_of(),
        lost_before: 0,
    }
}

fn add_fields(prefix: &str, object: &Value, fields: &mut Vec<(String, String)>) {
    for (name, value) in object.as_object().into_iter().flatten() {
        let name = format!("{prefix}{name}");
        match value {
            Value::Null => {}
            Value::Object(_) => add_fields(&format!("{name}_"), value, fields),
            Value::String(text) => fields.push((name, text.clone())),
            Value::Array(values) => {
                let word = |value: &Value| match value {
                    Value::String(text) => text.clone(),
                    other => other.to_string(),
                };
                let words: Vec<_> = values.iter().map(word).collect();
                fields.push((name, words.join(",")));
            }
            Value::Bool(_) | Value::Number(_) => fields.push((name, value.to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use ringtap_export::Severity;
    use ringtap_monitor::report::Time;
    use ringtap_monitor::{Flood, Subject};

    use super::*;

    #[test]
    fn fields_are_flat_and_without_the_text() {
        let flood = Flood {
            packets_per_second: 9,
            protocol: 17,
            percent: 100,
            limits: vec!["dst-pps", "dst-bps"],
            ..Flood::default()
        };
        let alert = Alert {
            id: 3,
            state: AlertState::Ends,
            subject: Subject::Flood { target: [10, 0, 0, 1].into() },
            number: 9,
            flood: Some(flood),
            since: Time(0),
            time: Time(0),
            evidence: [Time(0); 2],
        };
        let notice = notice(&alert);
        assert!(notice.packets_of.is_empty(), "it ends");
        assert!(notice.is_end && notice.json.contains("\"text\":\"10.0.0.1 receives a UDP flood"));
        let value = |name: &str| {
            let mut fields = notice.fields.iter();
            fields.find(|(own, _)| own == name).map(|(_, value)| &value[..])
        };
        assert_eq!((value("id"), value("target")), (Some("3"), Some("10.0.0.1")));
        assert_eq!((notice.severity, value("severity")), (Severity::High, Some("high")));
        assert!(value("query").unwrap().starts_with("'flows where host 10.0.0.1 and udp' --from "));
        assert_eq!((value("limits"), value("text")), (Some("dst-pps,dst-bps"), None));
    }
}
