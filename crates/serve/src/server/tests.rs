//! Clients that are idle, slow, greedy or many.

use std::net::SocketAddr;
use std::thread;

use super::*;

/// A test protocol: a request is a line with the length of the answer. Length 0 closes. Another word is a topic, whose
/// events are the word.
struct Lines;

impl Protocol for Lines {
    fn read(&mut self, received: &mut Vec<u8>, _: bool) -> Next {
        let Some(end) = received.iter().position(|&byte| byte == b'\n') else {
            return Next::More;
        };
        let line: Vec<u8> = received.drain(..=end).collect();
        let line = String::from_utf8_lossy(&line).trim().to_owned();
        let Ok(length) = line.parse::<usize>() else {
            return Next::Follow(b"of ".to_vec(), line);
        };
        let after = if length == 0 { After::Close } else { After::KeepOpen };
        Next::Answer(vec![b'x'; length], after)
    }

    fn refuse(&mut self, refusal: Refusal) -> Vec<u8> {
        match refusal {
            Refusal::Late => b"late".to_vec(),
            Refusal::Full => b"full".to_vec(),
        }
    }

    fn event(&mut self, topic: &str) -> Vec<u8> {
        topic.as_bytes().to_vec()
    }
}

const LIMITS: Limits = Limits {
    connections: 16,
    followers: 4,
    requests: 4,
    request: Duration::from_secs(3_600),
    response: Duration::from_secs(3_600),
    idle: Duration::from_secs(3_600),
    bytes_per_second: 1 << 20,
    buffered_bytes: 1 << 20,
};

/// Runs a server with these limits and calls `clients`; also returns the largest number of
/// connections.
fn with_server<T>(limits: Limits, clients: impl FnOnce(SocketAddr) -> T) -> (T, usize) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    let (ours, theirs) = UnixStream::pair().unwrap();
    thread::scope(|scope| {
        let serve = scope.spawn(move || {
            let mut server = Server::new(listener, limits);
            let mut most = 0;
            while !server.turn(Duration::from_millis(50), Some(theirs.as_fd()), &mut Lines) {
                most = most.max(server.connections.len());
                server.publish(Duration::from_secs(60), &mut Lines);
            }
            most
        });
        let result = clients(address);
        drop(ours);
        (result, serve.join().unwrap())
    })
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    // A server that hangs fails the test.
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream.set_write_timeout(Some(Duration::from_secs(60))).unwrap();
    stream
}

fn request(mut stream: &TcpStream, length: usize) -> Vec<u8> {
    stream.write_all(format!("{length}\n").as_bytes()).unwrap();
    let mut answer = vec![0; length];
    stream.read_exact(&mut answer).unwrap();
    answer
}

fn rest(mut stream: &TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    // A reset connection also ends.
    let _ = stream.read_to_end(&mut bytes);
    bytes
}

#[test]
fn a_new_client_replaces_the_one_that_has_been_idle_longest() {
    let ((), most) = with_server(LIMITS, |address| {
        let idle: Vec<_> = (0..200).map(|_| connect(address)).collect();
        let client = connect(address);
        assert_eq!(request(&client, 5), b"xxxxx");
        assert_eq!(rest(&idle[0]), b"", "closed");
        // The newest of them is still connected.
        assert_eq!(request(&idle[199], 2), b"xx");
    });
    assert!(most <= LIMITS.connections, "{most} connections");
}

#[test]
fn one_connection_carries_several_requests_pipelined_or_in_turn() {
    with_server(LIMITS, |address| {
        let mut client = connect(address);
        assert_eq!(request(&client, 3), b"xxx");
        assert_eq!(request(&client, 1), b"x");
        client.write_all(b"2\n3\n0\n7\n").unwrap();
        assert_eq!(rest(&client), b"xxxxx", "nothing after the last one");
    });
}

#[test]
fn an_answer_larger_than_the_sockets_buffers_is_delivered() {
    const LARGE: usize = 32 << 20;
    let limits = Limits { buffered_bytes: 2 * LARGE, ..LIMITS };
    with_server(limits, |address| {
        let mut slow = connect(address);
        slow.write_all(format!("{LARGE}\n").as_bytes()).unwrap();
        let mut bytes = vec![0; 1 << 20];
        slow.read_exact(&mut bytes).unwrap();
        // While it does not read, others are served.
        assert_eq!(request(&connect(address), 4), b"xxxx");
        let mut received = bytes.len();
        while received < LARGE {
            let read = slow.read(&mut bytes).unwrap();
            assert!(read > 0, "closed after {received} bytes");
            received += read;
        }
        assert_eq!(request(&slow, 1), b"x");
    });
}

#[test]
fn each_state_has_a_deadline_even_if_bytes_trickle() {
    let short = Duration::from_millis(300);
    with_server(Limits { request: short, ..LIMITS }, |address| {
        assert_eq!(rest(&connect(address)), b"", "closed without a request");
        let mut slow = connect(address);
        // A byte every 20 ms, without end.
        let mut writes = 0;
        while slow.write_all(b"1").is_ok() {
            thread::sleep(Duration::from_millis(20));
            writes += 1;
            assert!(writes < 3_000, "a late request is never refused");
        }
    });
    with_server(Limits { request: short, ..LIMITS }, |address| {
        let mut half = connect(address);
        half.write_all(b"12").unwrap();
        assert_eq!(rest(&half), b"late");
    });
    with_server(Limits { idle: short, ..LIMITS }, |address| {
        let client = connect(address);
        assert_eq!(request(&client, 1), b"x");
        assert_eq!(rest(&client), b"");
    });
    let limits = Limits { response: short, buffered_bytes: 64 << 20, ..LIMITS };
    with_server(Limits { bytes_per_second: 1 << 40, ..limits }, |address| {
        let mut unread = connect(address);
        unread.write_all(format!("{}\n", 64 << 20).as_bytes()).unwrap();
        // It reads nothing until the server has closed, which a write detects.
        let mut writes = 0;
        while unread.write_all(b"1").is_ok() {
            thread::sleep(Duration::from_millis(20));
            writes += 1;
            assert!(writes < 3_000, "an unread answer is kept for ever");
        }
    });
}

/// Records the lengths of answers in their order.
#[derive(Default)]
struct Order(Vec<usize>);

impl Protocol for Order {
    fn read(&mut self, received: &mut Vec<u8>, ended: bool) -> Next {
        let next = Lines.read(received, ended);
        if let Next::Answer(answer, _) = &next {
            self.0.push(answer.len());
        }
        next
    }

    fn refuse(&mut self, refusal: Refusal) -> Vec<u8> {
        Lines.refuse(refusal)
    }
}

#[test]
fn many_requests_of_some_clients_delay_the_others_by_a_turn() {
    const MANY: usize = 1_500;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    let mut server = Server::new(listener, LIMITS);
    let mut order = Order::default();
    // The length of an answer is the number of its client.
    let mut greedy: Vec<_> = (1..=8).map(|_| connect(address)).collect();
    for (client, stream) in (1..).zip(&mut greedy) {
        stream.write_all(format!("{client}\n").repeat(MANY).as_bytes()).unwrap();
    }
    let mut turn = |server: &mut Server<TcpListener>| {
        server.turn(Duration::from_millis(10), None, &mut order);
        std::mem::take(&mut order.0)
    };
    let answered = |turn: &[usize], client| turn.iter().filter(|one| **one == client).count();
    let mut total = 0;
    while total < 8 * MANY / 2 {
        let answers = turn(&mut server);
        (1..=8).for_each(|client| assert!(answered(&answers, client) <= LIMITS.requests));
        total += answers.len();
    }
    let mut modest = connect(address);
    modest.write_all(b"9\n").unwrap();
    let mut before = Vec::new();
    while answered(&before, 9) == 0 {
        before.extend(turn(&mut server));
        assert!(before.len() < 8 * MANY / 2, "the last of all");
    }
    let mut answer = [0; 9];
    modest.read_exact(&mut answer).unwrap();
    total += before.len();
    // Each request is answered, also when the client sends no more.
    greedy.iter().for_each(|client| client.shutdown(Shutdown::Write).unwrap());
    while total < 8 * MANY + 1 {
        total += turn(&mut server).len();
    }
    for (client, stream) in (1..).zip(&greedy) {
        assert_eq!(rest_of(stream, client * MANY), client * MANY);
    }
}

#[test]
fn followers_get_events_until_they_leave_and_are_limited() {
    with_server(LIMITS, |address| {
        let follow = |topic: &str| {
            let mut client = connect(address);
            client.write_all(format!("{topic}\n").as_bytes()).unwrap();
            client
        };
        let mut all: Vec<_> = ["ab", "cd", "ab", "ef"].map(follow).into();
        for (client, expected) in all.iter_mut().zip(["of ababab", "of cdcdcd", "of ababab"]) {
            let mut bytes = [0; 9];
            client.read_exact(&mut bytes).unwrap();
            assert_eq!(String::from_utf8_lossy(&bytes), expected);
        }
        assert_eq!(rest(&follow("gh")), b"full");
        // What a follower sends is discarded, also other requests.
        all[1].write_all(b"5\n5\n").unwrap();
        assert_eq!(request(&connect(address), 5), b"xxxxx");
        all.pop();
        // The server notices that one has left.
        let joined = (0..600).any(|_| {
            let mut first = [0; 3];
            thread::sleep(Duration::from_millis(10));
            follow("ij").read_exact(&mut first).unwrap();
            first == *b"of "
        });
        assert!(joined);
    });
}

/// Without time, publishing reaches no follower; then it goes on where it stopped.
#[test]
fn an_event_reaches_all_followers_in_turn() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    let mut server = Server::new(listener, LIMITS);
    let mut clients: Vec<_> = (0..3).map(|_| connect(address)).collect();
    clients.iter_mut().for_each(|client| client.write_all(b"ab\n").unwrap());
    let followers = |server: &Server<TcpListener>| {
        server.connections.iter().filter(|one| one.state == State::Following).count()
    };
    while followers(&server) < 3 {
        server.turn(Duration::from_millis(10), None, &mut Lines);
    }
    assert!(!server.publish(Duration::ZERO, &mut Lines));
    assert!(server.publish(Duration::from_secs(60), &mut Lines));
    let got: Vec<_> = server.connections.iter().map(|one| one.event).collect();
    assert_eq!(got, [1; 3]);
    assert!(!server.publish(Duration::ZERO, &mut Lines), "the next event");
    for client in &mut clients {
        let mut bytes = [0; 5];
        client.read_exact(&mut bytes).unwrap();
        assert_eq!(&bytes, b"of ab");
    }
}

#[test]
fn a_follower_that_does_not_read_is_closed() {
    let limits =
        Limits { response: Duration::from_millis(300), bytes_per_second: 1 << 40, ..LIMITS };
    with_server(limits, |address| {
        let mut client = connect(address);
        // Events of half a megabyte.
        client.write_all(&[&[b'a'; 1 << 19][..], b"\n"].concat()).unwrap();
        // It reads nothing until the server has closed, which a write detects.
        let mut writes = 0;
        while client.write_all(b"1").is_ok() {
            thread::sleep(Duration::from_millis(20));
            writes += 1;
            assert!(writes < 3_000, "events are kept for ever");
        }
    });
}

#[test]
fn buffered_bytes_are_bounded() {
    with_server(Limits { buffered_bytes: 256 << 10, ..LIMITS }, |address| {
        // Endless requests at full speed: each is refused at the bound.
        let refused = thread::scope(|scope| {
            let write = || {
                let mut client = connect(address);
                let mut sent = 0;
                while client.write_all(&[b'1'; 64 << 10]).is_ok() && sent < 8 << 30 {
                    sent += 64_u64 << 10;
                }
                sent < 8 << 30
            };
            let all: Vec<_> = (0..4).map(|_| scope.spawn(write)).collect();
            all.into_iter().all(|one| one.join().unwrap())
        });
        assert!(refused);
        // Answers that are not read: the oldest is dropped for the newest.
        let answers: Vec<_> = (0..8)
            .map(|_| {
                let mut client = connect(address);
                client.write_all(b"30000000\n").unwrap();
                let mut first = [0];
                client.read_exact(&mut first).unwrap();
                client
            })
            .collect();
        assert!(rest(&answers[0]).len() < 30_000_000 - 1);
        assert_eq!(rest_of(&answers[7], 30_000_000 - 1), 30_000_000 - 1);
    });
}

/// Reads `length` bytes, or up to the end.
fn rest_of(stream: &TcpStream, length: usize) -> usize {
    let mut bytes = Vec::new();
    let _ = stream.take(length as u64).read_to_end(&mut bytes);
    bytes.len()
}
