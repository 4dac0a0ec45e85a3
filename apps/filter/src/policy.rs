//! What happens to packets that no rule is about.

/// The default of a set of rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// They pass.
    Allow,
    /// They are refused.
    Deny,
}
