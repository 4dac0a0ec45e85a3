//! Replaces `kafka/` in a program without the feature `kafka`.

use std::io;

use crate::{InvalidTopic, KafkaTopic, Settings};

/// Without values: it cannot be created.
pub(crate) enum Access {}

impl Access {
    pub(crate) fn new(_topic: &KafkaTopic, _settings: &Settings) -> io::Result<Self> {
        Err(io::Error::other(InvalidTopic::NotBuilt("kafka")))
    }
}
