//! Credentials of a context.

use nkeys::KeyPair;

use super::{Reader, Servers};
use crate::error::Result;

/// Who a client says it is.
pub(crate) enum Login {
    /// No credentials, or only a client certificate.
    Anonymous,
    User {
        name: String,
        password: String,
    },
    /// A key; with a token of an account it signs for that.
    Key {
        pair: Box<KeyPair>,
        token: Option<String>,
    },
}

/// A token that is sent in addition.
pub(crate) struct Token(pub(crate) String);

impl Login {
    /// What answers the server's challenge.
    pub(crate) fn answer(
        &self,
        token: Option<&Token>,
        nonce: &[u8],
    ) -> Result<async_nats::Auth, async_nats::AuthError> {
        let mut auth = async_nats::Auth::new();
        auth.token = token.map(|token| token.0.clone());
        match self {
            Self::Anonymous => {}
            Self::User { name, password } => {
                auth.username = Some(name.clone());
                auth.password = Some(password.clone());
            }
            Self::Key { pair, token } => {
                let signed = pair.sign(nonce);
                let signed = signed.map_err(|_| async_nats::AuthError::new("cannot sign"))?;
                auth.signature = Some(signed);
                match token {
                    Some(token) => auth.jwt = Some(token.clone()),
                    None => auth.nkey = Some(pair.public_key()),
                }
            }
        }
        Ok(auth)
    }
}

/// Reads how to log in, and what of it must not be shown.
pub(super) fn read(
    reader: &Reader<'_>,
    servers: &Servers,
    secrets: &mut Vec<String>,
) -> Result<(Login, Option<Token>)> {
    let token = reader.text("token")?.or_else(|| servers.token.clone());
    secrets.extend(token.clone());
    let token = token.map(Token);
    let jwt = reader.text("user_jwt")?;
    secrets.extend(jwt.clone());
    let password = reader.text("password")?.unwrap_or_default();
    secrets.extend(Some(password.clone()).filter(|password| !password.is_empty()));
    if let Some(name) = reader.text("user")? {
        return Ok((Login::User { name, password }, token));
    }
    if let Some(creds) = reader.text("creds")? {
        let path = reader.expanded("creds", &reader.with_variables(&creds))?;
        let text = reader.secret_file("creds", &path)?;
        let wrong = || {
            let path = path.display();
            reader.fail(format!("`creds`: {path} has no token and seed of a user"))
        };
        let jwt = block(&text, "USER JWT").ok_or_else(wrong)?;
        let seed = block(&text, "USER NKEY SEED").ok_or_else(wrong)?;
        secrets.extend([jwt.clone(), seed.clone()]);
        let pair = pair(&seed).ok_or_else(wrong)?;
        return Ok((Login::Key { pair, token: Some(jwt) }, token));
    }
    if let Some(path) = reader.path("nkey")? {
        let text = reader.secret_file("nkey", &path)?;
        let is_seed = |line: &&str| line.starts_with('S');
        let seed = text.lines().map(str::trim).find(is_seed).unwrap_or_default().to_owned();
        secrets.push(seed.clone());
        let pair = pair(&seed).ok_or_else(|| {
            reader.fail(format!("`nkey`: there is no seed in {}", path.display()))
        })?;
        return Ok((Login::Key { pair, token: jwt }, token));
    }
    let login = match servers.user.clone() {
        Some((name, password)) => Login::User { name, password },
        None => Login::Anonymous,
    };
    Ok((login, token))
}

/// The key pair of a user's seed.
fn pair(seed: &str) -> Option<Box<KeyPair>> {
    // Anything else is not what the library expects of its input.
    let is_seed = seed.len() == 58 && seed.starts_with("SU");
    let is_base32 = |byte: u8| byte.is_ascii_uppercase() || (b'2'..=b'7').contains(&byte);
    (is_seed && seed.bytes().all(is_base32)).then(|| KeyPair::from_seed(seed).ok().map(Box::new))?
}

/// What stands between the marks of this name.
fn block(text: &str, name: &str) -> Option<String> {
    let is_mark = |line: &str, word: &str| {
        line.starts_with("---") && line.contains(word) && line.contains(name)
    };
    let mut lines = text.lines().map(str::trim).skip_while(|line| !is_mark(line, "BEGIN"));
    lines.next()?;
    let content: String = lines.take_while(|line| !line.starts_with("---")).collect();
    (!content.is_empty()).then_some(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_found_between_their_marks() {
        let text = "-----BEGIN NATS USER JWT-----\neyJ.x.y\n------END NATS USER JWT------\n\n****\n\
                    -----BEGIN USER NKEY SEED-----\r\nSUABC\r\n------END USER NKEY SEED------\n";
        assert_eq!(block(text, "USER JWT").as_deref(), Some("eyJ.x.y"));
        assert_eq!(block(text, "USER NKEY SEED").as_deref(), Some("SUABC"));
        assert_eq!(block("-----BEGIN NATS USER JWT-----\n", "USER JWT"), None);
        assert_eq!(block("", "USER JWT"), None);
    }

    #[test]
    fn what_is_no_seed_is_refused_without_a_panic() {
        let good = KeyPair::new_user().unwrap().seed();
        assert!(pair(&good).is_some());
        let mut wrong = good.clone();
        wrong.replace_range(20..21, if &good[20..21] == "A" { "B" } else { "A" });
        for seed in ["", "S", "SU", "é", &good[..57], &wrong, &good.replace("SU", "SA")] {
            assert!(pair(seed).is_none(), "{seed}");
        }
        assert!(pair(&"SU7".repeat(20)).is_none());
    }
}
