//! Objects: their metadata, and their chunks as a body that is verified.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::{Buf as _, Bytes};
use ccm_host::{Host, Validators};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use crate::Nats;
use crate::error::{Error, Problem, Result};
use crate::jetstream::{Direct, PageLimit};
use crate::link::Link;
use crate::source::{ObjectName, object_subject};

/// How long a server may send nothing.
const SILENCE: Duration = Duration::from_mins(1);
/// How much is asked for at once.
const PAGE: PageLimit = PageLimit { messages: 64, bytes: 4 << 20 };

/// Metadata of an object.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Metadata {
    #[serde(default)]
    nuid: String,
    #[serde(default)]
    pub(crate) size: u64,
    #[serde(default)]
    chunks: u64,
    #[serde(default)]
    digest: String,
    #[serde(default)]
    deleted: bool,
    #[serde(default)]
    options: Option<Options>,
}

#[derive(Clone, Debug, Default, Deserialize)]
struct Options {
    #[serde(default)]
    link: Option<Target>,
}

/// Target of a link.
#[derive(Clone, Debug, Default, Deserialize)]
struct Target {
    #[serde(default)]
    bucket: String,
    #[serde(default)]
    name: String,
}

/// An object that exists, found by its name or by a link.
#[derive(Clone, Debug)]
pub(crate) struct Object {
    bucket: String,
    name: String,
    pub(crate) metadata: Metadata,
    digest: Vec<u8>,
}

impl Object {
    /// What tells this version from another.
    pub(crate) fn validators(&self) -> Validators {
        Validators { etag: Some(self.metadata.digest.clone()), last_modified: None }
    }
}

/// Looks an object up; a link is followed once.
pub(crate) async fn find(link: &Link, wanted: &ObjectName<'_>) -> Result<Object> {
    link.check_version("reading objects", (2, 10))?;
    let (bucket, name) = (wanted.bucket.to_owned(), wanted.name.to_owned());
    let metadata = metadata(link, &bucket, &name).await?;
    let target = metadata.options.as_ref().and_then(|options| options.link.clone());
    let Some(Target { bucket: to_bucket, name: to_name }) = target else {
        return object(link, bucket, name, metadata);
    };
    let wrong = |what: &str| {
        let (bucket, name, what) = (bucket.clone(), name.clone(), what.to_owned());
        link.error(Problem::Object { bucket, name, what })
    };
    if to_name.is_empty() {
        return Err(wrong("is a link to a whole bucket"));
    }
    if crate::source::check_bucket(&to_bucket).is_err() {
        return Err(wrong("is a link to something that is not a bucket"));
    }
    let metadata = self::metadata(link, &to_bucket, &to_name).await?;
    if metadata.options.as_ref().is_some_and(|options| options.link.is_some()) {
        return Err(wrong("is a link to another link"));
    }
    object(link, to_bucket, to_name, metadata)
}

async fn metadata(link: &Link, bucket: &str, name: &str) -> Result<Metadata> {
    let no_object = |is_deleted| {
        let (bucket, name) = (bucket.to_owned(), name.to_owned());
        link.error(Problem::NoObject { bucket, name, is_deleted })
    };
    let stream = format!("OBJ_{bucket}");
    let subject = object_subject(bucket, name);
    let what = format!("object \"{name}\" in bucket \"{bucket}\"");
    let stored = match link.last_by_subject(&stream, &subject, &what).await? {
        Direct::Found(stored) => stored,
        Direct::Nothing => return Err(no_object(false)),
        Direct::Nobody => {
            return Err(match link.stream_info(&stream).await? {
                None => link.error(Problem::NoBucket { bucket: bucket.to_owned(), what: "object" }),
                Some(_) => link.error(Problem::Refused {
                    what: format!("read bucket {bucket}"),
                    reason: "it does not allow direct reads".to_owned(),
                }),
            });
        }
    };
    let metadata: Metadata = serde_json::from_slice(&stored.payload).map_err(|error| {
        let (bucket, name) = (bucket.to_owned(), name.to_owned());
        link.error(Problem::Object { bucket, name, what: format!("has no metadata: {error}") })
    })?;
    if metadata.deleted { Err(no_object(true)) } else { Ok(metadata) }
}

/// Checks what is needed to read and verify it.
fn object(link: &Link, bucket: String, name: String, metadata: Metadata) -> Result<Object> {
    let wrong = |what: &str| {
        let (bucket, name, what) = (bucket.clone(), name.clone(), what.to_owned());
        link.error(Problem::Object { bucket, name, what })
    };
    let digest = match metadata.digest.split_once('=') {
        _ if metadata.digest.is_empty() => return Err(wrong("has no digest")),
        Some(("SHA-256", digest)) => URL_SAFE_NO_PAD.decode(digest.trim_end_matches('=')),
        _ => return Err(wrong("has a digest that is not SHA-256")),
    };
    let digest = digest.ok().filter(|digest| digest.len() == 32);
    let digest = digest.ok_or_else(|| wrong("has a digest that is not SHA-256"))?;
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let is_name = !metadata.nuid.is_empty() && metadata.nuid.bytes().all(is_token);
    if metadata.size > 0 && !is_name {
        return Err(wrong("has metadata without an id"));
    }
    Ok(Object { bucket, name, metadata, digest })
}

/// The chunks of an object, one after the other. The last read fails if size or
/// digest are not those of the metadata.
pub(crate) struct Content {
    nats: Nats,
    host: Host,
    object: Object,
    waiting: VecDeque<Bytes>,
    /// Where the next chunk is looked for.
    from: u64,
    chunks: u64,
    received: u64,
    hasher: Option<Sha256>,
}

impl Content {
    pub(crate) fn new(nats: &Nats, host: &Host, object: Object) -> Self {
        Self {
            nats: nats.clone(),
            host: host.clone(),
            object,
            waiting: VecDeque::new(),
            from: 1,
            chunks: 0,
            received: 0,
            hasher: Some(Sha256::new()),
        }
    }

    /// Fetches more chunks. Asks again, over a new connection if need be, as
    /// long as the silence is not too long.
    fn fetch(&mut self) -> Result<()> {
        let silent_since = Instant::now();
        loop {
            match self.page() {
                Err(error) if error.is_passing() && silent_since.elapsed() < SILENCE => {
                    self.host.cancel().pause(Duration::from_millis(200));
                    if self.host.cancel().is_cancelled() {
                        return Err(error);
                    }
                }
                result => return result,
            }
        }
    }

    fn page(&mut self) -> Result<()> {
        let link = self.nats.link(&self.host)?;
        let Object { bucket, name, metadata, .. } = &self.object;
        let stream = format!("OBJ_{bucket}");
        let filter = format!("$O.{bucket}.C.{}", metadata.nuid);
        let page = self.nats.wait(&self.host, link.page(&stream, &filter, self.from, PAGE))?;
        let gone = || {
            let what = "was replaced or deleted while it was read".to_owned();
            link.error(Problem::Object { bucket: bucket.clone(), name: name.clone(), what })
        };
        let messages = page.map(|page| page.messages).unwrap_or_default();
        if messages.is_empty() {
            return Err(gone());
        }
        for message in messages {
            self.from = message.sequence + 1;
            self.chunks += 1;
            self.received += message.payload.len() as u64;
            if let Some(hasher) = &mut self.hasher {
                hasher.update(&message.payload);
            }
            self.waiting.push_back(message.payload);
        }
        if self.received > metadata.size || self.chunks > metadata.chunks {
            return Err(self.wrong("is larger than its metadata says"));
        }
        Ok(())
    }

    fn verify(&mut self) -> Result<()> {
        let Some(hasher) = self.hasher.take() else { return Ok(()) };
        if hasher.finalize().as_slice() != self.object.digest {
            return Err(self.wrong("does not have the digest of its metadata"));
        }
        Ok(())
    }

    fn wrong(&self, what: &str) -> Error {
        let Object { bucket, name, .. } = self.object.clone();
        let problem = Problem::Object { bucket, name, what: what.to_owned() };
        match self.nats.current() {
            Some(link) => link.error(problem),
            None => Error::before("", problem),
        }
    }
}

impl Read for Content {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(chunk) = self.waiting.front_mut() {
                let count = chunk.len().min(into.len());
                chunk.copy_to_slice(&mut into[..count]);
                if chunk.is_empty() {
                    self.waiting.pop_front();
                }
                if count > 0 || into.is_empty() {
                    return Ok(count);
                }
                continue;
            }
            let more = if self.received < self.object.metadata.size {
                self.fetch().map(|()| true)
            } else {
                self.verify().map(|()| false)
            };
            match more {
                Ok(true) => {}
                Ok(false) => return Ok(0),
                Err(error) => return Err(io::Error::other(error.to_string())),
            }
        }
    }
}
