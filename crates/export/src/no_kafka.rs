//! Replaces `kafka/` in a program without the feature `kafka`.

use std::io;

use crate::launch::Ready;
use crate::place::Place;
use crate::settings::Settings;
use crate::topic::{InvalidTopic, KafkaTopic};

impl Place for KafkaTopic {
    fn prepare(&self, _: &Settings) -> io::Result<Ready> {
        Err(io::Error::other(InvalidTopic::NotBuilt("kafka")))
    }
}
