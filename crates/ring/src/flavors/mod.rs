//! The flavours: one file each, its figure of the paper at the head.
//!
//! A flavour is a type that implements [`Flavor`] and a line in the list below. The model, loom,
//! drop and threaded tests and the bench run over [`Kind::ALL`], so it is tested at once.

use crate::slots::InvalidCapacity;
use alloc::borrow::ToOwned;
use alloc::string::String;
use core::{error::Error, fmt, str::FromStr};

mod fastforward;
mod flavor;
mod lamport;
mod lock;
mod mcring;
mod vernier;

pub use flavor::Flavor;
pub(crate) use flavor::{Make, RawConsumer, RawProducer, Shape};
pub use vernier::Vernier;

/// A name that is not in [`Kind::ALL`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownKind {
    /// The name as given.
    pub name: String,
}

impl fmt::Display for UnknownKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown ring {:?}: use", self.name)?;
        for (i, kind) in Kind::ALL.into_iter().enumerate() {
            let separator = match i {
                0 => "",
                _ if i + 1 == Kind::ALL.len() => " or",
                _ => ",",
            };
            write!(f, "{separator} {kind}")?;
        }
        Ok(())
    }
}

impl Error for UnknownKind {}

/// Any of the flavours, chosen at run time: a `match` on every call.
pub struct Any;

macro_rules! flavors {
    ($($(#[$meta:meta])* $variant:ident = $name:literal: $flavor:ty,)*) => {
        /// The kinds of rings: four of the paper, and ours.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Kind {
            $($(#[$meta])* $variant,)*
        }

        impl Kind {
            /// All kinds, slowest first.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$variant),*];

            /// The name that [`FromStr`] reads.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }

        impl FromStr for Kind {
            type Err = UnknownKind;

            fn from_str(name: &str) -> Result<Self, UnknownKind> {
                match name {
                    $($name => Ok(Self::$variant),)*
                    _ => Err(UnknownKind { name: name.to_owned() }),
                }
            }
        }

        pub enum AnyProducer<T: Send> {
            $($variant(<$flavor as Flavor<T>>::Producer),)*
        }

        pub enum AnyConsumer<T: Send> {
            $($variant(<$flavor as Flavor<T>>::Consumer),)*
        }

        impl<T: Send> Flavor<T> for Any {
            type Producer = AnyProducer<T>;
            type Consumer = AnyConsumer<T>;
        }

        /// Both ends of a ring of this kind.
        pub(crate) fn any<T: Send>(
            kind: Kind,
            shape: Shape,
        ) -> Result<(AnyProducer<T>, AnyConsumer<T>), InvalidCapacity> {
            Ok(match kind {
                $(Kind::$variant => {
                    let (producer, consumer) = <$flavor>::ring(shape)?;
                    (AnyProducer::$variant(producer), AnyConsumer::$variant(consumer))
                })*
            })
        }

        impl<T: Send> RawProducer<T> for AnyProducer<T> {
            #[inline]
            fn push(&mut self, value: T) -> Result<(), T> {
                match self { $(Self::$variant(p) => p.push(value),)* }
            }

            #[inline]
            fn push_burst(&mut self, values: &[T]) -> usize
            where
                T: Copy,
            {
                match self { $(Self::$variant(p) => p.push_burst(values),)* }
            }

            #[inline]
            fn free(&mut self, wanted: usize) -> usize {
                match self { $(Self::$variant(p) => p.free(wanted),)* }
            }

            #[inline]
            fn fill(&mut self, max: usize, make: impl FnMut(usize) -> T) -> usize {
                match self { $(Self::$variant(p) => p.fill(max, make),)* }
            }

            #[inline]
            fn flush(&mut self) {
                match self { $(Self::$variant(p) => p.flush(),)* }
            }
        }

        impl<T: Send> RawConsumer<T> for AnyConsumer<T> {
            #[inline]
            fn pop(&mut self) -> Option<T> {
                match self { $(Self::$variant(c) => c.pop(),)* }
            }

            #[inline]
            fn peek(&mut self, max: usize) -> &[T] {
                match self { $(Self::$variant(c) => c.peek(max),)* }
            }

            #[inline]
            fn release(&mut self, n: usize) {
                match self { $(Self::$variant(c) => c.release(n),)* }
            }

            #[inline]
            fn flush(&mut self) {
                match self { $(Self::$variant(c) => c.flush(),)* }
            }
        }
    };
}

flavors! {
    /// LockRingBuffer (figure 2): a spin lock around every call.
    Lock = "lock": lock::Lock,
    /// BasicRingBuffer (figure 3), Lamport's: two shared indices, published after every item.
    Lamport = "lamport": lamport::Lamport,
    /// FastForward (figure 4): a full/empty flag in each slot, no shared index.
    FastForward = "fastforward": fastforward::FastForward,
    /// MCRingBuffer (figure 5): cached copies of the indices, on cache lines of their own, and
    /// published in batches.
    McRing = "mcring": mcring::McRing,
    /// Ours: a fine index beside a coarse one, runs, prefetching. The fastest.
    #[default]
    Vernier = "vernier": Vernier,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
