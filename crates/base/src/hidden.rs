//! Secrets, and what is shown instead of them in messages, reports and metrics.
//!
//! Invariants: a secret that was added is not shown any more, also after a newer one has its name; the number of secrets
//! is bounded, the oldest are dropped first.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock};

/// Most secrets that are hidden at a time.
const MOST: usize = 1_024;

/// Shorter ones are shown: they are parts of other words, and no secrets.
const LEAST_BYTES: usize = 4;

static ANY: AtomicBool = AtomicBool::new(false);
static ALL: RwLock<Hidden> = RwLock::new(Hidden(VecDeque::new()));

/// Secrets, each with the text that is shown.
struct Hidden(VecDeque<(String, String)>);

impl Hidden {
    fn add(&mut self, secret: &str, shown: &str) {
        let quoted = format!("{secret:?}");
        let escaped = quoted.trim_matches('"');
        for secret in [secret, escaped] {
            if secret.len() < LEAST_BYTES || self.0.iter().any(|(own, _)| own == secret) {
                continue;
            }
            if self.0.len() == MOST {
                self.0.pop_front();
            }
            self.0.push_back((secret.to_owned(), shown.to_owned()));
        }
    }

    fn replace<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut found: Vec<_> =
            self.0.iter().filter(|(secret, _)| text.contains(&**secret)).collect();
        // One may be part of another.
        found.sort_by_key(|(secret, _)| std::cmp::Reverse(secret.len()));
        found.iter().fold(Cow::Borrowed(text), |text, (secret, shown)| {
            Cow::Owned(text.replace(&**secret, shown))
        })
    }
}

/// Shows this text instead of a secret from now on.
pub fn hide(secret: &str, shown: &str) {
    ALL.write().unwrap_or_else(PoisonError::into_inner).add(secret, shown);
    ANY.store(true, Ordering::Release);
}

/// The text without secrets.
pub fn without_secrets(text: &str) -> Cow<'_, str> {
    if !ANY.load(Ordering::Acquire) {
        return Cow::Borrowed(text);
    }
    ALL.read().unwrap_or_else(PoisonError::into_inner).replace(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_replaced_the_longest_first_and_short_ones_stay() {
        let mut all = Hidden(VecDeque::new());
        for (secret, shown) in
            [("token", "${A}"), ("token-2", "${B}"), ("abc", "${C}"), ("a\"bcd", "${D}")]
        {
            all.add(secret, shown);
        }
        let text = "abc token token-2 a\"bcd \"a\\\"bcd\"";
        assert_eq!(all.replace(text), "abc ${A} ${B} ${D} \"${D}\"");
        assert!(matches!(all.replace("nothing"), Cow::Borrowed(_)));
    }

    #[test]
    fn the_number_of_secrets_is_bounded() {
        let mut all = Hidden(VecDeque::new());
        (0..MOST + 2).for_each(|number| all.add(&format!("secret{number:05}"), "x"));
        assert_eq!(all.0.len(), MOST);
        assert_eq!(all.replace("secret00001 secret00002"), "secret00001 x");
    }
}
