//! Reads keys from key-value buckets.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::json;

use crate::error::{Problem, Result};
use crate::jetstream::{Direct, Stored, reading};
use crate::link::Link;
use crate::source::Key;

/// The newest value of a key.
pub(crate) async fn get(link: &Link, key: &Key<'_>) -> Result<Bytes> {
    link.check_version("reading keys", (2, 10))?;
    match link.last_by_subject(&key.stream(), &key.subject(), &described(key)).await? {
        Direct::Found(stored) if is_deleted(&stored) => Err(no_key(link, key)),
        Direct::Found(stored) => Ok(stored.payload),
        Direct::Nothing => Err(no_key(link, key)),
        Direct::Nobody => by_leader(link, key).await,
    }
}

/// The same from the leader of the stream, for buckets that do not allow direct
/// reads; finds out what is missing otherwise.
async fn by_leader(link: &Link, key: &Key<'_>) -> Result<Bytes> {
    let operation = format!("STREAM.MSG.GET.{}", key.stream());
    let body = json!({"last_by_subj": key.subject()});
    let answer = match link.api_request(&operation, &body, &reading(&described(key))).await? {
        Ok(answer) => answer,
        Err(error) if error.is_no_stream() => {
            return Err(link.error(Problem::NoBucket { bucket: key.bucket.to_owned(), what: "kv" }));
        }
        Err(error) if error.is_no_message() => return Err(no_key(link, key)),
        Err(error) => {
            let (what, reason) = (format!("read {}", described(key)), error.description);
            return Err(link.error(Problem::Refused { what, reason }));
        }
    };
    let decoded = |name: &str| {
        let text = answer["message"][name].as_str().unwrap_or_default();
        STANDARD.decode(text).unwrap_or_default()
    };
    let headers = decoded("hdrs");
    let headers = String::from_utf8_lossy(&headers).to_ascii_lowercase();
    if headers.contains("kv-operation:") || headers.contains("nats-marker-reason:") {
        return Err(no_key(link, key));
    }
    Ok(decoded("data").into())
}

/// A key in a sentence.
pub(crate) fn described(key: &Key<'_>) -> String {
    format!("key `{}` in bucket `{}`", key.key, key.bucket)
}

/// Whether a message says that there is no value any more.
fn is_deleted(stored: &Stored) -> bool {
    matches!(stored.header("KV-Operation"), Some("DEL" | "PURGE"))
        || stored.header("Nats-Marker-Reason").is_some()
}

fn no_key(link: &Link, key: &Key<'_>) -> crate::Error {
    link.error(Problem::NoKey { bucket: key.bucket.to_owned(), key: key.key.to_owned() })
}
