//! Reports as JSON documents.

use ringtap_base::text::json_document;
use serde::Serialize;

/// A document with its line feed.
pub fn json(value: &impl Serialize) -> serde_json::Result<String> {
    Ok(json_document(serde_json::to_string_pretty(value)?) + "\n")
}
