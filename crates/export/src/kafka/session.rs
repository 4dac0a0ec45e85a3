//! The connections to the brokers of a topic: reading its partitions, and sending batches to their leaders.
//!
//! Each broker has one connection, without Nagle's delay. Requests are sent without waiting for answers, which brokers
//! give in the order of the requests. Framing, versions and logins are those of rskafka; its own client has the delay,
//! and sends one batch for each answer.

use std::collections::BTreeMap;
use std::error::Error as StdError;
use std::fs::File;
use std::io::{self, Read as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rskafka::client::{Credentials, SaslConfig};
use rskafka::messenger::{Messenger, RequestError};
use rskafka::protocol::error::Error as ProtocolError;
use rskafka::protocol::messages::{
    MetadataRequest, MetadataRequestTopic, MetadataResponse, MetadataResponsePartition,
};
use rskafka::protocol::primitives::{Boolean, String_};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::message::{Outcome, ProducerId};
use super::requests::{InitProducer, Produce};
use super::statistics::Probe;
use crate::settings::Settings;
use crate::topic::{Compression, KafkaTopic, Login, Mechanism};

/// Most bytes of an answer. Those about a topic of many partitions take less.
const ANSWER_MAX: usize = 1 << 20;

/// Most partitions of a topic.
const PARTITIONS_MAX: usize = 512;

/// Most bytes that are read from a file with a password.
const PASSWORD_MAX: u64 = 4 << 10;

/// Time between requests to a broker that is still starting.
const COORDINATOR_PAUSE: Duration = Duration::from_millis(100);

/// The name of this program for brokers.
const CLIENT: &str = "ringtap";

/// A connection to a broker.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}
type Connection = Messenger<Box<dyn Stream>>;

/// A topic, and all that is needed to connect.
pub(crate) struct Access {
    topic: KafkaTopic,
    probe: Probe,
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
            probe: Probe::new(settings),
            sasl: topic.login.as_ref().map(sasl).transpose()?,
            #[cfg(feature = "tls")]
            tls,
        })
    }

    /// The compression of batches.
    pub(crate) fn compression(&self) -> Compression {
        self.topic.compression
    }

    /// The probe.
    pub(crate) fn probe(&self) -> &Probe {
        &self.probe
    }

    /// The address that stands for this probe: its name, if that is one, or else the one from which this machine reaches
    /// a broker whose address is given.
    pub(crate) fn sampler(&self) -> Option<IpAddr> {
        let named = self.probe.name.as_ref().and_then(|name| name.parse().ok());
        let address = |broker: &String| broker.parse::<SocketAddr>().ok();
        named.or_else(|| {
            let broker = self.topic.brokers.iter().find_map(address)?;
            let any: IpAddr = if broker.is_ipv4() {
                Ipv4Addr::UNSPECIFIED.into()
            } else {
                Ipv6Addr::UNSPECIFIED.into()
            };
            // Nothing is sent.
            let socket = UdpSocket::bind((any, 0)).ok()?;
            socket.connect(broker).ok()?;
            socket.local_addr().ok().map(|own| own.ip())
        })
    }

    /// Connects to a broker, and logs in.
    async fn connect(&self, broker: &str) -> Result<Connection, String> {
        let stream = self
            .stream(broker)
            .await
            .map_err(|error| in_words(format!("error connecting to broker {broker:?}: {error}")))?;
        let mut connection = Messenger::new(stream, ANSWER_MAX, CLIENT.into());
        connection.sync_versions().await.map_err(|error| with_advice(words(&error)))?;
        if let Some(sasl) = &self.sasl {
            connection.do_sasl(sasl.clone()).await.map_err(|error| words(&error))?;
        }
        Ok(connection)
    }

    async fn stream(&self, broker: &str) -> io::Result<Box<dyn Stream>> {
        let stream = TcpStream::connect(broker).await?;
        stream.set_nodelay(true)?;
        #[cfg(feature = "tls")]
        if let Some(tls) = &self.tls {
            let host = broker.rsplit_once(':').map_or(broker, |(host, _)| host);
            let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
            let host = rustls::pki_types::ServerName::try_from(host).map_err(io::Error::other)?;
            let connector = tokio_rustls::TlsConnector::from(Arc::clone(tls));
            return Ok(Box::new(connector.connect(host, stream).await?));
        }
        Ok(Box::new(stream))
    }

    /// Connects to one of the brokers of the URL, and reads what it says about the topic.
    async fn first(&self) -> Result<(Connection, MetadataResponse), String> {
        let mut last = String::new();
        for broker in &self.topic.brokers {
            let topics =
                Some(vec![MetadataRequestTopic { name: String_(self.topic.name.clone()) }]);
            let request =
                MetadataRequest { topics, allow_auto_topic_creation: Some(Boolean(false)) };
            let opened = async {
                let connection = self.connect(broker).await?;
                let answer = connection.request(request).await;
                let answer = answer.map_err(|error| with_advice(words(&error)))?;
                Ok((connection, answer))
            };
            match opened.await {
                Ok(opened) => return Ok(opened),
                Err(error) => last = error,
            }
        }
        Err(last)
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

/// An answer of a broker.
pub(crate) struct Answer {
    /// The index of the partition.
    pub(crate) lane: usize,
    /// The number of the batch.
    pub(crate) number: u64,
    pub(crate) outcome: Outcome,
    /// The time for which the broker then reads nothing, because of a quota.
    pub(crate) throttle_ms: u64,
}

/// A partition: its number, and the number of the broker that leads it.
struct Partition {
    number: i32,
    leader: i32,
}

/// Connections to the brokers.
pub(crate) struct Session {
    topic: Arc<str>,
    partitions: Vec<Partition>,
    leaders: BTreeMap<i32, Arc<Connection>>,
    producer: ProducerId,
    /// Batches without an answer.
    requests: JoinSet<Answer>,
}

impl Session {
    /// Connects to a broker, reads the partitions of the topic, and connects to all leaders. `producer` is the number
    /// from an earlier session.
    ///
    /// # Errors
    /// Why this failed, for people.
    pub(crate) async fn open(
        access: Arc<Access>,
        producer: Option<ProducerId>,
    ) -> Result<Self, String> {
        // In a task: a panic is an error.
        let mut task = JoinSet::new();
        task.spawn(Self::try_open(access, producer));
        match task.join_next().await {
            Some(Ok(opened)) => opened,
            _ => Err(MALFORMED.into()),
        }
    }

    async fn try_open(access: Arc<Access>, producer: Option<ProducerId>) -> Result<Self, String> {
        let name = access.topic.name.as_str();
        let (connection, metadata) = access.first().await?;
        let topic = metadata.topics.into_iter().find(|topic| topic.name.0 == name);
        let Some(topic) = topic else { return Err(no_topic(name)) };
        match topic.error {
            None => {}
            Some(ProtocolError::UnknownTopicOrPartition) => return Err(no_topic(name)),
            Some(error) => return Err(of_protocol(error)),
        }
        let mut partitions =
            topic.partitions.iter().map(partition).collect::<Result<Vec<_>, _>>()?;
        partitions.sort_unstable_by_key(|partition| partition.number);
        if partitions.is_empty() {
            return Err(no_topic(name));
        }
        if partitions.len() > PARTITIONS_MAX {
            let count = partitions.len();
            return Err(format!(
                "the topic {name} has {count} partitions, {PARTITIONS_MAX} at most"
            ));
        }
        let producer = match producer {
            Some(producer) => producer,
            None => new_producer(&connection).await?,
        };

        let mut connecting = JoinSet::new();
        for broker in metadata.brokers {
            let number = broker.node_id.0;
            if partitions.iter().any(|partition| partition.leader == number) {
                let access = Arc::clone(&access);
                let (host, port) = (broker.host.0, broker.port.0);
                let host = if host.contains(':') { format!("[{host}]") } else { host };
                let connect =
                    async move { access.connect(&format!("{host}:{port}")).await.map(Arc::new) };
                connecting.spawn(async move { (number, connect.await) });
            }
        }
        let mut leaders = BTreeMap::new();
        while let Some(joined) = connecting.join_next().await {
            let (number, connection) = joined.map_err(|_| MALFORMED)?;
            leaders.insert(number, connection?);
        }
        if partitions.iter().any(|partition| !leaders.contains_key(&partition.leader)) {
            return Err(of_protocol(ProtocolError::LeaderNotAvailable));
        }
        Ok(Self { topic: name.into(), partitions, leaders, producer, requests: JoinSet::new() })
    }

    /// The number of partitions, at least 1.
    pub(crate) fn partitions(&self) -> usize {
        self.partitions.len()
    }

    /// The number of the producer.
    pub(crate) fn producer(&self) -> ProducerId {
        self.producer
    }

    /// Sends an encoded batch to a partition, by index, after those before it. In the context of the runtime.
    pub(crate) fn send(&mut self, lane: usize, number: u64, batch: Vec<u8>) {
        let Partition { number: partition, leader } = self.partitions[lane];
        let Some(leader) = self.leaders.get(&leader).cloned() else { return };
        let (topic, batch) = (Arc::clone(&self.topic), Mutex::new(batch));
        self.requests.spawn(async move {
            let answer = leader.request(Produce { topic, partition, batch }).await;
            let (outcome, throttle_ms) = match answer {
                Err(error) => (Outcome::Broken(words(&error)), 0),
                Ok(answer) => {
                    let throttle_ms = answer.throttle_time_ms.map_or(0, |time| time.0.max(0));
                    let mut all = answer.responses.iter().flat_map(|one| &one.partition_responses);
                    let own = all.find(|own| own.index.0 == partition);
                    let outcome = match own.map(|own| own.error) {
                        Some(error) => outcome(error),
                        None => Outcome::Broken(MALFORMED.into()),
                    };
                    (outcome, throttle_ms as u64)
                }
            };
            Answer { lane, number, outcome, throttle_ms }
        });
    }

    /// The next answer. `None`: a request panicked.
    pub(crate) async fn answer(&mut self) -> Option<Answer> {
        match self.requests.join_next().await {
            Some(answer) => answer.ok(),
            // Nothing was sent.
            None => std::future::pending().await,
        }
    }

    /// The answers that are there.
    pub(crate) fn more_answers(&mut self) -> impl Iterator<Item = Answer> {
        std::iter::from_fn(|| self.requests.try_join_next()?.ok())
    }
}

fn no_topic(name: &str) -> String {
    format!("the topic {name} does not exist, or we may not see it")
}

fn partition(partition: &MetadataResponsePartition) -> Result<Partition, String> {
    match partition.error {
        None | Some(ProtocolError::ReplicaNotAvailable) => {
            Ok(Partition { number: partition.partition_index.0, leader: partition.leader_id.0 })
        }
        Some(error) => Err(of_protocol(error)),
    }
}

/// A new number of a producer; [`ProducerId::NONE`] if the cluster has none for us.
async fn new_producer(connection: &Connection) -> Result<ProducerId, String> {
    loop {
        let answer = match connection.request(InitProducer).await {
            Ok(answer) => answer,
            Err(RequestError::NoVersionMatch { .. }) => return Ok(ProducerId::NONE),
            Err(error) => return Err(words(&error)),
        };
        match answer.error {
            None => return Ok(answer.id),
            Some(ProtocolError::ClusterAuthorizationFailed) => return Ok(ProducerId::NONE),
            // For some seconds after the start of a broker. The caller limits the time of connecting.
            Some(
                ProtocolError::CoordinatorLoadInProgress | ProtocolError::CoordinatorNotAvailable,
            ) => tokio::time::sleep(COORDINATOR_PAUSE).await,
            Some(error) => return Err(of_protocol(error)),
        }
    }
}

/// What to do after an answer.
fn outcome(error: Option<ProtocolError>) -> Outcome {
    use ProtocolError::*;
    match error {
        None | Some(DuplicateSequenceNumber) => Outcome::Taken,
        Some(MessageTooLarge | RecordListTooLarge) => Outcome::TooLarge,
        Some(error @ (InvalidRecord | InvalidTimestamp | UnsupportedForMessageFormat)) => {
            Outcome::Refused(of_protocol(error))
        }
        Some(OutOfOrderSequenceNumber) => Outcome::OutOfOrder,
        Some(UnknownProducerId | InvalidProducerEpoch) => Outcome::UnknownProducer,
        Some(error) => Outcome::Broken(of_protocol(error)),
    }
}

/// The broker's error, for people.
fn of_protocol(error: ProtocolError) -> String {
    use ProtocolError::*;
    let known = match error {
        UnknownTopicOrPartition => "the topic does not exist",
        TopicAuthorizationFailed => "we may not write to the topic",
        ClusterAuthorizationFailed => "we may not use this cluster",
        NotEnoughReplicas | NotEnoughReplicasAfterAppend => "too few replicas are in sync",
        LeaderNotAvailable => "a partition has no leader",
        NotLeaderOrFollower => "a partition has another leader now",
        RequestTimedOut => "the replicas did not take the messages in time",
        other => return format!("the broker refused the messages: {other:?}"),
    };
    known.into()
}

/// The error of a connection, for people: its innermost cause.
fn words(error: &(dyn StdError + 'static)) -> String {
    let chain = std::iter::successors(Some(error), |&error| error.source());
    in_words(chain.last().map(ToString::to_string).unwrap_or_default())
}

/// A connection was closed.
const CLOSED: &str = "a broker closed the connection";

/// Why a broker may close a new connection.
fn with_advice(error: String) -> String {
    if error == CLOSED { format!("{CLOSED}; is tls=true missing, or a login?") } else { error }
}

/// The contents of an answer are shorter than they should be, or the library panics.
pub(crate) const MALFORMED: &str = "an answer of a broker is malformed";

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

    #[test]
    fn an_error_decides_whether_a_batch_is_sent_again() {
        let of = |error| outcome(Some(error));
        assert_eq!(of(ProtocolError::MessageTooLarge), Outcome::TooLarge);
        assert!(matches!(of(ProtocolError::InvalidRecord), Outcome::Refused(_)));
        let missing = of(ProtocolError::UnknownTopicOrPartition);
        assert_eq!(missing, Outcome::Broken("the topic does not exist".into()));
        assert!(matches!(of(ProtocolError::NotEnoughReplicas), Outcome::Broken(_)));
        let other = of(ProtocolError::KafkaStorageError);
        assert!(matches!(other, Outcome::Broken(text) if text.contains("KafkaStorageError")));
        // A repetition of what the broker has.
        assert_eq!(of(ProtocolError::DuplicateSequenceNumber), Outcome::Taken);
        assert_eq!(outcome(None), Outcome::Taken);
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
