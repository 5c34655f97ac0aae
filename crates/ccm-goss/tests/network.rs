//! Addresses, names and servers, good ones and bad ones, all on the loopback
//! interface.

#![expect(clippy::disallowed_methods, clippy::unwrap_used, reason = "tests set their stage")]

mod support;

use std::net::TcpListener;
use std::time::{Duration, Instant};

use ccm_testkit::{Authority, DnsManner, DnsServer, Server, answer, dns_name};
use support::{fails, holds, run};

#[test]
fn addresses() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    holds(&format!(
        "addr:
  tcp://127.0.0.1:{port}: {{reachable: true, local-address: 127.0.0.3}}
  tcp://localhost:{port}: {{reachable: true, timeout: 5000}}
  udp://127.0.0.1:{port}: {{reachable: true}}
  tcp://no-such-host.invalid:80: {{reachable: false, timeout: 5000}}
"
    ));
    drop(listener);
    let lines =
        fails(&format!("addr: {{it: {{address: 'tcp://127.0.0.1:{port}', reachable: true}}}}"));
    assert_eq!(
        lines,
        format!("Addr: tcp://127.0.0.1:{port}: reachable: expected true, found false")
    );
}

fn name_server(manner: DnsManner) -> DnsServer {
    let mut mx = vec![0, 5];
    mx.extend(dns_name("mail.test"));
    let mut srv = vec![0, 1, 0, 2, 1, 187];
    srv.extend(dns_name("s.test"));
    let records = vec![
        ("a.test", 1, vec![192, 0, 2, 9]),
        ("a.test", 1, vec![192, 0, 2, 10]),
        ("a.test", 28, vec![0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]),
        ("a.test", 5, dns_name("b.test")),
        ("a.test", 15, mx),
        ("a.test", 2, dns_name("ns.test")),
        ("a.test", 16, b"\x05hello\x04 dns".to_vec()),
        ("a.test", 257, b"\x00\x05issueca.test".to_vec()),
        ("_s._tcp.test", 33, srv),
        ("9.2.0.192.in-addr.arpa", 12, dns_name("a.test")),
    ];
    DnsServer::start(manner, records)
}

#[test]
fn names_by_the_resolver_of_the_machine() {
    holds(
        "dns:
  localhost: {resolvable: true, timeout: 5000, addrs: {or: [{contain-element: 127.0.0.1}, {contain-element: '::1'}]}}
  no-such-host.invalid: {resolvable: false, timeout: 5000}
",
    );
    let lines = fails("dns: {no-such-host.invalid: {resolvable: true, addrs: [x], timeout: 5000}}");
    assert_eq!(lines, "DNS: no-such-host.invalid: resolvable: expected true, found false");
}

#[test]
fn records_of_a_server() {
    let server = name_server(DnsManner::Normal);
    let at = format!("server: '{}', timeout: 5000, resolvable", server.address);
    holds(&format!(
        "dns:
  a.test: {{{at}: true, addrs: {{equal: [192.0.2.10, 192.0.2.9, '2001:db8::1']}}}}
  A:a.test: {{{at}: true, addrs: {{consist-of: [192.0.2.9, 192.0.2.10]}}}}
  aaaa:a.test: {{{at}: true, addrs: ['2001:db8::1']}}
  CNAME:a.test: {{{at}: true, addrs: [b.test.]}}
  MX:a.test: {{{at}: true, addrs: [5 mail.test.]}}
  NS:a.test: {{{at}: true, addrs: [ns.test.]}}
  PTR:192.0.2.9: {{{at}: true, addrs: [a.test.]}}
  SRV:_s._tcp.test: {{{at}: true, addrs: [1 2 443 s.test.]}}
  TXT:a.test: {{{at}: true, addrs: [hello dns]}}
  CAA:a.test: {{{at}: true, addrs: [0 issue ca.test]}}
  none.test: {{{at}: false}}
  TXT:_s._tcp.test: {{{at}: false}}
"
    ));
    let lines = fails(&format!("dns: {{MX:none.test: {{{at}: true, addrs: [x]}}}}"));
    assert_eq!(lines, "DNS: MX:none.test: resolvable: expected true, found false");
}

#[test]
fn name_servers_that_misbehave() {
    let rule = |server: &DnsServer, timeout: u32| {
        format!(
            "dns: {{A:a.test: {{server: '{}', timeout: {timeout}, resolvable: true, addrs: \
             [192.0.2.9]}}}}",
            server.address
        )
    };
    let lost = name_server(DnsManner::LosesFirst(2));
    holds(&rule(&lost, 1500));
    assert_eq!(lost.asked(), 3, "it is asked three times");
    holds(&rule(&name_server(DnsManner::Truncates), 5000));
    holds(&rule(&name_server(DnsManner::Confused), 5000));
    fails(&rule(&name_server(DnsManner::Babbles), 300));
    let begin = Instant::now();
    fails(&rule(&name_server(DnsManner::LosesFirst(99)), 300));
    assert!(begin.elapsed() < Duration::from_secs(5));
}

/// The answer of a server that is as it should be.
fn good(head: &str, stream: &mut dyn ccm_testkit::Stream) {
    let method = head.split(' ').next().unwrap_or_default().to_owned();
    let body = if method == "HEAD" { String::new() } else { format!("{method} is fine\n") };
    let _ = stream.write_all(&answer("200 OK", "X-Thing: yes\r\n", body.as_bytes()));
}

#[test]
fn web_servers() {
    let server = Server::start(good);
    let url = server.url("/");
    holds(&format!(
        "http:
  {url}: {{status: 200, headers: ['X-Thing: yes'], body: [GET is fine, '!POST'], timeout: 20000}}
  posted:
    url: {url}x?token=s3cret
    method: post
    status: 200
    body: [POST]
    request-body: sent
    request-headers: ['X-Own: a: b', 'Content-Type: text/plain']
    username: ann
    password: hunter2
    timeout: 20000
"
    ));
    let requests = server.requests();
    assert!(requests[1].contains("x-own: a: b"), "{}", requests[1]);
    assert!(requests[1].contains("authorization: Basic YW5uOmh1bnRlcjI="), "{}", requests[1]);
    assert!(requests[1].contains("content-length: 4"), "{}", requests[1]);
    let lines = fails(&format!("http: {{{url}: {{status: 404, body: [x]}}}}"));
    assert_eq!(lines, format!("HTTP: {url}: status: expected 404, found 200"));
    let port = server.port();
    drop(server);
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let lines =
        fails(&format!("http: {{'http://u:hunter2@127.0.0.1:{closed}/': {{status: 200}}}}"));
    assert!(lines.contains("onnection refused"), "{lines}");
    assert!(!lines.contains("hunter2") && port > 0, "{lines}");
}

#[test]
fn redirects_are_followed_unless_told_otherwise() {
    let target = Server::start(good);
    let to = target.url("/there");
    let server = Server::start(move |_, stream| {
        let _ = stream.write_all(&answer("302 Found", &format!("Location: {to}\r\n"), b""));
    });
    let url = server.url("/");
    holds(&format!(
        "http:
  {url}: {{status: 200, body: [GET], timeout: 20000}}
  stay: {{url: {url}, status: 302, no-follow-redirects: true, headers: ['/^Location: http/'], timeout: 20000}}
  posted: {{url: {url}, method: POST, status: 200, body: [GET], timeout: 20000, request-headers: ['X-Key: s3cret']}}
"
    ));
    assert!(target.requests().iter().all(|head| !head.contains("s3cret")), "it is another host");
    let round = Server::start(|_, stream| {
        let _ = stream.write_all(&answer("302 Found", "Location: /\r\n", b""));
    });
    let lines = fails(&format!("http: {{{}: {{status: 200, timeout: 20000}}}}", round.url("/")));
    assert!(lines.contains("more than 10 redirects"), "{lines}");
}

#[test]
fn web_servers_that_misbehave() {
    // Silence longer than the limit.
    let silent = Server::start(|_, _| std::thread::sleep(Duration::from_secs(30)));
    let begin = Instant::now();
    let lines = fails(&format!("http: {{{}: {{status: 200, timeout: 200}}}}", silent.url("/")));
    assert!(lines.contains("no answer within 200ms"), "{lines}");
    assert!(begin.elapsed() < Duration::from_secs(10));
    // Byte by byte, so that only an overall limit ends it.
    let slow = Server::start(|_, stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n");
        for _ in 0..1000 {
            // The pace of the server.
            std::thread::sleep(Duration::from_millis(50));
            if stream.write_all(b"x").and_then(|()| stream.flush()).is_err() {
                return;
            }
        }
    });
    let begin = Instant::now();
    let report =
        run(&format!("http: {{{}: {{status: 200, body: [x], timeout: 400}}}}", slow.url("/")));
    assert_eq!(report.summary.failed, 1, "{}", report.output());
    assert!(begin.elapsed() < Duration::from_secs(10));
    for bytes in [&b"no http at all"[..], b"", b"HTTP/1.1 999999 X\r\n\r\n", b"HTTP/1.1 200 OK\r\n"]
    {
        fails(&format!(
            "http: {{{}: {{status: 200, timeout: 3000}}}}",
            Server::with_bytes(bytes).url("/")
        ));
    }
    let short = Server::with_bytes(&b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nshort"[..]);
    let report = run(&format!(
        "http: {{{}: {{status: 200, body: [short], timeout: 3000}}}}",
        short.url("/")
    ));
    assert_eq!(report.summary.failed, 1, "a body that ends early is not the body");
    let large = Server::start(|_, stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n");
        let chunk = vec![b'x'; 1 << 20];
        while stream.write_all(&chunk).is_ok() {}
    });
    let report =
        run(&format!("http: {{{}: {{status: 200, body: [y], timeout: 20000}}}}", large.url("/")));
    assert!(report.output().contains("the body is larger than 16 MiB"), "{}", report.output());
    let binary = Server::with_body(vec![0xff, 0xfe, 0, 1, b'a', b'\n']);
    holds(&format!("http: {{{}: {{status: 200, body: [a], timeout: 20000}}}}", binary.url("/")));
}

#[test]
fn encrypted_servers() {
    let dir = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    let ca = dir.path().join("ca.pem");
    std::fs::write(&ca, &authority.pem).unwrap();
    let ca = ca.display();
    let good_server = Server::start_secure(&authority, "localhost", good);
    let url = |server: &Server| format!("https://localhost:{}/", server.port());
    holds(&format!(
        "http:
  {0}: {{status: 200, ca-file: {ca}, timeout: 20000}}
  any: {{url: {0}, status: 200, allow-insecure: true, timeout: 20000}}
",
        url(&good_server)
    ));
    let reason = |rule: &str| {
        let lines = fails(&format!("http: {{{rule}, status: 200, timeout: 20000}}}}"));
        lines.split_once("expected 200: ").map(|(_, reason)| reason.to_owned()).unwrap_or(lines)
    };
    let unknown = reason(&format!("{}: {{method: GET", url(&good_server)));
    assert!(unknown.contains("ertificate") || unknown.contains("ssuer"), "{unknown}");
    let expired = Server::start_expired(&authority, "localhost", good);
    let old = reason(&format!("{}: {{ca-file: {ca}", url(&expired)));
    assert!(old.to_lowercase().contains("expired"), "{old}");
    let other = Server::start_secure(&authority, "other.test", good);
    let wrong = reason(&format!("{}: {{ca-file: {ca}", url(&other)));
    assert!(wrong.contains("valid for") || wrong.contains("name"), "{wrong}");
    let plain = Server::start(good);
    reason(&format!("{}: {{ca-file: {ca}", url(&plain)));
    let none = reason(&format!("{}: {{ca-file: {ca}.none", url(&good_server)));
    assert!(none.starts_with("ca-file: "), "{none}");
    let junk = dir.path().join("junk.pem");
    std::fs::write(&junk, "no certificate").unwrap();
    let junk = reason(&format!("{}: {{ca-file: {}", url(&good_server), junk.display()));
    assert_eq!(junk, "ca-file: holds no certificate in PEM");
}

#[test]
fn servers_that_want_to_know_who_asks() {
    let dir = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    let (certificate, key) = authority.client("client.test");
    let at = |name: &str| dir.path().join(name).display().to_string();
    for (name, text) in [("ca", &authority.pem), ("cert", &certificate), ("key", &key)] {
        std::fs::write(at(name), text).unwrap();
    }
    let server = Server::start_mutual(&authority, "localhost", good);
    let url = format!("https://localhost:{}/", server.port());
    let with = format!("ca-file: {}, status: 200, timeout: 20000", at("ca"));
    holds(&format!(
        "http: {{{url}: {{{with}, cert-file: {}, key-file: {}}}}}",
        at("cert"),
        at("key")
    ));
    fails(&format!("http: {{{url}: {{{with}}}}}"));
    let lines = fails(&format!(
        "http: {{{url}: {{{with}, cert-file: {}, key-file: {}}}}}",
        at("cert"),
        at("cert")
    ));
    assert!(lines.contains("key-file: holds no private key"), "{lines}");
}

#[test]
fn proxies() {
    let proxy = Server::start(good);
    holds(&format!(
        "http: {{'http://no-such-host.invalid/x': {{status: 200, body: [GET], proxy: {}, timeout: \
         20000}}}}",
        proxy.url("")
    ));
    assert!(proxy.requests()[0].starts_with("GET http://no-such-host.invalid/x HTTP/1.1"));
    let lines = fails("http: {'http://127.0.0.1:1/': {status: 200, proxy: '::no:proxy::'}}");
    assert!(lines.contains("proxy: is not a proxy's URL"), "{lines}");
}
