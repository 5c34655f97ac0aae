//! Authentication: links that work once, and the keys that they are exchanged
//! for.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use ccm_host::Host;

/// How long a link works.
const LINK: Duration = Duration::from_mins(10);
/// Wrong keys within this time are counted together.
const WINDOW: Duration = Duration::from_mins(1);
/// Wrong keys in a window before each further one has to wait.
const WRONG: usize = 20;
/// How long it has to wait.
pub(crate) const WAIT: Duration = Duration::from_secs(1);
/// Limit on stored links and keys; the oldest are dropped first.
const KEPT: usize = 1000;

type Secret = [u8; 32];

/// The links and keys of a studio.
#[derive(Default)]
pub(crate) struct Auth {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    links: VecDeque<Link>,
    keys: VecDeque<Secret>,
    wrong: VecDeque<Instant>,
}

struct Link {
    token: Secret,
    made: Instant,
    is_used: bool,
}

/// What a token is worth.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Exchange {
    /// This key.
    Key(String),
    /// It was exchanged before.
    Used,
    /// It is too old.
    Expired,
    /// There never was such a token.
    Unknown,
}

impl Auth {
    /// A new token for a link.
    pub(crate) fn token(&self, host: &Host) -> String {
        let token: Secret = host.random();
        let mut state = self.hold();
        if state.links.len() == KEPT {
            state.links.pop_front();
        }
        state.links.push_back(Link { token, made: Instant::now(), is_used: false });
        hex(&token)
    }

    /// Exchanges a token for a key, once.
    pub(crate) fn exchange(&self, token: &str, host: &Host, now: Instant) -> Exchange {
        let token = unhex(token);
        let mut state = self.hold();
        // All are compared, so that time does not tell which one is near.
        let mut found = None;
        for (index, link) in state.links.iter().enumerate() {
            if token.as_ref().is_some_and(|token| is_same(token, &link.token)) {
                found = Some(index);
            }
        }
        let Some(link) = found.and_then(|index| state.links.get_mut(index)) else {
            return Exchange::Unknown;
        };
        if link.is_used {
            return Exchange::Used;
        }
        if now.saturating_duration_since(link.made) > LINK {
            return Exchange::Expired;
        }
        link.is_used = true;
        let key: Secret = host.random();
        if state.keys.len() == KEPT {
            state.keys.pop_front();
        }
        state.keys.push_back(key);
        Exchange::Key(hex(&key))
    }

    /// Whether this is a key.
    pub(crate) fn is_key(&self, key: &str) -> bool {
        let Some(key) = unhex(key) else { return false };
        self.hold().keys.iter().fold(false, |found, known| is_same(&key, known) | found)
    }

    /// Counts a wrong key or token; true if the answer has to wait.
    pub(crate) fn wrong(&self, now: Instant) -> bool {
        let mut state = self.hold();
        while state.wrong.front().is_some_and(|at| now.saturating_duration_since(*at) > WINDOW) {
            state.wrong.pop_front();
        }
        let must_wait = state.wrong.len() >= WRONG;
        if state.wrong.len() <= WRONG {
            state.wrong.push_back(now);
        }
        must_wait
    }

    fn hold(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Compares without a hint in its time where the difference is.
fn is_same(one: &Secret, other: &Secret) -> bool {
    let differences = one.iter().zip(other).fold(0, |bits, (a, b)| bits | (a ^ b));
    std::hint::black_box(differences) == 0
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn unhex(text: &str) -> Option<Secret> {
    let bytes = text.as_bytes();
    if bytes.len() != 64 {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let mut secret = [0; 32];
    for (index, pair) in bytes.chunks_exact(2).enumerate() {
        secret[index] = (digit(pair[0])? * 16 + digit(pair[1])?) as u8;
    }
    Some(secret)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_becomes_a_key_once_and_in_time() {
        let (auth, host, now) = (Auth::default(), Host::new(), Instant::now());
        let token = auth.token(&host);
        assert_eq!(token.len(), 64);
        let Exchange::Key(key) = auth.exchange(&token, &host, now) else { panic!("no key") };
        assert!(auth.is_key(&key));
        assert!(!auth.is_key(&token) && !auth.is_key("") && !auth.is_key(&"0".repeat(64)));
        assert_eq!(auth.exchange(&token, &host, now), Exchange::Used);
        let late = auth.token(&host);
        assert_eq!(auth.exchange(&late, &host, now + LINK * 2), Exchange::Expired);
        assert_eq!(auth.exchange(&"f".repeat(64), &host, now), Exchange::Unknown);
        assert_eq!(auth.exchange("é", &host, now), Exchange::Unknown);
    }

    #[test]
    fn the_twenty_first_wrong_key_in_a_minute_waits() {
        let (auth, now) = (Auth::default(), Instant::now());
        assert!((0..WRONG).all(|_| !auth.wrong(now)));
        assert!(auth.wrong(now));
        assert!(!auth.wrong(now + WINDOW * 2));
    }
}
