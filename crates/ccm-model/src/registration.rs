//! Registration of services: the property in a manifest and the entry in a
//! registry.
//!
//! [`Registration`] is the property, [`RegistryEntry`] what is published.
//! Subjects and payloads are those of Choria CCM, so that both can serve one
//! fleet.

mod entry;
mod file_sd;
mod property;
mod query;
mod ttl;

pub use entry::{RegistryChange, RegistryEntry, RegistryMessageError, entries_of};
pub use file_sd::prometheus_file_sd;
pub use property::{Annotations, Registration, Whole};
pub use query::{RegistryQuery, RegistrySubject};
pub use ttl::{Ttl, TtlError};

/// Prefix of the subjects of all entries.
pub const REGISTRY_PREFIX: &str = "choria.ccm.registration.v1";

/// Longest cluster, service or protocol.
const MAX_NAME: usize = 255;

/// What a cluster, service or protocol looks like, for schemas.
pub(crate) const NAME_PATTERN: &str = "^[a-zA-Z][a-zA-Z0-9_-]{0,254}$";
/// What an address looks like, roughly, for schemas.
pub(crate) const ADDRESS_PATTERN: &str = "^[0-9a-fA-F:.]+$";

/// Checks the name of a cluster, service or protocol.
fn check_name(what: &str, name: &str) -> Result<(), String> {
    if name.is_empty() {
        return Err(format!("`{what}` is required"));
    }
    let is_rest = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if name.len() > MAX_NAME {
        return Err(format!("{what}: a name has at most {MAX_NAME} characters"));
    }
    if !name.starts_with(|c: char| c.is_ascii_alphabetic()) || !name.bytes().all(is_rest) {
        let shown = name.escape_debug();
        return Err(format!(
            "{what}: `{shown}` is not a name: write letters, digits, `_` and `-`, a letter first"
        ));
    }
    Ok(())
}

/// Checks an address.
fn check_address(address: &str) -> Result<(), String> {
    if address.is_empty() {
        return Err("`address` is required".to_owned());
    }
    match address.parse::<std::net::IpAddr>() {
        Ok(_) => Ok(()),
        Err(_) => {
            let shown: String = address.chars().take(100).collect();
            let shown = shown.escape_debug();
            Err(format!("address: `{shown}` is not an IPv4 or IPv6 address"))
        }
    }
}

/// JSON as Go writes it: `<`, `>`, `&` and two line separators are escaped.
/// These characters only occur inside strings.
fn as_go_writes(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                escaped.push_str(&format!("\\u{:04x}", c as u32));
            }
            c => escaped.push(c),
        }
    }
    escaped
}
