//! The words of a question: numbers, names, texts in quotation marks, and signs.

/// A word, and where it begins in the question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) at: usize,
    pub(crate) is: Is,
}

/// What a word is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Is {
    Word(String),
    Quoted(String),
    /// One of [`SIGNS`].
    Sign(&'static str),
}

/// Longer ones first.
const SIGNS: [&str; 13] = ["&&", "||", "==", "!=", "!~", "<=", ">=", "(", ")", "!", "=", "<", ">"];

/// A question that cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}\n  {question}\n  {}^", " ".repeat(question.chars().take(*.at).count()))]
pub struct Misunderstood {
    question: String,
    /// Characters before the fault.
    at: usize,
    what: String,
}

impl Misunderstood {
    /// `at` in bytes.
    pub(crate) fn new(question: &str, at: usize, what: impl Into<String>) -> Self {
        // Line breaks would move the mark.
        let line: String =
            question.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
        let at = question.get(..at).map_or(0, |before| before.chars().count());
        Self { question: line, at, what: what.into() }
    }
}

/// The words of a question.
pub(crate) fn tokens(question: &str) -> Result<Vec<Token>, Misunderstood> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(first) = question[at..].chars().next() {
        let rest = &question[at..];
        if first.is_whitespace() {
            at += first.len_utf8();
        } else if let quote @ ('"' | '\'') = first {
            let Some(len) = rest[1..].find(quote) else {
                let what = format!("a text begins with {quote} and does not end");
                return Err(Misunderstood::new(question, at, what));
            };
            tokens.push(Token { at, is: Is::Quoted(rest[1..=len].to_owned()) });
            at += len + 2;
        } else if let Some(sign) =
            SIGNS.into_iter().chain(["~"]).find(|sign| rest.starts_with(sign))
        {
            tokens.push(Token { at, is: Is::Sign(sign) });
            at += sign.len();
        } else {
            let ends = |letter: char| letter.is_whitespace() || "\"'()!=<>~&|".contains(letter);
            // A lone & or | is a word of its own.
            let len = rest
                .find(ends)
                .filter(|&len| len > 0)
                .unwrap_or_else(|| if ends(first) { first.len_utf8() } else { rest.len() });
            tokens.push(Token { at, is: Is::Word(rest[..len].to_owned()) });
            at += len;
        }
    }
    Ok(tokens)
}

impl Is {
    /// The word nearly as it was written.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Word(word) => word.clone(),
            Self::Quoted(text) => format!("{text:?}"),
            Self::Sign(sign) => (*sign).to_owned(),
        }
    }
}

/// A reader of the words of a question.
pub(crate) struct Words<'a> {
    question: &'a str,
    tokens: Vec<Token>,
    next: usize,
}

impl<'a> Words<'a> {
    pub(crate) fn new(question: &'a str) -> Result<Self, Misunderstood> {
        Ok(Self { question, tokens: tokens(question)?, next: 0 })
    }

    pub(crate) fn peek(&self) -> Option<&Is> {
        self.tokens.get(self.next).map(|token| &token.is)
    }

    /// The next word is passed over if it is this one.
    pub(crate) fn accept(&mut self, word: &str) -> bool {
        let is = match self.peek() {
            Some(Is::Word(own)) => own.eq_ignore_ascii_case(word),
            Some(Is::Sign(own)) => *own == word,
            _ => false,
        };
        self.next += usize::from(is);
        is
    }

    pub(crate) fn take(&mut self) -> Option<Is> {
        let token = self.tokens.get(self.next)?;
        self.next += 1;
        Some(token.is.clone())
    }

    /// The next word or text; `wanted` says what it shall be.
    pub(crate) fn word(&mut self, wanted: &str) -> Result<String, Misunderstood> {
        match self.peek() {
            Some(Is::Word(word) | Is::Quoted(word)) => {
                let word = word.clone();
                self.next += 1;
                Ok(word)
            }
            _ => Err(self.expected(wanted)),
        }
    }

    /// The error that the next word is something else.
    pub(crate) fn expected(&self, wanted: &str) -> Misunderstood {
        let found = self.peek().map_or_else(|| "the end".to_owned(), Is::text);
        let at = self.tokens.get(self.next).map_or(self.question.len(), |token| token.at);
        Misunderstood::new(self.question, at, format!("expected {wanted}, found {found}"))
    }

    /// An error at the word before the next one.
    pub(crate) fn wrong(&self, what: impl Into<String>) -> Misunderstood {
        let token = self.next.checked_sub(1).and_then(|last| self.tokens.get(last));
        Misunderstood::new(self.question, token.map_or(0, |token| token.at), what)
    }
}
