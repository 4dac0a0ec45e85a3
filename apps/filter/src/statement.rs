//! Statements about rules and bans, one a line.
//!
//! ```text
//! default deny                                     for packets without a matching rule
//! allow from 10.0.0.0/8 to any                     a rule; later rules have priority
//! deny from any to 10.1.2.0-10.1.2.99
//! remove allow from 10.0.0.0/8 to any              removes the latest such rule
//! ban 192.0.2.7                                    drops all its packets, independent of the rules
//! unban 192.0.2.7
//! clear                                            removes all rules and bans
//! ```
//!
//! `from` and `to` may be omitted: `any`. `#` and `;` begin a comment. A dump has the same syntax.

use std::fmt;
use std::str::FromStr;

use ringtap_base::list_lines;

use super::span::{Span, SpanError};
use crate::policy::Policy;

/// A rule by source and destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rule {
    /// Whether packets pass.
    pub allow: bool,
    /// Their sources.
    pub from: Span,
    /// Their destinations.
    pub to: Span,
}

/// A line of a rule file, or a change at run time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statement {
    /// Sets the policy for packets without a matching rule.
    Default(Policy),
    /// Adds a rule, with priority over all earlier ones.
    Add(Rule),
    /// Removes the latest equal rule.
    Remove(Rule),
    /// Bans sources.
    Ban(Span),
    /// Removes an equal ban.
    Unban(Span),
    /// Removes all rules and bans.
    Clear,
}

/// Why a line is not a statement.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StatementError {
    /// Unknown first word.
    #[error("unknown statement \"{0}\": use default, allow, deny, remove, ban, unban or clear")]
    Unknown(String),
    /// A word lacks its argument.
    #[error("missing text after \"{0}\"")]
    Missing(String),
    /// Unexpected text.
    #[error("unexpected \"{0}\"")]
    Unexpected(String),
    /// Not a policy.
    #[error("unknown policy \"{0}\": use allow or deny")]
    Policy(String),
    /// Both families in one rule.
    #[error("from {0} to {1}: a rule cannot mix IPv4 and IPv6")]
    Families(Span, Span),
    /// Not a range of addresses.
    #[error(transparent)]
    Span(#[from] SpanError),
}

/// An error in a text of statements, with its line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {error}")]
pub struct LineError {
    /// From 1.
    pub line: usize,
    /// The error.
    #[source]
    pub error: StatementError,
}

/// Reads statements, with their lines (from 1). All or nothing.
pub fn parse(text: &str) -> Result<Vec<(usize, Statement)>, LineError> {
    list_lines(text.as_bytes())
        // The text is UTF-8, and a statement has no `#` within a word.
        .filter_map(|(line, text)| Some((line, text.ok()?.split('#').next()?.trim_end())))
        .map(|(line, text)| match text.parse() {
            Ok(statement) => Ok((line, statement)),
            Err(error) => Err(LineError { line, error }),
        })
        .collect()
}

impl FromStr for Statement {
    type Err = StatementError;

    fn from_str(text: &str) -> Result<Self, StatementError> {
        let mut words = text.split_whitespace();
        let words = &mut words;
        let first = words.next().unwrap_or("");
        let statement = match first {
            "default" => Self::Default(policy(following(first, words)?)?),
            "allow" | "deny" => Self::Add(rule(first, words)?),
            "remove" => Self::Remove(match following(first, words)? {
                word @ ("allow" | "deny") => rule(word, words)?,
                word => return Err(StatementError::Policy(word.to_owned())),
            }),
            "ban" => Self::Ban(following(first, words)?.parse()?),
            "unban" => Self::Unban(following(first, words)?.parse()?),
            "clear" => Self::Clear,
            _ => return Err(StatementError::Unknown(first.to_owned())),
        };
        words.next().map_or(Ok(statement), |word| Err(StatementError::Unexpected(word.to_owned())))
    }
}

fn following<'a>(
    word: &str,
    words: &mut impl Iterator<Item = &'a str>,
) -> Result<&'a str, StatementError> {
    words.next().ok_or_else(|| StatementError::Missing(word.to_owned()))
}

fn policy(word: &str) -> Result<Policy, StatementError> {
    match word {
        "allow" => Ok(Policy::Allow),
        "deny" => Ok(Policy::Deny),
        _ => Err(StatementError::Policy(word.to_owned())),
    }
}

/// The rest of a rule.
fn rule<'a>(
    action: &str,
    words: &mut impl Iterator<Item = &'a str>,
) -> Result<Rule, StatementError> {
    let (mut from, mut to) = (None, None);
    while let Some(word) = words.next() {
        let side = match word {
            "from" => &mut from,
            "to" => &mut to,
            _ => return Err(StatementError::Unexpected(word.to_owned())),
        };
        if side.is_some() {
            return Err(StatementError::Unexpected(word.to_owned()));
        }
        *side = Some(following(word, words)?.parse()?);
    }
    let (from, to) = (from.unwrap_or(Span::Any), to.unwrap_or(Span::Any));
    match (from, to) {
        (Span::V4(..), Span::V6(..)) | (Span::V6(..), Span::V4(..)) => {
            Err(StatementError::Families(from, to))
        }
        _ => Ok(Rule { allow: action == "allow", from, to }),
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let action = if self.allow { "allow" } else { "deny" };
        write!(f, "{action} from {} to {}", self.from, self.to)
    }
}

impl fmt::Display for Statement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default(Policy::Allow) => f.write_str("default allow"),
            Self::Default(Policy::Deny) => f.write_str("default deny"),
            Self::Add(rule) => rule.fmt(f),
            Self::Remove(rule) => write!(f, "remove {rule}"),
            Self::Ban(span) => write!(f, "ban {span}"),
            Self::Unban(span) => write!(f, "unban {span}"),
            Self::Clear => f.write_str("clear"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn errors_have_lines_and_words() {
        for (text, why) in [
            (
                "# nothing\n\nalow from any",
                "line 3: unknown statement \"alow\": use default, allow, deny, remove, ban, unban or clear",
            ),
            ("default", "line 1: missing text after \"default\""),
            ("default maybe", "line 1: unknown policy \"maybe\": use allow or deny"),
            ("allow\nallow from", "line 2: missing text after \"from\""),
            ("allow from any from any", "line 1: unexpected \"from\""),
            ("ban ::1 now", "line 1: unexpected \"now\""),
            ("remove all", "line 1: unknown policy \"all\": use allow or deny"),
            (
                "deny from ::1 to 192.0.2.1",
                "line 1: from ::1 to 192.0.2.1: a rule cannot mix IPv4 and IPv6",
            ),
            (
                "deny to 192.0.2.1/24",
                "line 1: invalid network \"192.0.2.1/24\": bits are set after the prefix length: use 192.0.2.0/24",
            ),
        ] {
            assert_eq!(parse(text).unwrap_err().to_string(), why);
        }
    }

    #[test]
    fn statements_are_printed_as_they_are_read() {
        let text = "default deny\nallow from 10.0.0.0/8 to any\ndeny from any to ::1\n\
                    remove deny from any to ::1\nban 192.0.2.7\nunban 192.0.2.7\nclear\n";
        let printed: String =
            parse(text).unwrap().iter().map(|(_, statement)| format!("{statement}\n")).collect();
        assert_eq!(printed, text);
        let listed = "\u{feff}ban ::ffff:192.0.2.10 \t\r\n; comment\n\nban 192.0.2.11#comment\n";
        let bans: Vec<_> = parse(listed).unwrap();
        let bans: Vec<_> = bans.iter().map(|(line, ban)| format!("{line} {ban}")).collect();
        assert_eq!(bans, ["1 ban 192.0.2.10", "4 ban 192.0.2.11"]);
        let short = parse("allow to ::1 # comment").unwrap();
        assert_eq!(short[0].1.to_string(), "allow from any to ::1");
    }

    proptest! {
        #[test]
        fn nothing_makes_it_panic(text in "(default|allow|deny|from|to|ban|any|::1|[ #\n]){0,12}|.{0,40}") {
            let _ = parse(&text);
        }
    }
}
