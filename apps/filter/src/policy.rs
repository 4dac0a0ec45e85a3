//! The policy for packets without a matching rule.

/// The default of a rule set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// They pass.
    Allow,
    /// They are dropped.
    Deny,
}
