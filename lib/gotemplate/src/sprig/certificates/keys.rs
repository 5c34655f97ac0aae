//! Private keys, in the forms that OpenSSL and Go read and write.

use ed25519_dalek::pkcs8::{DecodePrivateKey as _, EncodePrivateKey as _, KeypairBytes};
use p256::pkcs8::LineEnding;
use rustls_pki_types::PrivateKeyDer;
use rustls_pki_types::pem::PemObject as _;
use x509_cert::builder::{Builder as _, CertificateBuilder, profile::BuilderProfile};
use x509_cert::certificate::Certificate;
use x509_cert::spki::SubjectPublicKeyInfoOwned;

use crate::error::Fail;
use crate::functions::Context;

/// A private key of a supported type.
pub(super) enum PrivateKey {
    Ecdsa(p256::SecretKey),
    Ed25519(ed25519_dalek::SigningKey),
}

impl PrivateKey {
    /// A new key on the curve P-256.
    pub(super) fn ecdsa(from: &Context<'_>) -> Result<Self, Fail> {
        // Nearly every number is a key; a source that never yields one is broken.
        for _ in 0..16 {
            let mut bytes = [0; 32];
            from.random(&mut bytes)?;
            if let Ok(key) = p256::SecretKey::from_slice(&bytes) {
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

    /// Reads the first private key in a PEM string, in SEC1 or PKCS #8.
    pub(super) fn parse(text: &str) -> Result<Self, Fail> {
        let key = match PrivateKeyDer::from_pem_slice(text.as_bytes()) {
            Ok(PrivateKeyDer::Sec1(key)) => {
                p256::SecretKey::from_sec1_der(key.secret_sec1_der()).ok().map(Self::Ecdsa)
            }
            Ok(PrivateKeyDer::Pkcs8(key)) => Self::from_pkcs8(key.secret_pkcs8_der()),
            Ok(_) => return Err("RSA keys are not supported: use an ECDSA or Ed25519 key".into()),
            Err(_) => return Err("unable to decode the private key".into()),
        };
        key.ok_or_else(|| "the private key is neither ECDSA on P-256 nor Ed25519".into())
    }

    fn from_pkcs8(bytes: &[u8]) -> Option<Self> {
        let ecdsa = p256::SecretKey::from_pkcs8_der(bytes).map(Self::Ecdsa);
        let ed25519 = || ed25519_dalek::SigningKey::from_pkcs8_der(bytes).map(Self::Ed25519);
        ecdsa.or_else(|_| ed25519()).ok()
    }

    /// The key in PEM: SEC1 for ECDSA, PKCS #8 for Ed25519, as Go writes them.
    pub(super) fn to_pem(&self) -> Result<String, Fail> {
        let text = match self {
            Self::Ecdsa(key) => key.to_sec1_pem(LineEnding::LF).ok(),
            // Without the public key: OpenSSL before 3.0 reads no other form.
            Self::Ed25519(key) => KeypairBytes { secret_key: key.to_bytes(), public_key: None }
                .to_pkcs8_pem(LineEnding::LF)
                .ok(),
        };
        Ok(text.ok_or("unable to encode the private key")?.to_string())
    }

    /// The public key, as certificates hold it.
    pub(super) fn public(&self) -> Result<SubjectPublicKeyInfoOwned, Fail> {
        match self {
            Self::Ecdsa(key) => SubjectPublicKeyInfoOwned::from_key(&key.public_key()),
            Self::Ed25519(key) => SubjectPublicKeyInfoOwned::from_key(&key.verifying_key()),
        }
        .map_err(|error| error.to_string().into())
    }

    /// Completes a certificate with a signature of this key.
    pub(super) fn sign<P: BuilderProfile>(
        &self,
        builder: CertificateBuilder<P>,
    ) -> Result<Certificate, Fail> {
        match self {
            Self::Ecdsa(key) => {
                builder.build::<_, p256::ecdsa::DerSignature>(&p256::ecdsa::SigningKey::from(key))
            }
            Self::Ed25519(key) => builder.build::<_, ed25519_dalek::Signature>(key),
        }
        .map_err(|error| error.to_string().into())
    }
}
