//! The connections to the brokers of a topic: reading its partitions, and sending batches to their leaders.

use std::collections::BTreeMap;
use std::error::Error as StdError;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rskafka::BackoffConfig;
use rskafka::client::error::{Error, ProtocolError};
use rskafka::client::partition::{Compression as Codec, PartitionClient, UnknownTopicHandling};
use rskafka::client::{Client, ClientBuilder, Credentials, SaslConfig};
use rskafka::record::Record;
use tokio::task::JoinSet;

use super::quota::unless_over_quota;
use crate::{Compression, KafkaTopic, Login, Mechanism, Settings};

/// Most bytes of an answer: the list of all topics of a large cluster takes less.
const ANSWER_MAX: usize = 16 << 20;

/// Most partitions of a topic: each that is used has a connection.
const PARTITIONS_MAX: usize = 512;

/// Most bytes that are read from a file with a password.
const PASSWORD_MAX: u64 = 4 << 10;

/// A topic, and all that is needed to connect.
pub(crate) struct Access {
    topic: KafkaTopic,
    sasl: Option<SaslConfig>,
    #[cfg(feature = "tls")]
    tls: Option<Arc<rustls::ClientConfig>>,
}

impl Access {
    /// Reads the password and the certificates.
    ///
    /// # Errors
    /// A file cannot be read, or does not contain them.
    pub(crate) fn new(topic: &KafkaTopic, settings: &Settings) -> io::Result<Self> {
        #[cfg(not(feature = "tls"))]
        let _ = settings;
        #[cfg(feature = "tls")]
        let tls = if topic.tls {
            let mut tls = settings.tls.clone();
            tls.authorities = topic.authorities.clone().or(tls.authorities);
            Some(crate::transports::client_config(&tls)?)
        } else {
            None
        };
        Ok(Self {
            topic: topic.clone(),
            sasl: topic.login.as_ref().map(sasl).transpose()?,
            #[cfg(feature = "tls")]
            tls,
        })
    }

    fn builder(&self) -> ClientBuilder {
        // One attempt: the producer repeats it, because it reports the error and may stop.
        let once = BackoffConfig { deadline: Some(Duration::ZERO), ..BackoffConfig::default() };
        let builder = ClientBuilder::new(self.topic.brokers.clone())
            .client_id("ringtap")
            .max_message_size(ANSWER_MAX)
            .backoff_config(once);
        #[cfg(feature = "tls")]
        let builder = match &self.tls {
            Some(config) => builder.tls_config(Arc::clone(config)),
            None => builder,
        };
        match &self.sasl {
            Some(sasl) => builder.sasl_config(sasl.clone()),
            None => builder,
        }
    }
}

fn sasl(login: &Login) -> io::Result<SaslConfig> {
    let password = password(&login.password_file).map_err(|error| {
        io::Error::new(error.kind(), format!("{}: {error}", login.password_file.display()))
    })?;
    let credentials = Credentials::new(login.user.clone(), password);
    Ok(match login.mechanism {
        Mechanism::Plain => SaslConfig::Plain(credentials),
        Mechanism::ScramSha256 => SaslConfig::ScramSha256(credentials),
        Mechanism::ScramSha512 => SaslConfig::ScramSha512(credentials),
    })
}

/// The first line of a file.
fn password(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(PASSWORD_MAX).read_to_string(&mut text)?;
    match text.lines().next() {
        Some(password) if !password.is_empty() => Ok(password.to_owned()),
        _ => Err(io::Error::other("no password in its first line")),
    }
}

/// The result of sending a batch.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// All replicas in sync have it.
    Taken,
    /// The topic does not take so much at once.
    TooLarge,
    /// The topic will never take it.
    Refused(String),
    /// It was taken or not, which will never be known.
    OverQuota,
    /// Connect and send again.
    Broken(String),
}

/// Connections to the brokers.
pub(crate) struct Session {
    client: Arc<Client>,
    topic: String,
    /// The numbers of the partitions.
    partitions: Vec<i32>,
    /// The connections to leaders of partitions.
    leaders: BTreeMap<usize, Arc<PartitionClient>>,
    codec: Codec,
}

impl Session {
    /// Connects to a broker, and reads the partitions of the topic.
    ///
    /// # Errors
    /// Why this failed, for people.
    pub(crate) async fn open(access: Arc<Access>) -> Result<Self, String> {
        let name = access.topic.name.as_str();
        // In a task: a panic is an error.
        let mut task = JoinSet::new();
        let builder = access.builder();
        task.spawn(async move {
            let client = builder.build().await?;
            let topics = client.list_topics().await?;
            Ok::<_, Error>((client, topics))
        });
        let (client, topics) = match task.join_next().await {
            Some(Ok(opened)) => opened.map_err(|error| match words(&error) {
                closed if closed == CLOSED => format!("{CLOSED}; is tls=true missing, or a login?"),
                other => other,
            })?,
            _ => return Err(MALFORMED.into()),
        };
        let topic = topics.into_iter().find(|topic| topic.name == name);
        let partitions: Vec<_> = topic.into_iter().flat_map(|topic| topic.partitions).collect();
        if partitions.is_empty() {
            return Err(format!("the topic {name} does not exist, or we may not see it"));
        }
        if partitions.len() > PARTITIONS_MAX {
            let count = partitions.len();
            return Err(format!(
                "the topic {name} has {count} partitions, {PARTITIONS_MAX} at most"
            ));
        }
        let codec = match access.topic.compression {
            Compression::None => Codec::NoCompression,
            Compression::Gzip => Codec::Gzip,
            Compression::Snappy => Codec::Snappy,
        };
        let (client, topic) = (Arc::new(client), name.to_owned());
        Ok(Self { client, topic, partitions, leaders: BTreeMap::new(), codec })
    }

    /// The number of partitions, at least 1.
    pub(crate) fn partitions(&self) -> usize {
        self.partitions.len()
    }

    /// Sends a batch to each of these partitions, by index, at the same time. Adds the result of each to `outcomes` as
    /// soon as it is known.
    pub(crate) async fn produce(
        &mut self,
        batches: Vec<(usize, Vec<Record>)>,
        outcomes: &mut BTreeMap<usize, Outcome>,
    ) {
        let mut tasks = JoinSet::new();
        for (index, records) in batches {
            let (client, topic, codec) = (Arc::clone(&self.client), self.topic.clone(), self.codec);
            let (leader, partition) = (self.leaders.get(&index).cloned(), self.partitions[index]);
            tasks.spawn(async move {
                let leader = match leader {
                    Some(leader) => leader,
                    None => {
                        let unknown = UnknownTopicHandling::Error;
                        match client.partition_client(topic, partition, unknown).await {
                            Ok(leader) => Arc::new(leader),
                            Err(error) => return (index, None, outcome(&error)),
                        }
                    }
                };
                let outcome = match unless_over_quota(leader.produce(records, codec)).await {
                    Some(Ok(_)) => Outcome::Taken,
                    Some(Err(error)) => outcome(&error),
                    None => Outcome::OverQuota,
                };
                (index, Some(leader), outcome)
            });
        }
        while let Some(joined) = tasks.join_next().await {
            // Without a result, as after a panic, the batch is sent again.
            if let Ok((index, leader, outcome)) = joined {
                outcomes.insert(index, outcome);
                self.leaders.extend(leader.map(|leader| (index, leader)));
            }
        }
    }
}

/// What to do after an error.
fn outcome(error: &Error) -> Outcome {
    use ProtocolError::*;
    match protocol_error(error) {
        Some(MessageTooLarge | RecordListTooLarge) => Outcome::TooLarge,
        Some(InvalidRecord | InvalidTimestamp | UnsupportedForMessageFormat) => {
            Outcome::Refused(words(error))
        }
        _ => Outcome::Broken(words(error)),
    }
}

/// All errors from the outermost to the cause.
fn chain(error: &Error) -> impl Iterator<Item = &(dyn StdError + 'static)> {
    let outermost: &(dyn StdError + 'static) = error;
    std::iter::successors(Some(outermost), |&error| error.source())
}

/// The broker's error, if it answered with one.
fn protocol_error(error: &Error) -> Option<ProtocolError> {
    chain(error).find_map(|error| match error.downcast_ref::<Error>() {
        Some(Error::ServerError { protocol_error, .. }) => Some(*protocol_error),
        _ => None,
    })
}

/// The error for people.
fn words(error: &Error) -> String {
    use ProtocolError::*;
    let known = match protocol_error(error) {
        Some(UnknownTopicOrPartition) => "the topic does not exist",
        Some(TopicAuthorizationFailed) => "we may not write to the topic",
        Some(ClusterAuthorizationFailed) => "we may not use this cluster",
        Some(NotEnoughReplicas | NotEnoughReplicasAfterAppend) => "too few replicas are in sync",
        Some(LeaderNotAvailable) => "a partition has no leader",
        Some(NotLeaderOrFollower) => "a partition has another leader now",
        Some(RequestTimedOut) => "the replicas did not take the messages in time",
        Some(other) => return format!("the broker refused the messages: {other:?}"),
        None => {
            let cause = chain(error).last().map(ToString::to_string).unwrap_or_default();
            return in_words(cause);
        }
    };
    known.into()
}

/// A connection was closed.
const CLOSED: &str = "a broker closed the connection";

/// The contents of an answer are shorter than they should be, or the library panics.
const MALFORMED: &str = "an answer of a broker is malformed";

/// Words of the library that say nothing about the cause.
const LAYERS: [&str; 7] = [
    "Multiple errors occured: ",
    "IO Error: ",
    "Request error: ",
    "Connection is poisoned: ",
    "Cannot read framed message: ",
    "Cannot read data: ",
    "cannot sync versions: ",
];

/// The text of an error without a number of the protocol.
fn in_words(cause: String) -> String {
    if cause.contains("SaslAuthenticationFailed") {
        return "the broker refused the user or the password".into();
    }
    if cause.to_ascii_lowercase().replace(' ', "").contains("unsupportedsaslmechanism") {
        return "the broker does not support this mechanism of SASL".into();
    }
    if cause.contains("early eof") {
        return CLOSED.into();
    }
    if cause.contains("failed to fill whole buffer") {
        return MALFORMED.into();
    }
    if cause.contains("UnknownIssuer") {
        return "its certificate is signed by an unknown authority (add the authority with ca=FILE)".into();
    }
    // The library puts names of its layers before the cause.
    let cause = cause.rsplit_once("Source: ").map_or(cause.as_str(), |(_, cause)| cause);
    LAYERS.iter().fold(cause.to_owned(), |cause, layer| cause.replace(layer, ""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rskafka::client::error::RequestContext;

    fn error(protocol_error: ProtocolError) -> Error {
        let request = RequestContext::Topic("flows".into());
        let (error_message, response) = (None, None);
        Error::ServerError { protocol_error, error_message, request, response, is_virtual: false }
    }

    #[test]
    fn an_error_decides_whether_a_batch_is_sent_again() {
        let of = |code| outcome(&error(code));
        assert_eq!(of(ProtocolError::MessageTooLarge), Outcome::TooLarge);
        assert!(matches!(of(ProtocolError::InvalidRecord), Outcome::Refused(_)));
        let missing = of(ProtocolError::UnknownTopicOrPartition);
        assert_eq!(missing, Outcome::Broken("the topic does not exist".into()));
        assert!(matches!(of(ProtocolError::NotEnoughReplicas), Outcome::Broken(_)));
        let other = of(ProtocolError::KafkaStorageError);
        assert!(matches!(other, Outcome::Broken(text) if text.contains("KafkaStorageError")));
    }

    #[test]
    fn errors_of_logins_are_in_words() {
        let failed = "Sasl handshake failed: API error: SaslAuthenticationFailed".to_owned();
        assert!(in_words(failed).contains("password"));
        for text in ["unsupported sasl mechanism", "API error: UnsupportedSaslMechanism"] {
            assert!(in_words(text.to_owned()).contains("mechanism of SASL"), "{text}");
        }
        let nested = "all retries failed: Retry exceeded deadline. Source: error connecting to broker \"b:1\": \
                      IO Error: Connection refused (os error 111)";
        let cause = "error connecting to broker \"b:1\": Connection refused (os error 111)";
        assert_eq!(in_words(nested.to_owned()), cause);
    }

    #[test]
    fn a_password_is_the_first_line_of_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("password");
        assert!(password(&path).is_err());
        for (content, expected) in [("secret\n", "secret"), ("a b", "a b"), ("x\r\ny\n", "x")] {
            std::fs::write(&path, content).unwrap();
            assert_eq!(password(&path).unwrap(), expected);
        }
        for invalid in [&b""[..], b"\nsecret", b"\xff"] {
            std::fs::write(&path, invalid).unwrap();
            assert!(password(&path).is_err());
        }
        assert!(password(Path::new("/dev/zero")).is_ok_and(|text| text.len() == 4 << 10));
    }
}
