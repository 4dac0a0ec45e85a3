//! A message, and what became of it.

use crate::RecordTotals;

/// A message.
#[derive(Clone, Copy)]
pub(crate) struct Message<'a> {
    /// Messages with equal keys are in one partition.
    pub(crate) key: &'a [u8],
    /// The content.
    pub(crate) value: &'a [u8],
    /// Names and values.
    pub(crate) headers: &'a [(&'a str, &'a [u8])],
    /// The flows that it contains; `None` if it is not one of the output's messages, but about them.
    pub(crate) flows: Option<RecordTotals>,
}

/// The result of sending a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// All replicas in sync have it.
    Taken,
    /// The topic does not take so much at once.
    TooLarge,
    /// The topic will never take it.
    Refused(String),
    /// A batch before it was not taken.
    OutOfOrder,
    /// The broker does not know the producer any more.
    UnknownProducer,
    /// Connect and send again.
    Broken(String),
}

/// What identifies a producer to brokers, so that they recognise batches that are sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProducerId {
    pub(crate) id: i64,
    pub(crate) epoch: i16,
}

impl ProducerId {
    /// Brokers do not recognise repetitions.
    pub(crate) const NONE: Self = Self { id: -1, epoch: -1 };
}
