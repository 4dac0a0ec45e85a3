//! Pauses between attempts to connect. They double, from 0.1 to 5 seconds.

use std::time::{Duration, Instant};

use crate::shared::now;

const MIN: Duration = Duration::from_millis(100);
const MAX: Duration = Duration::from_secs(5);

/// When to try again.
#[derive(Default)]
pub(crate) struct Pauses {
    /// The last pause.
    pause: Duration,
    /// The time of the next attempt; `None`: at once.
    next: Option<Instant>,
    /// When the connection was opened, while it is open.
    since: Option<Instant>,
}

impl Pauses {
    pub(crate) const fn new() -> Self {
        Self { pause: Duration::ZERO, next: None, since: None }
    }

    /// The time until the next attempt.
    pub(crate) fn left(&self) -> Duration {
        self.next.map_or(Duration::ZERO, |next| next.saturating_duration_since(now()))
    }

    /// An attempt failed.
    pub(crate) fn failed(&mut self) {
        self.pause = (self.pause * 2).clamp(MIN, MAX);
        self.next = Some(now() + self.pause);
    }

    /// An attempt succeeded.
    pub(crate) fn opened(&mut self) {
        self.since = Some(now());
    }

    /// The connection broke, if there was one. A peer that closes each connection at once is handled as one that is
    /// down.
    pub(crate) fn broke(&mut self) {
        match self.since.take() {
            Some(since) if since.elapsed() > MAX => *self = Self::new(),
            Some(_) => self.failed(),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_and_begin_again_after_a_long_connection() {
        let mut pauses = Pauses::new();
        pauses.broke();
        assert!(pauses.left().is_zero(), "there was no connection");
        let all: [_; 8] = std::array::from_fn(|_| {
            pauses.failed();
            pauses.pause.as_millis()
        });
        assert_eq!(all, [100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000]);
        assert!(pauses.left() > Duration::from_secs(4));

        pauses.opened();
        pauses.broke();
        assert_eq!(pauses.pause, MAX, "closed at once");
        pauses.opened();
        pauses.since = pauses.since.map(|since| since - 2 * MAX);
        pauses.broke();
        assert!(pauses.left().is_zero());
    }
}
