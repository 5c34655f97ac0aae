//! Private keys and certificates.
//!
//! Keys are made on elliptic curves: they are as good as the RSA keys the
//! original makes, a fraction of their size, and there in no time.

mod der;
mod keys;

use std::net::IpAddr;
use std::rc::Rc;

use govalue::{Duration, Time, Zone};
use sha2::Digest;

use self::der::{
    BIT_STRING, GENERALIZED_TIME, OCTET_STRING, OID, Reader, SEQUENCE, SET, UTC_TIME, UTF8_STRING,
    bits, context as numbered, element, from_pem, integer, nested, pem,
};
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
const SLOW: usize = 5_000;

fn private_key(context: &mut Context<'_>, arguments: &Arguments<'_>) -> Outcome {
    context.budget.spend(SLOW)?;
    Ok(match &*arguments.text(0) {
        "ecdsa" => PrivateKey::ecdsa(context)?.to_pem().into(),
        "ed25519" => PrivateKey::ed25519(context)?.to_pem().into(),
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
    if !from_pem(&key).is_some_and(|(label, _)| label.ends_with("PRIVATE KEY")) {
        return Err("unable to decode key".into());
    }
    Ok(Val::Certificate(Rc::new(Certificate { cert, key })))
}

/// Whom a certificate is for.
struct Request {
    name: Vec<u8>,
    days: i64,
    is_authority: bool,
    /// Entries of the subject's alternative names.
    alternatives: Vec<Vec<u8>>,
}

/// Who signs, as certificates name them.
struct Issuer {
    name: Vec<u8>,
    key_id: Option<Vec<u8>>,
}

const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
const KEY_USAGE: &[u8] = &[0x55, 0x1d, 0x0f];
const EXTENDED_KEY_USAGE: &[u8] = &[0x55, 0x1d, 0x25];
const BASIC_CONSTRAINTS: &[u8] = &[0x55, 0x1d, 0x13];
const SUBJECT_KEY_ID: &[u8] = &[0x55, 0x1d, 0x0e];
const AUTHORITY_KEY_ID: &[u8] = &[0x55, 0x1d, 0x23];
const ALTERNATIVE_NAMES: &[u8] = &[0x55, 0x1d, 0x11];
const SERVER_AUTH: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x01];
const CLIENT_AUTH: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x02];

fn common_name(name: &str) -> Vec<u8> {
    let pair = [element(OID, COMMON_NAME), element(UTF8_STRING, name.as_bytes())];
    nested(SEQUENCE, &[nested(SET, &[nested(SEQUENCE, &pair)])])
}

impl Issuer {
    /// The subject of a certificate in PEM, and the id of its key.
    fn parse(text: &str) -> Result<Self, Fail> {
        let wrong = "unable to decode certificate";
        let (label, bytes) = from_pem(text).ok_or(wrong)?;
        let found = if label == "CERTIFICATE" { Self::read(&bytes) } else { None };
        found.ok_or_else(|| wrong.into())
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let mut body = Reader(Reader(Reader(bytes).expect(SEQUENCE)?).expect(SEQUENCE)?);
        body.skip(numbered(0));
        // Serial number, algorithm, issuer and validity.
        for _ in 0..4 {
            body.any()?;
        }
        let (_, _, name) = body.any()?;
        body.expect(SEQUENCE)?;
        let mut key_id = None;
        while let Some((tag, content, _)) = body.any() {
            if tag != numbered(3) {
                continue;
            }
            let mut extensions = Reader(Reader(content).expect(SEQUENCE)?);
            while let Some(extension) = extensions.expect(SEQUENCE) {
                let mut extension = Reader(extension);
                if extension.expect(OID)? == SUBJECT_KEY_ID {
                    let value = extension.expect(OCTET_STRING)?;
                    key_id = Some(Reader(value).expect(OCTET_STRING)?.to_vec());
                }
            }
        }
        Some(Self { name: name.to_vec(), key_id })
    }
}

fn authority(context: &mut Context<'_>, arguments: &Arguments<'_>, key: Option<usize>) -> Outcome {
    let request = Request {
        name: common_name(&arguments.text(0)),
        days: arguments.int(1),
        is_authority: true,
        alternatives: Vec::new(),
    };
    issue(context, arguments, &request, None, key)
}

fn certificate(
    context: &mut Context<'_>,
    arguments: &Arguments<'_>,
    signer: Option<&Certificate>,
    key: Option<usize>,
) -> Outcome {
    let mut alternatives = Vec::new();
    for name in &arguments.list(2).items {
        let Val::Str(name) = name else {
            return Err(format!("error processing alternate dns name: {}", name.type_name()).into());
        };
        // A DNS name, by its number among the kinds of names.
        alternatives.push(element(0x82, name.as_bytes()));
    }
    for address in &arguments.list(1).items {
        let text = match address {
            Val::Str(text) => text.to_str_lossy().into_owned(),
            other => return Err(format!("error parsing ip: {}", other.type_name()).into()),
        };
        let bytes = match text.parse() {
            Ok(IpAddr::V4(address)) => address.octets().to_vec(),
            Ok(IpAddr::V6(address)) => address.octets().to_vec(),
            Err(_) => return Err(format!("error parsing ip: {text}").into()),
        };
        alternatives.push(element(0x87, &bytes));
    }
    let request = Request {
        name: common_name(&arguments.text(0)),
        days: arguments.int(3),
        is_authority: false,
        alternatives,
    };
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
    let key_id = sha1::Sha1::digest(own.public_bytes()).to_vec();
    let foreign = signer.map(|signer| PrivateKey::parse(&signer.key)).transpose()?;
    let signing = foreign.as_ref().unwrap_or(&own);
    let issuer = match signer {
        Some(signer) => Issuer::parse(&signer.cert)?,
        None => Issuer {
            name: request.name.clone(),
            key_id: request.is_authority.then(|| key_id.clone()),
        },
    };
    let body = nested(
        SEQUENCE,
        &[
            nested(numbered(0), &[integer(&[2])]),
            serial(context)?,
            signing.algorithm(),
            issuer.name.clone(),
            validity(context, request.days)?,
            request.name.clone(),
            own.public_info(),
            nested(numbered(3), &[nested(SEQUENCE, &extensions(request, &issuer, &key_id))]),
        ],
    );
    let signature = bits(&signing.sign(&body));
    let cert = pem("CERTIFICATE", &nested(SEQUENCE, &[body, signing.algorithm(), signature]));
    Ok(Val::Certificate(Rc::new(Certificate { cert, key: own.to_pem() })))
}

fn serial(context: &Context<'_>) -> Result<Vec<u8>, Fail> {
    let mut bytes = [0; 16];
    context.random(&mut bytes)?;
    // Zero is not a serial number.
    bytes[15] |= 1;
    Ok(integer(&bytes))
}

fn validity(context: &Context<'_>, days: i64) -> Result<Vec<u8>, Fail> {
    let from = context.now().in_zone(Zone::UTC);
    let span = days.checked_mul(24).and_then(|hours| hours.checked_mul(Duration::HOUR.0));
    let until = from.add(Duration(span.ok_or("that many days are not supported")?));
    Ok(nested(SEQUENCE, &[moment(&from)?, moment(&until)?]))
}

/// Two digits are enough for the years until 2049.
fn moment(time: &Time) -> Result<Vec<u8>, Fail> {
    match time.year() {
        1950..=2049 => Ok(element(UTC_TIME, time.format("060102150405Z").as_bytes())),
        0..=9999 => Ok(element(GENERALIZED_TIME, time.format("20060102150405Z").as_bytes())),
        year => Err(format!("a certificate cannot be valid in the year {year}").into()),
    }
}

fn extensions(request: &Request, issuer: &Issuer, key_id: &[u8]) -> Vec<Vec<u8>> {
    const CRITICAL: [u8; 3] = [0x01, 0x01, 0xff];
    let extension = |name: &[u8], critical: bool, value: Vec<u8>| {
        let critical = if critical { CRITICAL.to_vec() } else { Vec::new() };
        nested(SEQUENCE, &[element(OID, name), critical, element(OCTET_STRING, &value)])
    };
    // Signatures and keys; authorities also sign certificates.
    let usage: &[u8] = if request.is_authority { &[2, 0xa4] } else { &[5, 0xa0] };
    let purposes = [element(OID, SERVER_AUTH), element(OID, CLIENT_AUTH)];
    let is_authority = if request.is_authority { &CRITICAL[..] } else { &[] };
    let mut found = vec![
        extension(KEY_USAGE, true, element(BIT_STRING, usage)),
        extension(EXTENDED_KEY_USAGE, false, nested(SEQUENCE, &purposes)),
        extension(BASIC_CONSTRAINTS, true, element(SEQUENCE, is_authority)),
    ];
    if request.is_authority {
        found.push(extension(SUBJECT_KEY_ID, false, element(OCTET_STRING, key_id)));
    }
    if let Some(id) = &issuer.key_id {
        let value = nested(SEQUENCE, &[element(0x80, id)]);
        found.push(extension(AUTHORITY_KEY_ID, false, value));
    }
    if !request.alternatives.is_empty() {
        found.push(extension(ALTERNATIVE_NAMES, false, nested(SEQUENCE, &request.alternatives)));
    }
    found
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
