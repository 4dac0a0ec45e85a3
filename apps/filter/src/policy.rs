//! The policy for packets without a matching rule.

/// The default of a rule set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Packets that match no rule pass.
    Allow,
    /// Packets that match no rule are dropped.
    Deny,
}
