//! Tests of the whole product: all arrangements compared with the reference, with oracles and with
//! the ground truth of generated traffic.

mod common;
#[cfg(feature = "full")]
mod corpus;
mod cuts;
mod equality;
mod facts;
mod filter;
mod live;
mod oracle;
mod paths;
mod payload_truth;
mod responses;
mod slices;
mod statistics;
mod tcp;
mod times;
mod traces;
mod truth;
mod tunnels;
