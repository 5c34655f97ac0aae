//! An entry of the service registry.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};

use super::{REGISTRY_PREFIX, RegistrySubject, Ttl, as_go_writes, check_address, check_name};

/// Where one instance of a service can be found. Serializes to the payload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegistryEntry {
    /// The cluster that the service belongs to.
    pub cluster: String,
    /// The name of the service.
    pub service: String,
    /// The protocol that it speaks.
    pub protocol: String,
    /// Its IPv4 or IPv6 address, as it was written.
    pub address: String,
    /// Its port, if it has one.
    pub port: Option<i64>,
    /// Which one to prefer: lower comes first.
    #[serde(default)]
    pub priority: i64,
    /// More about it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "or_default")]
    pub annotations: BTreeMap<String, String>,
    /// How long the entry lasts; as long as the registry keeps entries if unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<Ttl>,
}

fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    from: D,
) -> Result<T, D::Error> {
    Option::deserialize(from).map(Option::unwrap_or_default)
}

/// Why a message in a registry is not an entry.
#[derive(Debug, thiserror::Error)]
#[error("the message on {subject} is not a registration: {reason}")]
pub struct RegistryMessageError {
    /// The subject of the message.
    pub subject: String,
    /// Error in its payload.
    pub reason: String,
}

/// A change in a registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegistryChange {
    /// A service is there.
    Register(RegistryEntry),
    /// An entry has gone.
    Remove {
        /// The parsed subject of the entry.
        subject: RegistrySubject,
        /// `MaxAge`, `Remove` or `Purge`.
        reason: String,
    },
}

impl RegistryEntry {
    /// The last token of the subject: it tells ports of one address apart.
    ///
    /// These are the hexadecimal digits of FNV-1a over the fields without
    /// separators. An entry without a port hashes what Go prints for a number
    /// that is missing, as Choria CCM does.
    pub fn instance(&self) -> String {
        let port = self.port.map_or_else(|| "%!d(<nil>)".to_owned(), |port| port.to_string());
        let fields = [&self.cluster, &self.service, &self.protocol, &self.address, &port];
        let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
        for byte in fields.iter().flat_map(|field| field.bytes()) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        format!("{hash:016x}")
    }

    /// The subject that the entry is published on.
    pub fn subject(&self) -> String {
        let Self { cluster, protocol, service, .. } = self;
        let (address, instance) = (self.address.replace('.', "_"), self.instance());
        format!("{REGISTRY_PREFIX}.{cluster}.{protocol}.{service}.{address}.{instance}")
    }

    /// Checks that the entry may stand on this subject. Servers grant subjects
    /// and do not look at payloads, so without this a client that may announce
    /// one service could announce any.
    fn check_subject(&self, subject: &str) -> Result<(), String> {
        let names =
            [("cluster", &self.cluster), ("protocol", &self.protocol), ("service", &self.service)];
        names.into_iter().try_for_each(|(what, name)| check_name(what, name))?;
        check_address(&self.address)?;
        let own = self.subject();
        if own != subject {
            return Err(format!("it belongs on {own}"));
        }
        Ok(())
    }

    /// The payload: one line of JSON.
    pub fn payload(&self) -> String {
        // Texts and numbers always have a notation in JSON.
        as_go_writes(&serde_json::to_string(self).unwrap_or_default())
    }

    /// Reads a JSON list of payloads.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is anything else.
    pub fn list(json: &str) -> Result<Vec<Self>, serde_json::Error> {
        serde_json::from_str(json)
    }

    /// The headers for a stream of this name.
    pub fn headers(&self, stream: &str) -> Vec<(&'static str, String)> {
        let mut headers =
            vec![("Nats-Rollup", "sub".to_owned()), ("Nats-Expected-Stream", stream.to_owned())];
        headers.extend(self.ttl.map(|ttl| ("Nats-TTL", ttl.to_string())));
        headers
    }
}

impl RegistryChange {
    /// Reads a message; `marker` is its header `Nats-Marker-Reason`.
    ///
    /// # Errors
    ///
    /// Returns an error if the payload is not an entry, or that of another
    /// subject.
    pub fn read(
        subject: &str,
        marker: Option<&str>,
        payload: &[u8],
    ) -> Result<Self, RegistryMessageError> {
        // The publisher controls the length of both.
        let cut = |text: &str| text.chars().take(300).collect::<String>();
        let wrong =
            |reason: String| RegistryMessageError { subject: cut(subject), reason: cut(&reason) };
        if let Some(reason) = marker.filter(|marker| !marker.is_empty()) {
            let subject = RegistrySubject::parse(subject)
                .ok_or_else(|| wrong("its subject is not that of an entry".to_owned()))?;
            return Ok(Self::Remove { subject, reason: reason.to_owned() });
        }
        if payload.is_empty() {
            return Err(wrong("it is empty".to_owned()));
        }
        let entry: RegistryEntry =
            serde_json::from_slice(payload).map_err(|error| wrong(error.to_string()))?;
        entry.check_subject(subject).map_err(wrong)?;
        Ok(Self::Register(entry))
    }
}

/// The entries among stored messages (subject, marker, payload), in the order
/// in which look-ups return them, and what is wrong with the other messages.
pub fn entries_of<'m>(
    messages: impl IntoIterator<Item = (&'m str, Option<&'m str>, &'m [u8])>,
) -> (Vec<RegistryEntry>, Vec<RegistryMessageError>) {
    let (mut entries, mut errors) = (Vec::new(), Vec::new());
    for (subject, marker, payload) in messages {
        if marker.is_some_and(|marker| !marker.is_empty()) {
            continue;
        }
        match RegistryChange::read(subject, None, payload) {
            Ok(RegistryChange::Register(entry)) => entries.push(entry),
            Ok(RegistryChange::Remove { .. }) => {}
            Err(error) => errors.push(error),
        }
    }
    entries.sort_by(|a, b| order(a).cmp(&order(b)));
    (entries, errors)
}

/// A total order, so that files that are generated from entries do not flap.
fn order(entry: &RegistryEntry) -> impl Ord + '_ {
    let RegistryEntry { cluster, service, protocol, address, port, priority, .. } = entry;
    (address, port.unwrap_or(0), cluster, protocol, service, *priority)
}
