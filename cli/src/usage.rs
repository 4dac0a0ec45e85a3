//! Commands that cannot be carried out as they stand.

/// What is wrong with the command: exit code 2.
#[derive(Debug)]
pub(crate) struct Usage(pub(crate) String);

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

impl Usage {
    /// What `error` says, as a matter of usage.
    pub(crate) fn of(error: impl std::fmt::Display) -> anyhow::Error {
        Self(error.to_string()).into()
    }
}
