//! The server as hostile and unlucky clients meet it, over raw sockets.
#![expect(clippy::unwrap_used, reason = "a test may")]

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ccm_host::{Host, ListenSocket};
use ccm_http::{Limits, Method, Request, Response, Server, StatusCode, StreamSender, blocking};
use ccm_testkit::wait_until;

/// Long enough for a busy machine.
const LONG: Duration = Duration::from_mins(1);

fn limits() -> Limits {
    Limits { body_bytes: 1000, ..Limits::default() }
}

fn start(limits: Limits) -> (Server, SocketAddr) {
    let socket = ListenSocket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let server = Server::start(socket, limits, route).unwrap();
    let address = server.address().unwrap();
    (server, address)
}

async fn route(request: Request) -> Response {
    match (request.method.clone(), request.path.as_str()) {
        (Method::GET | Method::HEAD, "/") => Response::text(StatusCode::OK, "hello\n"),
        (Method::POST, "/echo") => match request.body.read().await {
            Ok(bytes) => Response::new(StatusCode::OK, "application/octet-stream", bytes),
            Err(error) => Response::text(StatusCode::PAYLOAD_TOO_LARGE, error.to_string()),
        },
        (Method::POST, "/unread") => Response::text(StatusCode::UNAUTHORIZED, "no\n"),
        (_, "/panic") => panic!("as it should"),
        (_, "/work") => match blocking(|| panic!("in a thread")).await {
            Some(()) => Response::empty(StatusCode::NO_CONTENT),
            None => Response::text(StatusCode::INTERNAL_SERVER_ERROR, "the work panicked\n"),
        },
        (_, "/slow") => {
            // The pace of the server.
            tokio::time::sleep(Duration::from_millis(300)).await;
            Response::text(StatusCode::OK, "slow\n")
        }
        (_, "/count") => {
            let (response, sender) = Response::stream("text/event-stream", 2);
            tokio::task::spawn_local(async move {
                for number in 0..4 {
                    sender.send(format!("data: {number}\n\n")).await;
                    // The pace of the stream.
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            });
            response
        }
        _ => Response::empty(StatusCode::NOT_FOUND),
    }
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    stream
}

/// Sends bytes and returns everything up to the end of the connection.
fn exchange(address: SocketAddr, bytes: &[u8]) -> String {
    let mut stream = connect(address);
    // A server may hang up before it has read all.
    let _ = stream.write_all(bytes);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn requests_are_answered_one_after_the_other_and_pipelined() {
    let (_server, address) = start(limits());
    let head = "GET / HTTP/1.1\r\nHost: x\r\n";
    let answer = exchange(
        address,
        format!("{head}\r\n{head}\r\n{head}Connection: close\r\n\r\n").as_bytes(),
    );
    assert_eq!(answer.matches("HTTP/1.1 200 OK").count(), 3, "{answer}");
    assert_eq!(answer.matches("hello\n").count(), 3, "{answer}");
    let head = exchange(address, b"HEAD / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    assert!(head.contains("content-length: 6") && !head.contains("hello"), "{head}");
}

#[test]
fn bodies_have_a_limit_and_are_not_read_for_nothing() {
    let (_server, address) = start(limits());
    let post = |path: &str, length: usize, body: &str| {
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        exchange(address, head.as_bytes())
    };
    assert!(post("/echo", 3, "abc").ends_with("abc"));
    assert!(post("/echo", 1001, &"a".repeat(1001)).contains("larger than 1000 bytes"));
    // The length alone is enough to refuse it.
    assert!(post("/echo", 900_000_000, "a").contains("larger than 1000 bytes"));
    assert!(post("/unread", 900_000_000, "a").contains("HTTP/1.1 401"));
    let chunks = format!("{}0\r\n\r\n", "10\r\n0123456789abcdef\r\n".repeat(100));
    let head =
        "POST /echo HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert!(exchange(address, format!("{head}{chunks}").as_bytes()).contains("larger than 1000"));
    let broken = exchange(address, format!("{head}zz\r\n\r\n").as_bytes());
    assert!(!broken.contains("200 OK"), "{broken}");
}

#[test]
fn nonsense_is_refused_and_the_server_goes_on() {
    let (_server, address) = start(limits());
    for bytes in [
        &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"[..],
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost x\r\n\r\n",
        b"GET / HTTP/1.1\r\nA\x00b: c\r\n\r\n",
        b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
        b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ] {
        let answer = exchange(address, bytes);
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 400"), "{bytes:?}: {answer}");
    }
    let many = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(200));
    assert!(exchange(address, many.as_bytes()).starts_with("HTTP/1.1 431"), "too many headers");
    let huge = format!("GET / HTTP/1.1\r\nHost: x\r\nA: {}\r\n\r\n", "a".repeat(40_000));
    let answer = exchange(address, huge.as_bytes());
    // The connection may be reset before the answer was read.
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431"), "{answer}");
    let long = format!("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", "a".repeat(40_000));
    let answer = exchange(address, long.as_bytes());
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{answer}");
    let fine = exchange(address, b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    assert!(fine.ends_with("hello\n"), "{fine}");
}

#[test]
fn who_sends_too_slowly_is_hung_up_on() {
    let quick = Duration::from_millis(200);
    let (_server, address) = start(Limits { header_time: quick, body_time: quick, ..limits() });
    let mut slow = connect(address);
    slow.write_all(b"GET / HT").unwrap();
    let mut answer = String::new();
    let _ = slow.read_to_string(&mut answer);
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 408"), "{answer}");
    let mut slow = connect(address);
    slow.write_all(b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nabc").unwrap();
    let mut answer = String::new();
    let _ = slow.read_to_string(&mut answer);
    assert!(answer.contains("did not arrive within"), "{answer}");
    // One that sends nothing at all does not hold its connection either.
    let mut idle = connect(address);
    assert_eq!(idle.read(&mut [0; 10]).unwrap_or(0), 0);
}

#[test]
fn connections_have_a_limit_and_come_back() {
    let (_server, address) = start(Limits { connections: 3, ..limits() });
    let held: Vec<TcpStream> = (0..3).map(|_| connect(address)).collect();
    // Those that are held were accepted before this one, as it came later.
    let refused = exchange(address, b"");
    assert!(
        refused.starts_with("HTTP/1.1 503") && refused.ends_with("too many connections\n"),
        "{refused}"
    );
    drop(held);
    wait_until("a free connection", || {
        let request = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
        exchange(address, request).ends_with("hello\n")
    });
}

#[test]
fn a_panic_is_a_500_for_its_request_only() {
    let (_server, address) = start(limits());
    for path in ["/panic", "/work"] {
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        let answer = exchange(address, request.as_bytes());
        assert!(answer.starts_with("HTTP/1.1 500"), "{answer}");
    }
    let fine = exchange(address, b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    assert!(fine.ends_with("hello\n"), "{fine}");
}

#[test]
fn pieces_of_a_stream_arrive_one_by_one() {
    let (_server, address) = start(limits());
    let mut stream = connect(address);
    stream.write_all(b"GET /count HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut reads = 0;
    let mut all = String::new();
    let mut buffer = [0; 4096];
    loop {
        let read = stream.read(&mut buffer).unwrap();
        if read == 0 {
            break;
        }
        reads += 1;
        all.push_str(&String::from_utf8_lossy(&buffer[..read]));
    }
    assert_eq!(all.matches("data: ").count(), 4, "{all}");
    assert!(reads > 1, "they came in one piece: {all}");
}

#[test]
fn a_reader_that_does_not_read_is_dropped() {
    let socket = ListenSocket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let senders: Arc<Mutex<Vec<StreamSender>>> = Arc::default();
    let kept = Arc::clone(&senders);
    let limits = Limits { write_time: Duration::from_millis(300), ..limits() };
    let server = Server::start(socket, limits, move |_| {
        let (response, sender) = Response::stream("text/event-stream", 4);
        kept.lock().unwrap().push(sender);
        async { response }
    })
    .unwrap();
    let mut stream = connect(server.address().unwrap());
    stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let sender = wait_until("the request", || senders.lock().unwrap().pop());
    let piece = "x".repeat(1_000_000);
    wait_until("the end of the connection", || {
        sender.try_send(piece.clone());
        sender.is_closed()
    });
}

#[test]
fn open_requests_are_answered_at_the_end_and_nothing_after() {
    let (server, address) = start(limits());
    let mut slow = connect(address);
    slow.write_all(b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    // Let the request arrive.
    let fine = exchange(address, b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    assert!(fine.ends_with("hello\n"));
    server.stop();
    let mut answer = String::new();
    slow.read_to_string(&mut answer).unwrap();
    assert!(answer.ends_with("slow\n"), "{answer}");
    assert!(TcpStream::connect(address).is_err());
}

#[test]
fn a_unix_socket_is_served_and_removed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("socket");
    let socket = ListenSocket::bind_unix(&Host::new(), &path).unwrap();
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&asked);
    let server = Server::start(socket, limits(), move |_| {
        counter.fetch_add(1, Ordering::SeqCst);
        async { Response::text(StatusCode::OK, "here\n") }
    })
    .unwrap();
    assert_eq!(server.path(), Some(path.as_path()));
    let mut stream = UnixStream::connect(&path).unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.ends_with("here\n"), "{answer}");
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    drop(server);
    assert!(!path.exists());
}
