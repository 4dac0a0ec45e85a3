//! An expression, and its programs.

use std::fmt;
use std::sync::{Arc, OnceLock};

use ringtap_wire::LinkType;
use thiserror::Error;

use crate::bpf::sys::{Library, Program};

/// The longest expression: libpcap takes seconds for one of this length, and minutes for one four times as long.
const LENGTH_MOST: usize = 4 << 10;

/// What libpcap calls raw IP on Linux; files have other numbers for it.
const DLT_RAW: u16 = 12;
/// What libpcap calls LLC over ATM on Linux.
const DLT_ATM_RFC1483: u16 = 11;

/// The header of loopback frames, [`LinkType::NULL`] and [`LinkType::LOOP`]: an address family, in the byte order and by
/// the numbers of an unknown system. libpcap takes both for this machine's; what follows tells its version.
const FAMILY: usize = 4;

/// How libpcap says that a program would select nothing at all, which it takes for a mistake. Of one link type, it is
/// an answer: nothing on a link of bare IP is `arp`.
const SELECTS_NOTHING: &str = "expression rejects all packets";

/// Why there is no expression.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ExpressionError {
    /// The library is not on this machine, or not whole.
    #[error(
        "filter expressions are read by libpcap, which cannot be loaded (Debian package libpcap0.8): {0}"
    )]
    NoLibrary(String),
    /// It means nothing for any link type; what libpcap says of Ethernet.
    #[error("the filter expression {text:?}: {reason}")]
    Invalid {
        /// The expression.
        text: String,
        /// Why.
        reason: String,
    },
    /// Longer than libpcap can be asked to read.
    #[error("a filter expression has at most {LENGTH_MOST} bytes, not {0}")]
    TooLong(usize),
}

/// See the crate.
pub struct Expression {
    text: String,
    library: Arc<Library>,
    /// Compiled when the first frame of its link type comes, Ethernet's at once. None: it means nothing there.
    rules: [(LinkType, OnceLock<Option<Rule>>); LinkType::SUPPORTED.len()],
}

enum Rule {
    Program(Program),
    Nothing,
}

impl Expression {
    /// Compiles an expression. Names of hosts and networks in it are looked up by the system's resolver.
    ///
    /// # Errors
    /// If libpcap cannot be loaded, or makes nothing of the expression for any link type.
    pub fn new(text: &str) -> Result<Self, ExpressionError> {
        if text.len() > LENGTH_MOST {
            return Err(ExpressionError::TooLong(text.len()));
        }
        let library = Library::load().map_err(ExpressionError::NoLibrary)?;
        let rules = LinkType::SUPPORTED.map(|link| (link, OnceLock::new()));
        let expression = Self { text: text.to_owned(), library, rules };
        let invalid = |reason| ExpressionError::Invalid { text: text.to_owned(), reason };
        match expression.compile(LinkType::ETHERNET) {
            Ok(Rule::Nothing) => return Err(invalid("no frame can be so".to_owned())),
            Ok(rule) => {
                let mut rules = expression.rules.iter();
                if let Some((_, ethernet)) = rules.find(|(of, _)| *of == LinkType::ETHERNET) {
                    ethernet.get_or_init(|| Some(rule));
                }
            }
            // It may be one about radio frames.
            Err(reason) => {
                let means_something = |&link: &LinkType| expression.rule(link).is_some();
                if !LinkType::SUPPORTED.iter().any(means_something) {
                    return Err(invalid(reason));
                }
            }
        }
        Ok(expression)
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether a frame is selected, of which `frame` was captured and `original_len` bytes were on the wire; `None` if
    /// the expression has no meaning for this link type.
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
        match Program::compile(&self.library, number, &self.text) {
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
