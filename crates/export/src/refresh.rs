//! When templates are sent again: by time or by count, whichever comes first.

use std::time::Duration;

/// After so much time, or so many messages.
///
/// ```
/// use ringtap_export::Refresh;
/// assert_eq!(Refresh::DEFAULT.messages, 4096);
/// assert_eq!(Refresh::DEFAULT.every.as_secs(), 600);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refresh {
    /// Wall-clock time.
    pub every: Duration,
    /// Messages since the last templates.
    pub messages: u64,
}

impl Refresh {
    /// Every ten minutes or 4,096 messages.
    pub const DEFAULT: Self = Self { every: Duration::from_secs(600), messages: 4096 };
}

impl Default for Refresh {
    fn default() -> Self {
        Self::DEFAULT
    }
}
