//! A broker of Kafka on loopback: one process that is also its own controller, with a listener for plain connections,
//! one for logins and one for TLS. Batches have at most 30,000 bytes, so that larger ones are divided.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rskafka::client::partition::{OffsetAt, UnknownTopicHandling};
use rskafka::client::{Client, ClientBuilder};
use rskafka::record::Record;
use rustix::process::{Pid, Signal, kill_process};
use tokio::runtime::Runtime;

/// The user of the listener for logins, with the mechanisms PLAIN and SCRAM-SHA-512.
pub const USER: &str = "probe";

/// The user's password.
pub const PASSWORD: &str = "correct horse";

/// Most waits of 100 ms for a broker to start.
const WAITS: u32 = 1_200;

/// Milliseconds that a request may take in the broker.
const REQUEST_MS: i32 = 30_000;

/// A running broker. Drop kills it.
pub struct Broker {
    folder: PathBuf,
    /// Plain, logins, TLS, controller.
    ports: [u16; 4],
    child: Option<Child>,
    runtime: Runtime,
}

impl Broker {
    /// Starts a broker with its data in `folder`. Prints `SKIPPED` and returns `None` unless `RINGTAP_FULL` is 1.
    ///
    /// # Panics
    /// Java or the broker is missing, which `make test-all` installs; it does not start.
    pub fn start(folder: &Path) -> Option<Self> {
        if std::env::var_os("RINGTAP_FULL").is_none_or(|value| value != "1") {
            eprintln!(
                "SKIPPED: tests with a broker of Kafka run with RINGTAP_FULL=1 (make test-all)"
            );
            return None;
        }
        let listeners = [(); 4].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let ports = listeners.map(|listener| listener.local_addr().unwrap().port());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let mut broker = Self { folder: folder.to_owned(), ports, child: None, runtime };
        broker.configure();
        broker.restart();
        Some(broker)
    }

    /// The address for plain connections.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.ports[0])
    }

    /// The address for logins.
    pub fn login_address(&self) -> String {
        format!("127.0.0.1:{}", self.ports[1])
    }

    /// The address for TLS.
    pub fn tls_address(&self) -> String {
        format!("127.0.0.1:{}", self.ports[2])
    }

    /// The certificate of the listener for TLS, which is its own authority.
    pub fn certificate(&self) -> PathBuf {
        self.folder.join("certificate.pem")
    }

    /// Sends a signal to the broker.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(self.child.as_ref().unwrap()), signal).unwrap();
    }

    /// Kills the broker, without an orderly end.
    pub fn kill(&mut self) {
        let mut child = self.child.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Starts the broker with the same data, and waits until it answers.
    pub fn restart(&mut self) {
        let log = fs::File::create(self.folder.join("log")).unwrap();
        let mut command = java("kafka.Kafka");
        command.arg(self.folder.join("server.properties"));
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        self.child = Some(command.spawn().expect("java starts"));
        for _ in 0..WAITS {
            let end = self.child.as_mut().unwrap().try_wait().unwrap();
            assert!(end.is_none(), "the broker ended: {}", self.log());
            if self.runtime.block_on(connect(self.address())).is_some() {
                return;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        panic!("the broker does not answer: {}", self.log());
    }

    /// Creates a topic, and waits until the broker lists it.
    pub fn create(&self, topic: &str, partitions: i32) {
        self.runtime.block_on(async {
            let client = self.client().await;
            let controller = client.controller_client().unwrap();
            controller.create_topic(topic, partitions, 1, REQUEST_MS).await.unwrap();
            while client.list_topics().await.unwrap().iter().all(|one| one.name != topic) {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            for partition in 0..partitions {
                let unknown = UnknownTopicHandling::Retry;
                client.partition_client(topic, partition, unknown).await.unwrap();
            }
        });
    }

    /// Limits all producers to this many bytes a second: the broker answers, and then reads nothing for a time.
    pub fn limit(&self, bytes: u32) {
        let rate = format!("producer_byte_rate={bytes}");
        self.alter(&["--entity-type", "clients", "--entity-default", "--add-config", &rate]);
    }

    /// Sets the largest batch of a topic, in bytes.
    pub fn allow(&self, topic: &str, bytes: u32) {
        let most = format!("max.message.bytes={bytes}");
        self.alter(&["--entity-type", "topics", "--entity-name", topic, "--add-config", &most]);
    }

    fn alter(&self, what: &[&str]) {
        let mut command = java("kafka.admin.ConfigCommand");
        command.args(["--bootstrap-server", &self.address(), "--alter"]);
        run(command.args(what));
    }

    /// All messages of a topic, by partition, in their order.
    pub fn read(&self, topic: &str) -> Vec<Vec<Record>> {
        self.runtime.block_on(async {
            let client = self.client().await;
            let topics = client.list_topics().await.unwrap();
            let topic = topics.into_iter().find(|one| one.name == topic).expect("the topic");
            let mut all = Vec::new();
            for partition in topic.partitions {
                let unknown = UnknownTopicHandling::Retry;
                let reader =
                    client.partition_client(&topic.name, partition, unknown).await.unwrap();
                let (mut from, mut messages) = (0, Vec::new());
                let end = reader.get_offset(OffsetAt::Latest).await.unwrap();
                while from < end {
                    let (some, _) = reader.fetch_records(from, 1..4 << 20, 1_000).await.unwrap();
                    from = some.last().map_or(from, |last| last.offset + 1);
                    messages.extend(some.into_iter().map(|message| message.record));
                }
                all.push(messages);
            }
            all
        })
    }

    async fn client(&self) -> Arc<Client> {
        connect(self.address()).await.expect("the broker answers")
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }

    fn configure(&self) {
        let folder = self.folder.display();
        let request = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=broker \
            -addext subjectAltName=IP:127.0.0.1 -addext basicConstraints=critical,CA:FALSE";
        let mut openssl = Command::new("openssl");
        openssl.args(request.split_whitespace()).current_dir(&self.folder);
        run(openssl.args(["-keyout", "key.pem", "-out", "certificate.pem"]));
        let part = |name: &str| fs::read_to_string(self.folder.join(name)).unwrap();
        fs::write(self.folder.join("identity.pem"), part("key.pem") + &part("certificate.pem"))
            .unwrap();

        let [plain, login, tls, controller] = self.ports;
        let modules = "org.apache.kafka.common.security";
        let properties = format!(
            "process.roles=broker,controller\n\
             node.id=1\n\
             controller.quorum.voters=1@127.0.0.1:{controller}\n\
             controller.listener.names=CONTROLLER\n\
             inter.broker.listener.name=PLAIN\n\
             listeners=PLAIN://127.0.0.1:{plain},LOGIN://127.0.0.1:{login},TLS://127.0.0.1:{tls},\
             CONTROLLER://127.0.0.1:{controller}\n\
             listener.security.protocol.map=PLAIN:PLAINTEXT,LOGIN:SASL_PLAINTEXT,TLS:SSL,CONTROLLER:PLAINTEXT\n\
             listener.name.login.sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-512\n\
             listener.name.login.plain.sasl.jaas.config=\
             {modules}.plain.PlainLoginModule required user_{USER}=\"{PASSWORD}\";\n\
             listener.name.login.scram-sha-512.sasl.jaas.config={modules}.scram.ScramLoginModule required;\n\
             listener.name.tls.ssl.keystore.type=PEM\n\
             listener.name.tls.ssl.keystore.location={folder}/identity.pem\n\
             log.dirs={folder}/data\n\
             auto.create.topics.enable=true\n\
             message.max.bytes=30000\n\
             offsets.topic.replication.factor=1\n\
             transaction.state.log.replication.factor=1\n\
             transaction.state.log.min.isr=1\n"
        );
        let path = self.folder.join("server.properties");
        fs::write(&path, properties).unwrap();
        let mut format = java("kafka.tools.StorageTool");
        format.args(["format", "--cluster-id", "AAAAAAAAAAAAAAAAAAAAAQ", "--config"]).arg(path);
        let scram = format!("SCRAM-SHA-512=[name={USER},password=\"{PASSWORD}\"]");
        run(format.args(["--add-scram", &scram]));
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A client, if the broker answers within two seconds.
async fn connect(address: String) -> Option<Arc<Client>> {
    let client = ClientBuilder::new(vec![address]).build();
    tokio::time::timeout(Duration::from_secs(2), client).await.ok()?.ok().map(Arc::new)
}

/// A Java program of the broker, which starts fast and needs little memory.
fn java(class: &str) -> Command {
    let jars = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/test-tools/kafka");
    assert!(jars.is_dir(), "{} is missing: RINGTAP_FULL=1 scripts/setup-test.sh", jars.display());
    let mut command = Command::new("java");
    command.args(["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]);
    command.arg("-Dorg.slf4j.simpleLogger.defaultLogLevel=warn");
    command.arg("-cp").arg(jars.join("*")).arg(class);
    command
}

fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(output.status.success(), "{command:?}: {text:?}");
}
