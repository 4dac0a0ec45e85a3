//! Filter expressions and their compiled programs.

use std::fmt;
use std::sync::{Arc, OnceLock};

use ringtap_wire::LinkType;
use thiserror::Error;

use crate::bpf::sys::{Library, Program};

/// Most bytes of an expression. libpcap takes seconds for one of this length, and minutes for one four times as long.
const LENGTH_MOST: usize = 4 << 10;

/// Number of raw IP in libpcap on Linux; it differs from that in files.
const DLT_RAW: u16 = 12;
/// Number of LLC over ATM in libpcap on Linux.
const DLT_ATM_RFC1483: u16 = 11;

/// Bytes of the header of loopback frames, [`LinkType::NULL`] and [`LinkType::LOOP`]: an address family, with the byte
/// order and numbers of an unknown system. libpcap assumes this machine's, so the header is skipped and the IP version
/// decides.
const FAMILY: usize = 4;

/// libpcap's message for a program that selects no frame. It is an error for libpcap, but valid for one link type:
/// `arp` on a raw IP link.
const SELECTS_NOTHING: &str = "expression rejects all packets";

/// Why an expression cannot be compiled.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ExpressionError {
    /// The library is missing or incomplete.
    #[error(
        "filter expressions need libpcap, which cannot be loaded (install the Debian package libpcap0.8): {0}"
    )]
    NoLibrary(String),
    /// Invalid for all link types; the reason is libpcap's, for Ethernet.
    #[error("invalid filter expression {text:?}: {reason}")]
    Invalid {
        /// The expression.
        text: String,
        /// Message of libpcap.
        reason: String,
    },
    /// Longer than the maximum.
    #[error("filter expression of {0} bytes is too long: use at most {LENGTH_MOST}")]
    TooLong(usize),
}

/// A filter expression in the language of pcap-filter(7).
pub struct Expression {
    /// The text that is compiled.
    source: String,
    /// The text that plans and reports show.
    text: String,
    library: Arc<Library>,
    /// Compiled at the first frame of the link type; Ethernet at once. `None`: invalid for the link type.
    rules: [(LinkType, OnceLock<Option<Rule>>); LinkType::SUPPORTED.len()],
}

enum Rule {
    Program(Program),
    Nothing,
}

impl Expression {
    /// Compiles an expression. The system's resolver looks up names of hosts and networks in it.
    ///
    /// # Errors
    /// libpcap cannot be loaded, or rejects the expression for all link types.
    pub fn new(text: &str) -> Result<Self, ExpressionError> {
        if text.len() > LENGTH_MOST {
            return Err(ExpressionError::TooLong(text.len()));
        }
        let library = Library::load().map_err(ExpressionError::NoLibrary)?;
        let rules = LinkType::SUPPORTED.map(|link| (link, OnceLock::new()));
        let expression = Self { source: text.to_owned(), text: text.to_owned(), library, rules };
        let invalid = |reason| ExpressionError::Invalid { text: text.to_owned(), reason };
        match expression.compile(LinkType::ETHERNET) {
            Ok(Rule::Nothing) => return Err(invalid("no frame can match".to_owned())),
            Ok(rule) => {
                let mut rules = expression.rules.iter();
                if let Some((_, ethernet)) = rules.find(|(of, _)| *of == LinkType::ETHERNET) {
                    ethernet.get_or_init(|| Some(rule));
                }
            }
            // It may be valid for radio frames.
            Err(reason) => {
                let means_something = |&link: &LinkType| expression.rule(link).is_some();
                if !LinkType::SUPPORTED.iter().any(means_something) {
                    return Err(invalid(reason));
                }
            }
        }
        Ok(expression)
    }

    /// The text of the expression, for plans and reports.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The same expression with another text for plans and reports.
    #[must_use]
    pub fn shown_as(self, text: &str) -> Self {
        Self { text: text.to_owned(), ..self }
    }

    /// Returns true if the frame is selected: `frame` has the captured bytes, `original_len` is its length on the wire.
    /// `None` if the expression is invalid for this link type.
    pub fn selects(&self, link: LinkType, frame: &[u8], original_len: u32) -> Option<bool> {
        let frame = match link {
            LinkType::NULL | LinkType::LOOP => frame.get(FAMILY..).unwrap_or_default(),
            _ => frame,
        };
        Some(match self.rule(link)? {
            Rule::Program(program) => program.selects(frame, original_len),
            Rule::Nothing => false,
        })
    }

    fn rule(&self, link: LinkType) -> Option<&Rule> {
        let (_, rule) = self.rules.iter().find(|(of, _)| *of == link)?;
        rule.get_or_init(|| self.compile(link).ok()).as_ref()
    }

    fn compile(&self, link: LinkType) -> Result<Rule, String> {
        let number = match link {
            LinkType::RAW | LinkType::RAW_OPENBSD | LinkType::NULL | LinkType::LOOP => DLT_RAW,
            LinkType::ATM_RFC1483 => DLT_ATM_RFC1483,
            _ => link.0,
        };
        match Program::compile(&self.library, number, &self.source) {
            Ok(program) => Ok(Rule::Program(program)),
            Err(reason) if reason == SELECTS_NOTHING => Ok(Rule::Nothing),
            Err(reason) => Err(reason),
        }
    }
}

impl fmt::Debug for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Expression").field(&self.text).finish()
    }
}
