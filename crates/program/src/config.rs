//! Configuration files in TOML.

/// An error of the TOML parser on one line.
pub fn toml_error(error: &toml::de::Error, text: &str) -> String {
    let before = error.span().and_then(|span| text.get(..span.start));
    let line = before.map(|before| format!("line {}: ", before.matches('\n').count() + 1));
    line.unwrap_or_default() + &error.message().replace('\n', ", ")
}
