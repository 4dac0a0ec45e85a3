//! Choices by name: an enum, its names, and the error for an unknown name.

use std::fmt;

/// A name that is not among the choices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownChoice {
    /// The kind of choice, in the singular.
    pub what: &'static str,
    /// The name as given.
    pub given: String,
    /// All valid names.
    pub known: &'static [&'static str],
}

impl fmt::Display for UnknownChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, given, known } = self;
        write!(f, "unknown {what} {given:?}")?;
        match known {
            [] => Ok(()),
            [only] => write!(f, ": use {only}"),
            [rest @ .., last] => write!(f, ": use {} or {last}", rest.join(", ")),
        }
    }
}

impl std::error::Error for UnknownChoice {}

/// Makes an enum whose variants users choose by name: `ALL`, `NAMES`, `name`, [`FromStr`](std::str::FromStr) with
/// [`UnknownChoice`], and [`Display`](fmt::Display).
///
/// ```
/// ringtap_base::choices! {
///     /// What a bird eats.
///     pub enum Food: "food" {
///         /// Seeds.
///         Seeds = "seeds",
///         /// Fish.
///         Fish = "fish",
///     }
/// }
/// assert_eq!("fish".parse(), Ok(Food::Fish));
/// let error = "cake".parse::<Food>().unwrap_err().to_string();
/// assert_eq!(error, "unknown food \"cake\": use seeds or fish");
/// ```
#[macro_export]
macro_rules! choices {
    ($(#[$meta:meta])* $vis:vis enum $type:ident: $what:literal {
        $($(#[$of:meta])* $variant:ident = $name:literal,)+
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        $vis enum $type {
            $($(#[$of])* $variant,)+
        }

        impl $type {
            /// All variants, in order.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$variant),+];

            /// Their names, in the same order.
            pub const NAMES: &'static [&'static str] = &[$($name),+];

            /// The name of this variant.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }
        }

        impl ::std::str::FromStr for $type {
            type Err = $crate::UnknownChoice;

            fn from_str(name: &str) -> Result<Self, $crate::UnknownChoice> {
                match name {
                    $($name => Ok(Self::$variant),)+
                    _ => {
                        let (what, given) = ($what, name.to_owned());
                        Err($crate::UnknownChoice { what, given, known: Self::NAMES })
                    }
                }
            }
        }

        impl ::std::fmt::Display for $type {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.pad(self.name())
            }
        }
    };
}
