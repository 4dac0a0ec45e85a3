//! Messages of a Kafka topic: one for each flow record, or for each of its directions; or states of a run in chunks.
//!
//! ```text
//! worker: record ─▶ RecordEncoder ─▶ block of keys and values ─ ring ─▶ TopicSink ─▶ Producer ─▶ Session ─▶ brokers
//!                                                                                      ▲
//! state of a part ─▶ PartSender ─ ring ─▶ PartSink: chunks ────────────────────────────┘
//! ```
//!
//! A [`Producer`](producer::Producer) delivers any messages: it numbers them, chooses partitions, and repeats what is not
//! acknowledged. The connections are those of rskafka, on a runtime of the writer's thread, which runs while the writer
//! waits.
//!
//! Invariants: messages with the same key are in one partition, in the order of their numbers, as long as the topic has
//! the same partitions. A message counts as sent when all replicas in sync have it.

mod batch;
mod flow_message;
mod message;
mod partition;
mod producer;
mod records;
mod requests;
mod runtime;
mod session;
mod start;
mod states;
mod statistics;
