//! Which packets of a tunnel are looked at.

use std::fmt;
use std::str::FromStr;

/// Whether tunnels are opened, and whose packets count afterwards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Tunnels {
    /// None is opened: a tunnel is traffic between its two ends.
    Outer,
    /// What a tunnel carries, instead of the tunnel.
    #[default]
    Inner,
    /// A tunnel and what it carries.
    Both,
}

impl Tunnels {
    /// All there are.
    pub const ALL: [Self; 3] = [Self::Outer, Self::Inner, Self::Both];

    /// The name by which [`FromStr`] knows it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Outer => "outer",
            Self::Inner => "inner",
            Self::Both => "both",
        }
    }
}

impl fmt::Display for Tunnels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Tunnels {
    type Err = UnknownTunnels;

    fn from_str(name: &str) -> Result<Self, UnknownTunnels> {
        let named = Self::ALL.into_iter().find(|tunnels| tunnels.name() == name);
        named.ok_or_else(|| UnknownTunnels(name.to_owned()))
    }
}

/// A name that is none of [`Tunnels::ALL`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownTunnels(pub String);

impl fmt::Display for UnknownTunnels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Tunnels::ALL.map(Tunnels::name).join(", ");
        write!(f, "of tunnels there is no {:?}; there are {names}", self.0)
    }
}

impl std::error::Error for UnknownTunnels {}
