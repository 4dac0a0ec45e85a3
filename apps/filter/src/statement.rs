//! What can be said about who may send to whom, one statement a line.
//!
//! ```text
//! default deny                                     what no rule is about
//! allow from 10.0.0.0/8 to any                     a rule; later rules count before earlier ones
//! deny from any to 10.1.2.0-10.1.2.99
//! remove allow from 10.0.0.0/8 to any              takes the latest such rule out
//! ban 192.0.2.7                                    may send to nobody, whatever rules say
//! unban 192.0.2.7
//! clear                                            no rules and no bans from here on
//! ```
//!
//! `from` and `to` may be left out: `any`. Behind `#` is comment. A dump is made of the same lines.

use std::fmt;
use std::str::FromStr;

use super::span::{Span, SpanError};
use crate::policy::Policy;

/// Who may send to whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
    /// What happens to packets that no rule is about.
    Default(Policy),
    /// Adds a rule, which counts before all earlier ones.
    Add(Rule),
    /// Takes the latest rule of these words out.
    Remove(Rule),
    /// Sources that may send to nobody.
    Ban(Span),
    /// Takes back a ban of these words.
    Unban(Span),
    /// Takes out all rules and bans.
    Clear,
}

/// Why a line is no statement.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StatementError {
    /// Unknown first word.
    #[error("\"{0}\" is no statement; there are default, allow, deny, remove, ban, unban, clear")]
    Unknown(String),
    /// Something is missing behind a word.
    #[error("nothing follows \"{0}\"")]
    Missing(String),
    /// Something is left over.
    #[error("\"{0}\" was not expected")]
    Unexpected(String),
    /// `default` takes `allow` or `deny`.
    #[error("\"{0}\" is neither allow nor deny")]
    Policy(String),
    /// Both families in one rule.
    #[error("from {0} to {1}: IPv4 never sends to IPv6, nor the other way round")]
    Families(Span, Span),
    /// Not a range of addresses.
    #[error(transparent)]
    Span(#[from] SpanError),
}

/// What is wrong with a text of statements, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {error}")]
pub struct LineError {
    /// From 1.
    pub line: usize,
    /// What is wrong there.
    #[source]
    pub error: StatementError,
}

/// Reads statements, with their lines (from 1). All or nothing.
pub fn parse(text: &str) -> Result<Vec<(usize, Statement)>, LineError> {
    let lines = (1..).zip(text.lines());
    lines
        .map(|(line, text)| (line, text.split('#').next().unwrap_or("").trim()))
        .filter(|(_, text)| !text.is_empty())
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
                "line 3: \"alow\" is no statement; there are default, allow, deny, remove, ban, unban, clear",
            ),
            ("default", "line 1: nothing follows \"default\""),
            ("default maybe", "line 1: \"maybe\" is neither allow nor deny"),
            ("allow\nallow from", "line 2: nothing follows \"from\""),
            ("allow from any from any", "line 1: \"from\" was not expected"),
            ("ban ::1 now", "line 1: \"now\" was not expected"),
            ("remove all", "line 1: \"all\" is neither allow nor deny"),
            (
                "deny from ::1 to 192.0.2.1",
                "line 1: from ::1 to 192.0.2.1: IPv4 never sends to IPv6, nor the other way round",
            ),
            (
                "deny to 192.0.2.1/24",
                "line 1: 192.0.2.1/24 has bits behind its length: 192.0.2.0/24 is meant?",
            ),
        ] {
            assert_eq!(parse(text).unwrap_err().to_string(), why);
        }
    }

    #[test]
    fn statements_are_said_as_they_are_read() {
        let text = "default deny\nallow from 10.0.0.0/8 to any\ndeny from any to ::1\n\
                    remove deny from any to ::1\nban 192.0.2.7\nunban 192.0.2.7\nclear\n";
        let said: String =
            parse(text).unwrap().iter().map(|(_, statement)| format!("{statement}\n")).collect();
        assert_eq!(said, text);
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
