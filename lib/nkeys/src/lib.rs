#![doc = include_str!("../README.md")]

mod text;

use std::fmt;

use ring::rand::{SecureRandom as _, SystemRandom};
use ring::signature::{Ed25519KeyPair, KeyPair as _};

/// What a key belongs to, as its first letter says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    Account,
    Operator,
    User,
}

impl Owner {
    const ALL: [Self; 3] = [Self::Account, Self::Operator, Self::User];

    /// The byte before a public key, which makes its first letter in base 32.
    fn prefix(self) -> u8 {
        match self {
            Self::Account => 0,
            Self::Operator => 14 << 3,
            Self::User => 20 << 3,
        }
    }
}

/// The byte before a seed: the letter `S` in base 32.
const SEED: u8 = 18 << 3;

/// A key pair of an operator, an account or a user.
pub struct KeyPair {
    owner: Owner,
    seed: [u8; 32],
    pair: Ed25519KeyPair,
}

/// Why there is no key pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// The text is not base 32, has another length, or its checksum is wrong.
    Damaged,
    /// It is not a seed, or not one of an operator, an account or a user.
    WrongKind,
    /// The system gave no random bytes.
    NoRandomness,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Damaged => "the seed is damaged",
            Self::WrongKind => "this is not a seed of an operator, an account or a user",
            Self::NoRandomness => "the system gives no random bytes",
        })
    }
}

impl std::error::Error for Error {}

impl KeyPair {
    /// Reads a seed, such as `SUA…`.
    ///
    /// # Errors
    ///
    /// Fails if the text is damaged or no seed.
    pub fn from_seed(text: &str) -> Result<Self, Error> {
        let bytes = text::decode(text).ok_or(Error::Damaged)?;
        let [first, second, seed @ ..] = &bytes[..] else { return Err(Error::Damaged) };
        // The types share the second byte: three bits are in the first one.
        let prefix = (first & 0b111) << 5 | (second >> 3);
        let owner = Owner::ALL.into_iter().find(|owner| owner.prefix() == prefix);
        let owner = owner.filter(|_| first >> 3 == SEED >> 3 && second.trailing_zeros() >= 3);
        let seed = seed.try_into().map_err(|_| Error::Damaged)?;
        Self::of(owner.ok_or(Error::WrongKind)?, seed)
    }

    /// A new key pair of a user.
    ///
    /// # Errors
    ///
    /// Fails if the system gives no random bytes.
    pub fn new_user() -> Result<Self, Error> {
        Self::random(Owner::User)
    }

    /// A new key pair of an account.
    ///
    /// # Errors
    ///
    /// Fails if the system gives no random bytes.
    pub fn new_account() -> Result<Self, Error> {
        Self::random(Owner::Account)
    }

    /// A new key pair of an operator.
    ///
    /// # Errors
    ///
    /// Fails if the system gives no random bytes.
    pub fn new_operator() -> Result<Self, Error> {
        Self::random(Owner::Operator)
    }

    fn random(owner: Owner) -> Result<Self, Error> {
        let mut seed = [0; 32];
        SystemRandom::new().fill(&mut seed).map_err(|_| Error::NoRandomness)?;
        Self::of(owner, seed)
    }

    fn of(owner: Owner, seed: [u8; 32]) -> Result<Self, Error> {
        // Only the length of a seed can be wrong.
        let pair = Ed25519KeyPair::from_seed_unchecked(&seed).map_err(|_| Error::Damaged)?;
        Ok(Self { owner, seed, pair })
    }

    /// The public key, such as `UA…`.
    pub fn public_key(&self) -> String {
        text::encode(&[&[self.owner.prefix()], self.pair.public_key().as_ref()].concat())
    }

    /// The seed, which is the secret.
    pub fn seed(&self) -> String {
        let prefix = self.owner.prefix();
        text::encode(&[&[SEED | prefix >> 5, (prefix & 0b1_1111) << 3][..], &self.seed].concat())
    }

    /// The signature of a text.
    ///
    /// # Errors
    ///
    /// Never fails; clients expect a result.
    pub fn sign(&self, text: &[u8]) -> Result<Vec<u8>, Error> {
        Ok(self.pair.sign(text).as_ref().to_vec())
    }
}

impl fmt::Debug for KeyPair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyPair").field("owner", &self.owner).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use ring::signature::{ED25519, UnparsedPublicKey};

    use super::*;

    /// The example of NATS' own documentation of credentials.
    const DOCUMENTED: &str = "SUAIO3FHUX5PNV2LQIIP7TZ3N4L7TX3W53MQGEIVYFIGA635OZCKEYHFLM";

    #[test]
    fn seeds_are_read_and_written() {
        let pair = KeyPair::from_seed(DOCUMENTED).unwrap();
        assert_eq!(pair.seed(), DOCUMENTED);
        let made = [
            (KeyPair::new_user(), "SU", 'U'),
            (KeyPair::new_account(), "SA", 'A'),
            (KeyPair::new_operator(), "SO", 'O'),
        ];
        for (pair, seed, key) in made {
            let pair = pair.unwrap();
            assert!(pair.seed().starts_with(seed) && pair.seed().len() == 58, "{}", pair.seed());
            assert!(pair.public_key().starts_with(key) && pair.public_key().len() == 56);
            let again = KeyPair::from_seed(&pair.seed()).unwrap();
            assert_eq!(again.public_key(), pair.public_key());
        }
    }

    #[test]
    fn signatures_hold() {
        let pair = KeyPair::new_user().unwrap();
        let signature = pair.sign(b"challenge").unwrap();
        let key = UnparsedPublicKey::new(&ED25519, pair.pair.public_key().as_ref());
        key.verify(b"challenge", &signature).unwrap();
        key.verify(b"another", &signature).unwrap_err();
    }

    #[test]
    fn what_is_no_seed_is_refused() {
        let public = KeyPair::new_user().unwrap().public_key();
        let mut changed = DOCUMENTED.to_owned();
        changed.replace_range(20..21, "A");
        for (text, error) in [
            ("", Error::Damaged),
            ("SU", Error::Damaged),
            ("é", Error::Damaged),
            (&DOCUMENTED[..57], Error::Damaged),
            (&DOCUMENTED.to_lowercase(), Error::Damaged),
            (&changed, Error::Damaged),
            (&format!("{DOCUMENTED}A"), Error::Damaged),
        ] {
            assert_eq!(KeyPair::from_seed(text).err(), Some(error), "{text}");
        }
        assert!(KeyPair::from_seed(&public).is_err());
        assert_eq!(
            format!("{:?}", KeyPair::from_seed(DOCUMENTED).unwrap()),
            "KeyPair { owner: User, .. }"
        );
    }
}
