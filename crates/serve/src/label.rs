//! Labels of metrics in the text formats of Prometheus and OpenMetrics.

use ringtap_base::text::shown;

/// The value of a label, as people may see it, with backslashes and quotes escaped.
pub fn label_value(text: &str) -> String {
    shown(text).replace('\\', "\\\\").replace('"', "\\\"")
}
