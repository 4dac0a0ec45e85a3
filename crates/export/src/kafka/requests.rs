//! Requests to brokers that rskafka has not, or only for its own batches: the number of a producer, and a batch that is
//! encoded already.

use std::io::{Read, Write};
use std::mem::take;
use std::sync::{Arc, Mutex, PoisonError};

use rskafka::protocol::api_key::ApiKey;
use rskafka::protocol::api_version::{ApiVersion, ApiVersionRange};
use rskafka::protocol::error::Error as ProtocolError;
use rskafka::protocol::messages::{
    ProduceResponse, ReadVersionedError, ReadVersionedType, RequestBody, WriteVersionedError,
    WriteVersionedType,
};
use rskafka::protocol::primitives::{Int16, Int32, Int64, NullableString, String_};
use rskafka::protocol::traits::{ReadType as _, WriteError, WriteType as _};

use super::message::ProducerId;

/// Milliseconds in which replicas must take a batch.
const REPLICAS_MS: i32 = 30_000;

/// All replicas in sync acknowledge.
const ALL: i16 = -1;

const fn versions(first: i16, last: i16) -> ApiVersionRange {
    ApiVersionRange::new(ApiVersion(Int16(first)), ApiVersion(Int16(last)))
}

/// A batch for a partition.
pub(crate) struct Produce {
    pub(crate) topic: Arc<str>,
    pub(crate) partition: i32,
    /// The batch, until the request is encoded.
    pub(crate) batch: Mutex<Vec<u8>>,
}

impl RequestBody for Produce {
    type ResponseBody = ProduceResponse;

    const API_KEY: ApiKey = ApiKey::Produce;
    const API_VERSION_RANGE: ApiVersionRange = versions(3, 7);
    const FIRST_TAGGED_FIELD_IN_REQUEST_VERSION: ApiVersion = ApiVersion(Int16(9));
}

impl<W: Write> WriteVersionedType<W> for Produce {
    fn write_versioned(&self, to: &mut W, _: ApiVersion) -> Result<(), WriteVersionedError> {
        let batch = take(&mut *self.batch.lock().unwrap_or_else(PoisonError::into_inner));
        NullableString(None).write(to)?;
        Int16(ALL).write(to)?;
        Int32(REPLICAS_MS).write(to)?;
        Int32(1).write(to)?;
        String_((*self.topic).to_owned()).write(to)?;
        Int32(1).write(to)?;
        Int32(self.partition).write(to)?;
        Int32(i32::try_from(batch.len()).map_err(WriteError::from)?).write(to)?;
        Ok(to.write_all(&batch).map_err(WriteError::from)?)
    }
}

/// A new producer.
pub(crate) struct InitProducer;

impl RequestBody for InitProducer {
    type ResponseBody = Producer;

    const API_KEY: ApiKey = ApiKey::InitProducerId;
    const API_VERSION_RANGE: ApiVersionRange = versions(0, 1);
    const FIRST_TAGGED_FIELD_IN_REQUEST_VERSION: ApiVersion = ApiVersion(Int16(2));
}

impl<W: Write> WriteVersionedType<W> for InitProducer {
    fn write_versioned(&self, to: &mut W, _: ApiVersion) -> Result<(), WriteVersionedError> {
        NullableString(None).write(to)?;
        Ok(Int32(REPLICAS_MS).write(to)?)
    }
}

/// The answer to [`InitProducer`].
pub(crate) struct Producer {
    pub(crate) error: Option<ProtocolError>,
    pub(crate) id: ProducerId,
}

impl<R: Read> ReadVersionedType<R> for Producer {
    fn read_versioned(from: &mut R, _: ApiVersion) -> Result<Self, ReadVersionedError> {
        Int32::read(from)?;
        let error = ProtocolError::new(Int16::read(from)?.0);
        let (id, epoch) = (Int64::read(from)?.0, Int16::read(from)?.0);
        Ok(Self { error, id: ProducerId { id, epoch } })
    }
}
