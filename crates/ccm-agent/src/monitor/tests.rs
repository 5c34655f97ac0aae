use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use super::*;

const LOCAL: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
/// For a machine that has much else to do.
const LATE: Duration = Duration::from_mins(1);

fn start(health: impl Fn() -> Result<(), Vec<String>> + Send + Sync + 'static) -> Monitor {
    let metrics = Arc::new(Metrics::new("1.0", "abc"));
    Monitor::start(Some(LOCAL), 0, metrics, health, &Host::new()).unwrap()
}

fn connect(monitor: &Monitor) -> TcpStream {
    let stream = TcpStream::connect(monitor.address().unwrap()).unwrap();
    stream.set_read_timeout(Some(LATE)).unwrap();
    stream
}

/// What the server answers until it hangs up.
fn rest(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    // A server that hangs up on unread input resets the connection.
    let _ = stream.read_to_end(&mut bytes);
    String::from_utf8(bytes).unwrap()
}

fn ask(monitor: &Monitor, request: &str) -> String {
    let mut stream = connect(monitor);
    let _ = stream.write_all(request.as_bytes());
    rest(&mut stream)
}

fn get(monitor: &Monitor, path: &str) -> String {
    ask(monitor, &format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"))
}

#[test]
fn metrics_are_in_the_text_format() {
    let monitor = start(|| Ok(()));
    let answer = get(&monitor, "/metrics?x=1").to_ascii_lowercase();
    assert!(answer.starts_with("http/1.1 200 "), "{answer}");
    assert!(answer.contains("content-type: text/plain; version=0.0.4; charset=utf-8\r\n"));
    assert!(answer.contains("\nchoria_ccm_build_info{version=\"1.0\",commit=\"abc\"} 1\n"));
}

#[test]
fn health_is_ok_or_has_reasons() {
    let is_bad = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&is_bad);
    let monitor = start(move || {
        if asked.load(Ordering::Relaxed) {
            return Err(vec!["no \"manifest\"".to_owned(), "no data".to_owned()]);
        }
        Ok(())
    });
    let answer = get(&monitor, "/healthz");
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("\r\n\r\nok\n"), "{answer}");
    is_bad.store(true, Ordering::Relaxed);
    let answer = get(&monitor, "/healthz");
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert!(answer.to_ascii_lowercase().contains("content-type: application/json\r\n"));
    let body = answer.split_once("\r\n\r\n").unwrap().1;
    let json: serde_json::Value = serde_json::from_str(body).unwrap();
    assert_eq!(json, serde_json::json!({"reasons": ["no \"manifest\"", "no data"]}));
}

#[test]
fn other_paths_and_methods_are_refused() {
    let monitor = start(|| Ok(()));
    for path in ["/", "/metrics/", "/Metrics", "/healthz/x", "//metrics", "/%6detrics"] {
        let answer = get(&monitor, path);
        assert!(answer.starts_with("HTTP/1.1 404 "), "{path}: {answer}");
    }
    for method in ["POST", "HEAD", "PUT", "DELETE", "OPTIONS", "PROPFIND"] {
        let request = format!("{method} /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        let answer = ask(&monitor, &request);
        assert!(answer.starts_with("HTTP/1.1 405 "), "{method}: {answer}");
        assert!(answer.to_ascii_lowercase().contains("allow: get\r\n"), "{answer}");
    }
}

#[test]
fn a_request_above_8_kib_is_refused() {
    let monitor = start(|| Ok(()));
    let sized = |bytes: usize| {
        let filler = "x".repeat(bytes);
        ask(
            &monitor,
            &format!(
                "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX: {filler}\r\n\r\n"
            ),
        )
    };
    assert!(sized(7 * 1024).starts_with("HTTP/1.1 200 "));
    let answer = sized(9 * 1024);
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431 "), "{answer}");
    assert!(get(&monitor, "/healthz").starts_with("HTTP/1.1 200 "));
}

#[test]
fn a_slow_request_is_closed() {
    let monitor = start(|| Ok(()));
    let begin = Instant::now();
    let mut slow = connect(&monitor);
    slow.write_all(b"GET /metrics HTTP/1.1\r\n").unwrap();
    let mut silent = connect(&monitor);
    let answer = rest(&mut slow);
    assert!(!answer.contains(" 200 "), "{answer}");
    assert_eq!(rest(&mut silent), "");
    let took = begin.elapsed();
    assert!(took >= Duration::from_secs(4) && took < LATE, "{took:?}");
}

#[test]
fn more_than_16_at_once_are_refused_and_others_served_later() {
    let monitor = start(|| Ok(()));
    let held: Vec<TcpStream> = (0..16)
        .map(|_| {
            // One request makes sure that the connection was accepted.
            let mut stream = connect(&monitor);
            stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            stream
        })
        .collect();
    let answer = get(&monitor, "/healthz");
    assert!(!answer.starts_with("HTTP/1.1 200 "), "{answer}");
    drop(held);
    let is_served = || get(&monitor, "/healthz").starts_with("HTTP/1.1 200 ");
    ccm_testkit::wait_until("a request to be served again", is_served);
}

#[test]
fn a_port_that_is_taken_is_an_error() {
    let monitor = start(|| Ok(()));
    let port = monitor.address().unwrap().port();
    for address in [Some(LOCAL), None] {
        let metrics = Arc::new(Metrics::new("1.0", "abc"));
        let error = Monitor::start(address, port, metrics, || Ok(()), &Host::new()).unwrap_err();
        assert_eq!(error.to_string(), format!("cannot serve metrics on port {port}"));
        assert!(error.hint().is_some_and(|hint| hint.contains("monitor_port")));
    }
    drop(monitor);
    let metrics = Arc::new(Metrics::new("1.0", "abc"));
    let again = Monitor::start(Some(LOCAL), port, metrics, || Ok(()), &Host::new()).unwrap();
    assert!(get(&again, "/healthz").starts_with("HTTP/1.1 200 "));
}

#[test]
fn an_address_of_another_machine_is_an_error() {
    let address = "192.0.2.1".parse().unwrap();
    let metrics = Arc::new(Metrics::new("1.0", "abc"));
    assert!(Monitor::start(Some(address), 0, metrics, || Ok(()), &Host::new()).is_err());
}

#[test]
fn without_an_address_it_is_on_all() {
    let metrics = Arc::new(Metrics::new("1.0", "abc"));
    let monitor = Monitor::start(None, 0, metrics, || Ok(()), &Host::new()).unwrap();
    let port = monitor.address().unwrap().port();
    let mut stream = TcpStream::connect((LOCAL, port)).unwrap();
    stream.write_all(b"GET /healthz HTTP/1.0\r\n\r\n").unwrap();
    assert!(rest(&mut stream).contains(" 200 "));
}
