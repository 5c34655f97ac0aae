//! Private keys and certificates.
//!
//! Keys are made on elliptic curves: they are as good as the RSA keys the
//! original makes, a fraction of their size, and there in no time.

mod keys;

use std::net::IpAddr;
use std::rc::Rc;

use govalue::{Duration, Time};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use x509_cert::attr::AttributeTypeAndValue;
use x509_cert::builder::profile::BuilderProfile;
use x509_cert::builder::{self, CertificateBuilder};
use x509_cert::certificate::{CertificateInner, Raw, TbsCertificate};
use x509_cert::der::asn1::{Ia5String, OctetString, SetOfVec, Utf8StringRef};
use x509_cert::der::oid::db::{rfc4519, rfc5280};
use x509_cert::der::pem::LineEnding;
use x509_cert::der::{self, DateTime, Decode as _, EncodePem as _};
use x509_cert::ext::pkix::name::GeneralName;
use x509_cert::ext::pkix::{
    AuthorityKeyIdentifier, BasicConstraints, ExtendedKeyUsage, KeyUsage, KeyUsages,
    SubjectAltName, SubjectKeyIdentifier,
};
use x509_cert::ext::{Extension, ToExtension};
use x509_cert::name::{Name, RdnSequence, RelativeDistinguishedName};
use x509_cert::serial_number::SerialNumber;
use x509_cert::spki::SubjectPublicKeyInfoRef;
use x509_cert::time::Validity;

use self::keys::PrivateKey;
use super::encoding::decode64;
use crate::error::Fail;
use crate::functions::Type::{Certificate as C, Int, List as L, String};
use crate::functions::{Arguments, Context, Native, Outcome};
use crate::val::{Certificate, Val};

pub(super) const FUNCTIONS: &[Native] = &[
    Native::new("buildCustomCert", &[String, String], custom),
    Native::new("genCA", &[String, Int], |context, a| authority(context, a, None)),
    Native::new("genCAWithKey", &[String, Int, String], |context, a| {
        authority(context, a, Some(2))
    }),
    Native::new("genPrivateKey", &[String], private_key),
    Native::new("genSelfSignedCert", &[String, L, L, Int], |context, a| {
        certificate(context, a, None, None)
    }),
    Native::new("genSelfSignedCertWithKey", &[String, L, L, Int, String], |context, a| {
        certificate(context, a, None, Some(4))
    }),
    Native::new("genSignedCert", &[String, L, L, Int, C], |context, a| {
        certificate(context, a, a.certificate(4), None)
    }),
    Native::new("genSignedCertWithKey", &[String, L, L, Int, C, String], |context, a| {
        certificate(context, a, a.certificate(4), Some(5))
    }),
];

/// What making a key or a signature costs.
const SLOW: usize = 20_000;

fn private_key(context: &mut Context<'_>, arguments: &Arguments<'_>) -> Outcome {
    context.budget.spend(SLOW)?;
    Ok(match &*arguments.text(0) {
        "ecdsa" => PrivateKey::ecdsa(context)?.to_pem()?.into(),
        "ed25519" => PrivateKey::ed25519(context)?.to_pem()?.into(),
        kind @ ("" | "rsa" | "dsa") => {
            let kind = if kind.is_empty() { "rsa" } else { kind };
            return Err(format!("{kind} keys are not supported: use ecdsa or ed25519").into());
        }
        kind => format!("Unknown type {kind}").into(),
    })
}

/// Certificate and key of the caller's, checked and taken out of base64.
fn custom(_: &mut Context<'_>, arguments: &Arguments<'_>) -> Outcome {
    let decoded = |index: usize, what: &str| {
        decode64(arguments.bytes(index))
            .ok()
            .and_then(|bytes| std::string::String::from_utf8(bytes).ok())
            .ok_or_else(|| format!("unable to decode base64 {what}"))
    };
    let (cert, key) = (decoded(0, "certificate")?, decoded(1, "private key")?);
    Issuer::parse(&cert)?;
    // Any key will do, also one that cannot sign here.
    if PrivateKeyDer::from_pem_slice(key.as_bytes()).is_err() {
        return Err("unable to decode key".into());
    }
    Ok(Val::Certificate(Rc::new(Certificate { cert, key })))
}

/// Whom a certificate is for.
struct Request {
    subject: Name,
    days: i64,
    is_authority: bool,
    alternatives: Vec<GeneralName>,
}

impl Request {
    fn new(common_name: &str, days: i64) -> Result<Self, Fail> {
        let subject = subject(common_name).map_err(|error| error.to_string())?;
        Ok(Self { subject, days, is_authority: false, alternatives: Vec::new() })
    }
}

fn subject(common_name: &str) -> der::Result<Name> {
    let value = Utf8StringRef::new(common_name)?.into();
    let pair = AttributeTypeAndValue { oid: rfc4519::COMMON_NAME, value };
    let part = RelativeDistinguishedName::from(SetOfVec::try_from([pair])?);
    Ok(Name::hazmat_from_rdn_sequence(RdnSequence::from(vec![part])))
}

/// Who signs, as certificates name them.
struct Issuer {
    name: Name,
    key_id: Option<OctetString>,
}

impl Issuer {
    /// The subject of the first certificate in a PEM string, and the id of its
    /// key. Accepts certificates that break rules of RFC 5280, such as overlong
    /// serial numbers.
    fn parse(text: &str) -> Result<Self, Fail> {
        let read = || {
            let bytes = CertificateDer::from_pem_slice(text.as_bytes()).ok()?;
            let certificate = CertificateInner::<Raw>::from_der(&bytes).ok()?;
            let body = certificate.tbs_certificate();
            let key_id = body.get_extension::<SubjectKeyIdentifier>().ok()?.map(|(_, id)| id.0);
            Some(Self { name: body.subject().clone(), key_id })
        };
        read().ok_or_else(|| "unable to decode certificate".into())
    }
}

fn authority(context: &mut Context<'_>, arguments: &Arguments<'_>, key: Option<usize>) -> Outcome {
    let mut request = Request::new(&arguments.text(0), arguments.int(1))?;
    request.is_authority = true;
    issue(context, arguments, &request, None, key)
}

fn certificate(
    context: &mut Context<'_>,
    arguments: &Arguments<'_>,
    signer: Option<&Certificate>,
    key: Option<usize>,
) -> Outcome {
    let mut request = Request::new(&arguments.text(0), arguments.int(3))?;
    for name in &arguments.list(2).items {
        let Val::Str(name) = name else {
            return Err(format!("error processing alternate dns name: {}", name.type_name()).into());
        };
        let name = name.to_str_lossy();
        let encoded = Ia5String::new(&*name).map_err(|_| {
            format!("error processing alternate dns name: {name:?} is not ASCII, use Punycode")
        })?;
        request.alternatives.push(GeneralName::DnsName(encoded));
    }
    for address in &arguments.list(1).items {
        let text = match address {
            Val::Str(text) => text.to_str_lossy(),
            other => return Err(format!("error parsing ip: {}", other.type_name()).into()),
        };
        let address: IpAddr = text.parse().map_err(|_| format!("error parsing ip: {text}"))?;
        request.alternatives.push(address.into());
    }
    issue(context, arguments, &request, signer, key)
}

/// Makes the key, unless one is given, and the certificate.
fn issue(
    context: &mut Context<'_>,
    arguments: &Arguments<'_>,
    request: &Request,
    signer: Option<&Certificate>,
    key: Option<usize>,
) -> Outcome {
    context.budget.spend(SLOW)?;
    let own = match key {
        Some(index) => PrivateKey::parse(&arguments.text(index))?,
        None => PrivateKey::ecdsa(context)?,
    };
    let foreign = signer.map(|signer| PrivateKey::parse(&signer.key)).transpose()?;
    let issuer = signer.map(|signer| Issuer::parse(&signer.cert)).transpose()?;
    let certificate = CertificateBuilder::new(
        Profile { request, issuer },
        serial(context)?,
        validity(&context.now(), request.days)?,
        own.public()?,
    )
    .map_err(|error| error.to_string())?;
    let certificate = foreign.as_ref().unwrap_or(&own).sign(certificate)?;
    let cert = certificate.to_pem(LineEnding::LF).map_err(|error| error.to_string())?;
    Ok(Val::Certificate(Rc::new(Certificate { cert, key: own.to_pem()? })))
}

fn serial(context: &Context<'_>) -> Result<SerialNumber, Fail> {
    let mut bytes = [0; 16];
    context.random(&mut bytes)?;
    // Zero is not a serial number.
    bytes[15] |= 1;
    SerialNumber::new(&bytes).map_err(|error| error.to_string().into())
}

fn validity(from: &Time, days: i64) -> Result<Validity, Fail> {
    let span = days.checked_mul(24).and_then(|hours| hours.checked_mul(Duration::HOUR.0));
    let until = from.add(Duration(span.ok_or("that many days are not supported")?));
    let moment = |time: &Time| {
        u64::try_from(time.unix())
            .ok()
            .and_then(|seconds| {
                DateTime::from_unix_duration(std::time::Duration::from_secs(seconds)).ok()
            })
            .ok_or_else(|| format!("a certificate cannot be valid in the year {}", time.year()))
    };
    Ok(Validity::new(moment(from)?.into(), moment(&until)?.into()))
}

/// The names and extensions of a certificate, as Sprig chooses them.
struct Profile<'a> {
    request: &'a Request,
    /// `None` if the certificate is its own issuer.
    issuer: Option<Issuer>,
}

impl BuilderProfile for Profile<'_> {
    fn get_subject(&self) -> Name {
        self.request.subject.clone()
    }

    fn get_issuer(&self, subject: &Name) -> Name {
        self.issuer.as_ref().map_or(subject, |issuer| &issuer.name).clone()
    }

    fn build_extensions(
        &self,
        key: SubjectPublicKeyInfoRef<'_>,
        _: SubjectPublicKeyInfoRef<'_>,
        certificate: &TbsCertificate,
    ) -> builder::Result<Vec<Extension>> {
        let is_authority = self.request.is_authority;
        let mut usage = KeyUsages::DigitalSignature | KeyUsages::KeyEncipherment;
        if is_authority {
            usage |= KeyUsages::KeyCertSign;
        }
        let purposes = vec![rfc5280::ID_KP_SERVER_AUTH, rfc5280::ID_KP_CLIENT_AUTH];
        let constraints = BasicConstraints { ca: is_authority, path_len_constraint: None };
        let own_id = if is_authority { Some(SubjectKeyIdentifier::try_from(key)?) } else { None };
        let issuer_id = match &self.issuer {
            Some(issuer) => issuer.key_id.clone(),
            None => own_id.as_ref().map(|id| id.0.clone()),
        };

        let mut found = Vec::new();
        let mut add = |extension: der::Result<Extension>| extension.map(|one| found.push(one));
        let subject = certificate.subject();
        add((true, &KeyUsage(usage)).to_extension(subject, &[]))?;
        add((false, &ExtendedKeyUsage(purposes)).to_extension(subject, &[]))?;
        add((true, &constraints).to_extension(subject, &[]))?;
        if let Some(id) = &own_id {
            add((false, id).to_extension(subject, &[]))?;
        }
        if issuer_id.is_some() {
            let id = AuthorityKeyIdentifier { key_identifier: issuer_id, ..Default::default() };
            add((false, &id).to_extension(subject, &[]))?;
        }
        if !self.request.alternatives.is_empty() {
            let names = SubjectAltName(self.request.alternatives.clone());
            add((false, &names).to_extension(subject, &[]))?;
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use govalue::Value;

    use crate::Engine;

    fn render(text: &str) -> std::string::String {
        Engine::new().render("t", text, &Value::Nil).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn keys_are_read_as_they_are_written() {
        for kind in ["ecdsa", "ed25519"] {
            let text = format!(
                "{{{{ $k := genPrivateKey \"{kind}\" }}}}{{{{ eq $k (genCAWithKey \"me\" 1 $k).Key }}}}"
            );
            assert_eq!(render(&text), "true", "{kind}");
        }
        assert_eq!(render("{{ genPrivateKey \"x\" }}"), "Unknown type x");
        for bad in ["{{ genPrivateKey \"rsa\" }}", "{{ genCAWithKey \"me\" 1 \"no key\" }}"] {
            assert!(Engine::new().render("t", bad, &Value::Nil).is_err(), "{bad}");
        }
    }

    #[test]
    fn authorities_sign() {
        let made = render(
            "{{ $ca := genCA \"ca\" 365 }}\
             {{ $c := genSignedCert \"host\" (list \"10.0.0.1\" \"::1\") (list \"a.example\") 9 $ca }}\
             {{ $c.Cert }}{{ $c.Key }}{{ kindOf $c }}{{ typeOf $ca }}\
             {{ (buildCustomCert (b64enc $c.Cert) (b64enc $c.Key)).Key | eq $c.Key }}",
        );
        assert!(made.starts_with("-----BEGIN CERTIFICATE-----\n"), "{made}");
        assert!(made.contains("-----BEGIN EC PRIVATE KEY-----\n"), "{made}");
        assert!(made.ends_with("structsprig.certificatetrue"), "{made}");
        for bad in [
            "{{ genSelfSignedCert \"x\" (list \"no ip\") nil 1 }}",
            "{{ genSelfSignedCert \"x\" nil (list 5) 1 }}",
            "{{ genCA \"x\" 9999999999999 }}",
            "{{ genSignedCert \"x\" nil nil 1 (dict) }}",
            "{{ buildCustomCert \"x\" \"y\" }}",
        ] {
            assert!(Engine::new().render("t", bad, &Value::Nil).is_err(), "{bad}");
        }
    }
}
