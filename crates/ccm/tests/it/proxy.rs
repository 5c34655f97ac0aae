//! Proxies and redirects, with servers made by hand on the loopback interface.

use ccm_testkit::{Authority, Server, answer};

use crate::TestEnv;

const DATA: &str = "data: {a: 1}\n";

fn run(env: &TestEnv, url: &str, variables: &[(&str, &str)]) -> (bool, String) {
    let mut command = env.command(["ensure", "exec", "true", "--hiera", url]);
    let output = command.envs(variables.iter().copied()).output().unwrap();
    let text = String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned();
    (output.status.success(), text)
}

#[test]
fn plain_http_asks_a_proxy_for_the_whole_address() {
    let env = TestEnv::new();
    let proxy = Server::with_body(DATA);
    let address = format!("http://me:p%40ss@{}", proxy.address);
    for variable in ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"] {
        let url = "http://u:pw@nowhere.invalid:8080/data.yaml?q=1";
        let (is_done, text) = run(&env, url, &[(variable, &address)]);
        assert!(is_done, "{variable}: {text}");
        let request = proxy.requests().pop().unwrap();
        let wanted = "GET http://nowhere.invalid:8080/data.yaml?q=1 HTTP/1.1\n";
        assert!(request.starts_with(wanted), "{request}");
        assert!(request.contains("\nhost: nowhere.invalid:8080\n"), "{request}");
        // me:p@ss to the proxy, u:pw to the server.
        assert!(request.contains("\nproxy-authorization: Basic bWU6cEBzcw==\n"), "{request}");
        assert!(request.contains("\nauthorization: Basic dTpwdw==\n"), "{request}");
    }
    assert_eq!(proxy.requests().len(), 4);
}

#[test]
fn hosts_without_a_proxy_are_asked_themselves() {
    let env = TestEnv::new();
    let (proxy, server) = (Server::with_body(DATA), Server::with_body(DATA));
    let address = format!("http://{}", proxy.address);
    for variables in [
        &[("http_proxy", &*address), ("no_proxy", "a.b, 127.0.0.1")][..],
        &[("HTTP_PROXY", &*address), ("NO_PROXY", "127.0.0.0/8")],
        &[("http_proxy", &*address), ("no_proxy", "*")],
        // That one is for https.
        &[("https_proxy", &*address)],
    ] {
        let (is_done, text) = run(&env, &server.url("/d.yaml"), variables);
        assert!(is_done, "{variables:?}: {text}");
        assert_eq!(proxy.requests().len(), 0, "{variables:?}");
    }
    let request = server.requests().pop().unwrap();
    assert!(request.starts_with("GET /d.yaml HTTP/1.1\n"), "{request}");
    assert!(!request.contains("proxy-authorization"), "{request}");
}

#[test]
fn https_goes_through_a_proxy_by_connect() {
    let env = TestEnv::new();
    let proxy = Server::with_bytes(answer("403 Forbidden", "", b""));
    let address = format!("http://me:hunter2@{}", proxy.address);
    let url = "https://nowhere.invalid/data.yaml";
    let (is_done, text) = run(&env, url, &[("https_proxy", &address)]);
    assert!(!is_done && !text.contains("hunter2"), "{text}");
    assert!(text.contains(&format!("through proxy {}", proxy.address)), "{text}");
    let request = proxy.requests().pop().unwrap();
    assert!(request.starts_with("CONNECT nowhere.invalid:443 HTTP/1.1\n"), "{request}");
    assert!(!request.contains("data.yaml"), "{request}");
}

#[test]
fn proxies_that_fail_are_told_without_their_password() {
    let env = TestEnv::new();
    let refused = Server::with_bytes(answer("407 Proxy Authentication Required", "", b""));
    let address = format!("http://me:hunter2@{}", refused.address);
    for (proxy, words) in [
        (address.as_str(), "407 Proxy Authentication Required"),
        ("http://me:hunter2@127.0.0.1:1", "through proxy 127.0.0.1:1"),
        ("http://me:hunter2@:not a url", "http_proxy is not a proxy's URL"),
    ] {
        let (is_done, text) = run(&env, "http://nowhere.invalid/d", &[("http_proxy", proxy)]);
        assert!(!is_done && text.contains(words) && !text.contains("hunter2"), "{proxy}: {text}");
    }
}

#[test]
fn a_redirect_from_https_to_http_is_refused() {
    let env = TestEnv::new();
    let plain = Server::with_body(DATA);
    let location = format!("Location: {}?token=hunter2\r\n", plain.url("/d.yaml"));
    let authority = Authority::new();
    let secure = Server::start_secure(&authority, "localhost", move |_, stream| {
        let _ = stream.write_all(&answer("302 Found", &location, b""));
    });
    let file = env.write("ca.pem", &authority.pem);
    let url = format!("https://localhost:{}/d.yaml", secure.port());
    let (is_done, text) = run(&env, &url, &[("SSL_CERT_FILE", file.to_str().unwrap())]);
    assert!(!is_done, "{text}");
    assert!(text.contains("redirects from https to http://"), "{text}");
    assert!(!text.contains("hunter2"), "{text}");
    assert_eq!(plain.requests().len(), 0);
    assert_eq!(secure.requests().len(), 1);
}
