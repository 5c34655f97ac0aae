//! Private keys.

use ed25519_dalek::Signer as _;

use super::der::{
    OCTET_STRING, OID, Reader, SEQUENCE, bits, context, element, from_pem, integer, nested, pem,
};
use crate::error::Fail;
use crate::functions::Context;

const EC_PUBLIC_KEY: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
const P256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
const ECDSA_SHA256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02];
const ED25519: &[u8] = &[0x2b, 0x65, 0x70];

/// A private key of one of the kinds there are.
pub(super) enum PrivateKey {
    Ecdsa(p256::ecdsa::SigningKey),
    Ed25519(ed25519_dalek::SigningKey),
}

impl PrivateKey {
    /// A new key on the curve P-256.
    pub(super) fn ecdsa(from: &Context<'_>) -> Result<Self, Fail> {
        // Nearly every number is a key; a source that never yields one is broken.
        for _ in 0..16 {
            let mut bytes = [0; 32];
            from.random(&mut bytes)?;
            if let Ok(key) = p256::ecdsa::SigningKey::from_slice(&bytes) {
                return Ok(Self::Ecdsa(key));
            }
        }
        Err("the source of randomness does not yield a key".into())
    }

    pub(super) fn ed25519(from: &Context<'_>) -> Result<Self, Fail> {
        let mut seed = [0; 32];
        from.random(&mut seed)?;
        Ok(Self::Ed25519(ed25519_dalek::SigningKey::from_bytes(&seed)))
    }

    /// Reads a key in PEM, as this module or OpenSSL writes it.
    pub(super) fn parse(text: &str) -> Result<Self, Fail> {
        let (label, bytes) = from_pem(text).ok_or("unable to decode the private key")?;
        let key = match label {
            "EC PRIVATE KEY" => sec1(&bytes),
            "PRIVATE KEY" => pkcs8(&bytes),
            "RSA PRIVATE KEY" | "DSA PRIVATE KEY" => {
                return Err(format!(
                    "a block {label:?} is not supported: use an ECDSA or Ed25519 key"
                )
                .into());
            }
            _ => return Err(format!("{label:?} is not the name of a private key").into()),
        };
        key.ok_or_else(|| "the private key is neither ECDSA on P-256 nor Ed25519".into())
    }

    pub(super) fn to_pem(&self) -> String {
        match self {
            Self::Ecdsa(key) => {
                let parameters = nested(context(0), &[element(OID, P256)]);
                let public = nested(context(1), &[bits(&self.public_bytes())]);
                let private = element(OCTET_STRING, &key.to_bytes());
                pem(
                    "EC PRIVATE KEY",
                    &nested(SEQUENCE, &[integer(&[1]), private, parameters, public]),
                )
            }
            Self::Ed25519(key) => {
                let private = element(OCTET_STRING, &element(OCTET_STRING, &key.to_bytes()));
                let kind = nested(SEQUENCE, &[element(OID, ED25519)]);
                pem("PRIVATE KEY", &nested(SEQUENCE, &[integer(&[0]), kind, private]))
            }
        }
    }

    /// The public key as a certificate's string of bits holds it.
    pub(super) fn public_bytes(&self) -> Vec<u8> {
        match self {
            Self::Ecdsa(key) => key.verifying_key().to_sec1_point(false).as_bytes().to_vec(),
            Self::Ed25519(key) => key.verifying_key().as_bytes().to_vec(),
        }
    }

    /// The public key with its kind.
    pub(super) fn public_info(&self) -> Vec<u8> {
        let kind = match self {
            Self::Ecdsa(_) => nested(SEQUENCE, &[element(OID, EC_PUBLIC_KEY), element(OID, P256)]),
            Self::Ed25519(_) => nested(SEQUENCE, &[element(OID, ED25519)]),
        };
        nested(SEQUENCE, &[kind, bits(&self.public_bytes())])
    }

    /// How signatures are made.
    pub(super) fn algorithm(&self) -> Vec<u8> {
        let name = match self {
            Self::Ecdsa(_) => ECDSA_SHA256,
            Self::Ed25519(_) => ED25519,
        };
        nested(SEQUENCE, &[element(OID, name)])
    }

    pub(super) fn sign(&self, message: &[u8]) -> Vec<u8> {
        match self {
            Self::Ecdsa(key) => {
                let signature: p256::ecdsa::DerSignature = key.sign(message);
                signature.as_bytes().to_vec()
            }
            Self::Ed25519(key) => key.sign(message).to_bytes().to_vec(),
        }
    }
}

fn sec1(bytes: &[u8]) -> Option<PrivateKey> {
    let mut body = Reader(Reader(bytes).expect(SEQUENCE)?);
    body.expect(super::der::INTEGER)?;
    let private = body.expect(OCTET_STRING)?;
    if let Some((tag, content, _)) = body.any()
        && tag == context(0)
        && Reader(content).expect(OID) != Some(P256)
    {
        return None;
    }
    p256::ecdsa::SigningKey::from_slice(private).ok().map(PrivateKey::Ecdsa)
}

fn pkcs8(bytes: &[u8]) -> Option<PrivateKey> {
    let mut body = Reader(Reader(bytes).expect(SEQUENCE)?);
    body.expect(super::der::INTEGER)?;
    let mut kind = Reader(body.expect(SEQUENCE)?);
    let name = kind.expect(OID)?;
    let private = body.expect(OCTET_STRING)?;
    if name == ED25519 {
        let seed = Reader(private).expect(OCTET_STRING)?.try_into().ok()?;
        return Some(PrivateKey::Ed25519(ed25519_dalek::SigningKey::from_bytes(&seed)));
    }
    if name == EC_PUBLIC_KEY && kind.expect(OID) == Some(P256) {
        return sec1(private);
    }
    None
}
