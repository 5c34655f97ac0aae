//! Operator, account and user tokens, as administrators make them.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use nkeys::KeyPair;
use serde_json::{Value, json};

/// The configuration of a server that knows nobody by name, and credentials.
pub(crate) struct Operator {
    pub(crate) configuration: String,
    account: KeyPair,
}

fn token(
    issuer: &KeyPair,
    subject: &str,
    expires: Option<i64>,
    name: &str,
    nats: &Value,
) -> String {
    let mut claims = json!({
        "jti": name, "iat": 1_700_000_000, "iss": issuer.public_key(), "name": name,
        "sub": subject, "nats": nats,
    });
    if let Some(expires) = expires {
        claims["exp"] = expires.into();
    }
    let encode = |text: String| URL_SAFE_NO_PAD.encode(text);
    let header = json!({"typ": "JWT", "alg": "ed25519-nkey"});
    let body = format!("{}.{}", encode(header.to_string()), encode(claims.to_string()));
    let signature = URL_SAFE_NO_PAD.encode(issuer.sign(body.as_bytes()).unwrap());
    format!("{body}.{signature}")
}

impl Operator {
    pub(crate) fn new() -> Self {
        let (operator, system, account) = (
            KeyPair::new_operator().unwrap(),
            KeyPair::new_account().unwrap(),
            KeyPair::new_account().unwrap(),
        );
        let limits = json!({
            "subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1, "wildcards": true,
            "conn": -1, "leaf": -1, "mem_storage": -1, "disk_storage": -1, "streams": -1,
            "consumer": -1,
        });
        let none = json!({"subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1,
            "wildcards": true, "conn": -1, "leaf": -1});
        let account_claims =
            |limits: &Value| json!({"limits": limits, "type": "account", "version": 2});
        let own = token(
            &operator,
            &operator.public_key(),
            None,
            "test",
            &json!({"type": "operator", "version": 2, "system_account": system.public_key()}),
        );
        let (system_key, account_key) = (system.public_key(), account.public_key());
        let system_token = token(&operator, &system_key, None, "SYS", &account_claims(&none));
        let account_token = token(&operator, &account_key, None, "CCM", &account_claims(&limits));
        let configuration = format!(
            "operator: {own}\nsystem_account: {system_key}\nresolver: MEMORY\nresolver_preload: {{\n  \
             {system_key}: {system_token}\n  {account_key}: {account_token}\n}}\n"
        );
        Self { configuration, account }
    }

    /// The token and the seed of a new user.
    pub(crate) fn user(&self, expires: Option<i64>) -> (String, String) {
        let user = KeyPair::new_user().unwrap();
        let claims = json!({
            "pub": {}, "sub": {}, "subs": -1, "data": -1, "payload": -1, "type": "user",
            "version": 2,
        });
        let token = token(&self.account, &user.public_key(), expires, "user", &claims);
        (token, user.seed())
    }
}

/// A credentials file.
pub(crate) fn credentials((token, seed): &(String, String)) -> String {
    format!(
        "-----BEGIN NATS USER JWT-----\n{token}\n------END NATS USER JWT------\n\n\
         -----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
    )
}
