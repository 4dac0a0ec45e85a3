//! Command templates: `{name}` is replaced by a parameter.

use std::collections::BTreeMap;

/// The words of `template` with their parameters replaced. Words are split before the replacement,
/// so a value may contain spaces. The error names an unknown parameter.
pub(crate) fn fill(
    template: &str,
    known: &BTreeMap<String, String>,
) -> Result<Vec<String>, String> {
    template.split_whitespace().map(|word| fill_word(word, known)).collect()
}

/// One word with its parameters replaced.
pub(crate) fn fill_word(word: &str, known: &BTreeMap<String, String>) -> Result<String, String> {
    let mut filled = String::new();
    let mut rest = word;
    while let Some((before, behind)) = rest.split_once('{') {
        let (name, behind) =
            behind.split_once('}').ok_or_else(|| format!("{word:?} lacks a closing brace"))?;
        let value =
            known.get(name).ok_or_else(|| format!("{word:?}: unknown parameter {name:?}"))?;
        filled += before;
        filled += value;
        rest = behind;
    }
    Ok(filled + rest)
}

/// Parses a number with an optional suffix k, M or G (powers of 1,000), like the flags of the
/// command.
pub(crate) fn number(text: &str) -> Option<f64> {
    let (digits, factor) = match text.char_indices().next_back()? {
        (at, 'k') => (&text[..at], 1e3),
        (at, 'M') => (&text[..at], 1e6),
        (at, 'G') => (&text[..at], 1e9),
        _ => (text, 1.0),
    };
    let number: f64 = digits.parse().ok()?;
    number.is_finite().then_some(number * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_replaced_and_do_not_split_words() {
        let known = [("n", "3"), ("file", "a b.pcap")];
        let known = known.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        assert_eq!(
            fill("monitor -r {file}  -w{n}{n}", &known).unwrap(),
            ["monitor", "-r", "a b.pcap", "-w33"]
        );
        assert!(fill("{m}", &known).unwrap_err().contains("\"m\""));
        assert!(fill("{n", &known).is_err());
    }

    #[test]
    fn numbers_may_have_suffixes() {
        assert_eq!(number("2M"), Some(2e6));
        assert_eq!(number("1.5k"), Some(1_500.0));
        assert_eq!(number("7"), Some(7.0));
        assert_eq!(number(""), None);
        assert_eq!(number("many"), None);
    }
}
