//! A type that the studio has never heard of appears in its table and has a
//! form, because both are made of the list of types alone.

use ccm_engine::{Engine, Inputs};
use ccm_extension_example::TYPES;
use ccm_host::{Host, ListenSocket, System};
use ccm_studio::{Settings, Studio};
use ccm_testkit::Target;
use serde_json::{Value, json};

#[test]
fn a_new_type_is_in_the_table_and_has_a_form() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().canonicalize().unwrap();
    let host = Host::new();
    let socket = ListenSocket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let settings = Settings {
        engine: Engine::new(System::default(), TYPES),
        inputs: Box::new(|_| Ok(Inputs::default())),
        directory: host.open_tree(&path).unwrap().unwrap(),
        host,
        file: None,
        allow_apply: false,
        read_only: true,
        session: None,
        state: ccm_engine::StateRequest { is_off: true, ..Default::default() },
        idle: None,
        assets: None,
        version: ("0", "none"),
        tell: Box::new(|_| {}),
    };
    let studio = Studio::start(settings, socket).unwrap();
    let link = studio.link();
    let (origin, token) = link.split_once("/#token=").unwrap();
    let host = origin.strip_prefix("http://").unwrap();
    let target = Target::Tcp(host.parse().unwrap());
    let json_headers = [("Host", host), ("Content-Type", "application/json")];
    let body = json!({"token": token}).to_string();
    let session = target.send("POST /api/v1/session", &json_headers, body.as_bytes());
    let session: Value = serde_json::from_slice(&session.body).unwrap();
    let bearer = format!("Bearer {}", session["key"].as_str().unwrap());
    let mut headers = json_headers.to_vec();
    headers.push(("Authorization", &bearer));
    let types = target.send("GET /api/v1/types", &headers, b"");
    let types: Value = serde_json::from_slice(&types.body).unwrap();
    let setting = types["types"].as_array().unwrap().iter().find(|kind| kind["name"] == "setting");
    let fields = setting.unwrap()["fields"].as_array().unwrap();
    let value = fields.iter().find(|field| field["name"] == "value").unwrap();
    assert_eq!((&value["shape"], &value["required"]), (&json!("text"), &json!(true)));
    let text =
        "ccm:\n  resources:\n    - setting:\n        - PORT: {file: /etc/default/app, value: 80}\n";
    let body = json!({"path": "m.yaml", "text": text, "resource": "setting#PORT"}).to_string();
    let form = target.send("POST /api/v1/form", &headers, body.as_bytes());
    let form: Value = serde_json::from_slice(&form.body).unwrap();
    assert_eq!(form["properties"]["file"]["own"], "/etc/default/app");
    assert_eq!(form["properties"]["value"]["own"], "80", "a text, as the type reads it");
    assert!(studio.is_open());
    studio.stop();
}
