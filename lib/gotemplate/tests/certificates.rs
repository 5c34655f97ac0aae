//! Certificates, checked by implementations that are not ours: `webpki`
//! verifies what Sprig's functions sign, `rcgen` makes what they read.
#![cfg(feature = "certificates")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use gotemplate::Engine;
use govalue::{Map, Time, Value, Zone};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use webpki::{ALL_VERIFICATION_ALGS, EndEntityCert, KeyUsage, anchor_from_trusted_cert};

/// When every certificate in these tests is made.
const NOW: i64 = 1_700_000_000;

/// An engine that gives the same certificates every time.
fn engine() -> Engine {
    let next = AtomicU8::new(1);
    Engine::new().clock(|| Time::from_unix(NOW, 0, Zone::UTC)).random(move |bytes| {
        bytes.fill_with(|| next.fetch_add(37, Ordering::Relaxed));
        Ok(())
    })
}

fn render(text: &str, data: &[(&str, &str)]) -> Result<String, String> {
    let data = data.iter().map(|(name, value)| (*name, Value::from(*value)));
    let data = Value::from(data.collect::<Map>());
    engine().render("t", text, &data).map_err(|error| error.to_string())
}

/// The certificates in a text, in order.
fn certificates(text: &str) -> Vec<CertificateDer<'static>> {
    CertificateDer::pem_slice_iter(text.as_bytes()).collect::<Result<_, _>>().unwrap()
}

/// Verifies as TLS clients and servers do, some seconds after the making.
fn verify(
    certificate: &CertificateDer<'_>,
    authority: &CertificateDer<'_>,
    after: u64,
) -> Result<(), webpki::Error> {
    let anchors = [anchor_from_trusted_cert(authority)?];
    let time = UnixTime::since_unix_epoch(Duration::from_secs(NOW.unsigned_abs() + after));
    let certificate = EndEntityCert::try_from(certificate)?;
    for usage in [KeyUsage::server_auth(), KeyUsage::client_auth()] {
        certificate.verify_for_usage(
            ALL_VERIFICATION_ALGS,
            &anchors,
            &[],
            time,
            usage,
            None,
            None,
        )?;
    }
    Ok(())
}

fn is_for(certificate: &CertificateDer<'_>, name: &str) -> bool {
    let name = ServerName::try_from(name).unwrap();
    EndEntityCert::try_from(certificate).unwrap().verify_is_valid_for_subject_name(&name).is_ok()
}

const DAY: u64 = 24 * 3600;

#[test]
fn chains_verify() {
    for kind in ["ecdsa", "ed25519"] {
        let text = format!(
            "{{{{ $ca := genCAWithKey \"authority\" 30 (genPrivateKey \"{kind}\") }}}}{{{{ $ca.Cert }}}}\
             {{{{ range list (genSignedCert \"a\" (list \"192.0.2.1\" \"2001:db8::1\") \
                              (list \"a.example\" \"*.b.example\") 2 $ca) \
                             (genSignedCertWithKey \"b\" nil (list \"b.example\") 2 $ca \
                              (genPrivateKey \"ed25519\")) }}}}{{{{ .Cert }}}}{{{{ end }}}}\
             {{{{ (genCA \"authority\" 30).Cert }}}}"
        );
        let [ca, a, b, namesake] = &certificates(&render(&text, &[]).unwrap())[..] else {
            panic!("four certificates");
        };
        for certificate in [a, b] {
            assert_eq!(verify(certificate, ca, 10), Ok(()), "{kind}");
            // Signed by another key under the same name, and out of date.
            assert!(verify(certificate, namesake, 10).is_err(), "{kind}");
            assert!(verify(certificate, ca, 3 * DAY).is_err(), "{kind}");
        }
        for name in ["a.example", "www.b.example", "192.0.2.1", "2001:db8::1"] {
            assert!(is_for(a, name), "{kind}: {name}");
        }
        for name in ["b.example", "192.0.2.2", "a"] {
            assert!(!is_for(a, name), "{kind}: {name}");
        }
        // An authority serves nobody itself.
        assert!(verify(ca, ca, 10).is_err(), "{kind}");
    }
}

#[test]
fn self_signed_certificates_verify() {
    let text = "{{ (genSelfSignedCert \"a\" nil (list \"a.example\") 1).Cert }}\
                {{ (genSelfSignedCertWithKey \"a\" nil (list \"a.example\") 1 \
                    (genPrivateKey \"ed25519\")).Cert }}";
    let [ecdsa, ed25519] = &certificates(&render(text, &[]).unwrap())[..] else {
        panic!("two certificates");
    };
    for certificate in [ecdsa, ed25519] {
        assert_eq!(verify(certificate, certificate, 10), Ok(()));
        assert!(is_for(certificate, "a.example"));
    }
    assert!(verify(ecdsa, ed25519, 10).is_err());
}

/// Names, dates, extensions, signatures and keys stay the same to the byte.
#[test]
fn what_is_made_stays_the_same() {
    let made = render(include_str!("certificates/made.tmpl"), &[]).unwrap();
    assert_eq!(made, include_str!("certificates/made.pem"));
}

/// An authority that `rcgen` made: certificate and key in PEM.
fn foreign_authority(key: &rcgen::KeyPair) -> String {
    use rcgen::{BasicConstraints, DnType, DnValue, IsCa};
    let mut parameters = rcgen::CertificateParams::default();
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    parameters.serial_number = Some(vec![0x7f; 24].into());
    let name = &mut parameters.distinguished_name;
    *name = rcgen::DistinguishedName::new();
    name.push(DnType::CountryName, DnValue::PrintableString("DE".try_into().unwrap()));
    name.push(DnType::OrganizationName, "Ärger & Söhne");
    name.push(DnType::CommonName, DnValue::BmpString("Wurzel".try_into().unwrap()));
    parameters.self_signed(key).unwrap().pem()
}

const SIGN: &str = "{{ $ca := buildCustomCert (b64enc .cert) (b64enc .key) }}\
                    {{ (genSignedCert \"a\" nil (list \"a.example\") 1 $ca).Cert }}";

#[test]
fn foreign_authorities_sign() {
    for algorithm in [&rcgen::PKCS_ECDSA_P256_SHA256, &rcgen::PKCS_ED25519] {
        let key = rcgen::KeyPair::generate_for(algorithm).unwrap();
        let cert = foreign_authority(&key);
        let ca = certificates(&cert).remove(0);
        // Comments, further certificates and other line ends are usual in files.
        let bundle = format!("# Root\n{cert}# Copy\n{cert}");
        for cert in [&cert, &bundle, &cert.replace('\n', "\r\n"), &one_line(&cert)] {
            let made = render(SIGN, &[("cert", cert), ("key", &key.serialize_pem())]).unwrap();
            assert_eq!(verify(&certificates(&made)[0], &ca, 10), Ok(()), "{cert}");
        }
    }
}

/// `openssl req` made this authority with the name `DC=net, DC=example, CN=Root`
/// and put it into one file with its key.
#[test]
fn repeated_parts_of_names_are_kept() {
    let file = include_str!("certificates/directory.pem");
    let ca = certificates(file).remove(0);
    let made = render(SIGN, &[("cert", file), ("key", file)]).unwrap();
    assert_eq!(verify(&certificates(&made)[0], &ca, 10), Ok(()));
}

/// The block with all of its base64 in one line.
fn one_line(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let [begin, body @ .., end] = &lines[..] else { panic!("a block") };
    format!("{begin}\n{}\n{end}\n", body.concat())
}

#[test]
fn keys_of_openssl_are_read() {
    let plain = render("{{ genPrivateKey \"ecdsa\" }}", &[]).unwrap();
    let expected = render("{{ (genCAWithKey \"a\" 1 .key).Cert }}", &[("key", &plain)]).unwrap();
    let PrivateKeyDer::Sec1(key) = PrivateKeyDer::from_pem_slice(plain.as_bytes()).unwrap() else {
        panic!("a key in SEC1");
    };
    // `openssl ecparam -genkey` writes the name of the curve in a block of its own.
    let parameters =
        "-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n";
    // `openssl pkcs8 -topk8` leaves the parameters out of the inner structure.
    let pkcs8 = {
        use p256::pkcs8::{EncodePrivateKey as _, LineEnding};
        let key = p256::SecretKey::from_sec1_der(key.secret_sec1_der()).unwrap();
        key.to_pkcs8_pem(LineEnding::LF).unwrap()
    };
    for form in [&format!("{parameters}{plain}"), &*pkcs8, &one_line(&plain)] {
        let made = render("{{ (genCAWithKey \"a\" 1 .key).Cert }}", &[("key", form)]).unwrap();
        assert_eq!(made, expected, "{form}");
        let key = render("{{ (genCAWithKey \"a\" 1 .key).Key }}", &[("key", form)]).unwrap();
        assert_eq!(key, plain, "{form}");
    }
}

#[test]
fn what_cannot_be_used_is_an_error() {
    let p384 = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P384_SHA384).unwrap();
    let good = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).unwrap();
    let cert = foreign_authority(&good);
    let (good, p384) = (good.serialize_pem(), p384.serialize_pem());
    let rsa = good.replace("PRIVATE KEY", "RSA PRIVATE KEY");
    let damaged = one_line(&cert).replacen("MII", "MIJ", 1);
    let cases = [
        (SIGN, &*cert, &*p384, "neither ECDSA on P-256 nor Ed25519"),
        (SIGN, &cert, &rsa, "RSA keys are not supported"),
        (SIGN, &cert, &cert, "unable to decode key"),
        (SIGN, &good, &good, "unable to decode certificate"),
        (SIGN, &damaged, &good, "unable to decode certificate"),
        (SIGN, "", "", "unable to decode certificate"),
        ("{{ genCAWithKey \"a\" 1 .cert }}", &cert, "", "unable to decode the private key"),
        ("{{ genSelfSignedCert \"a\" nil (list \"bücher.example\") 1 }}", "", "", "use Punycode"),
        ("{{ genCA \"a\" 3000000 }}", "", "", "that many days are not supported"),
        ("{{ genCA \"a\" -30000 }}", "", "", "cannot be valid in the year"),
    ];
    for (text, cert, key, expected) in cases {
        let error = render(text, &[("cert", cert), ("key", key)]).unwrap_err();
        assert!(error.contains(expected), "{text}: {error}");
    }
}

/// Certificates and keys come from files that anybody may have written.
#[test]
fn damaged_input_never_panics() {
    let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
    let cert = foreign_authority(&key);
    let (key, cert) = (key.serialize_der(), certificates(&cert).remove(0).to_vec());
    let block = |label: &str, bytes: &[u8]| {
        let body = govalue::base64::encode(bytes);
        format!("-----BEGIN {label}-----\n{body}\n-----END {label}-----\n")
    };
    let mut signed = 0;
    let mut attempt = |cert: &[u8], key: &[u8]| {
        let (cert, key) = (block("CERTIFICATE", cert), block("PRIVATE KEY", key));
        signed += usize::from(render(SIGN, &[("cert", &cert), ("key", &key)]).is_ok());
    };
    let damage = |bytes: &[u8], at: usize, mask: u8| {
        let mut damaged = bytes.to_vec();
        damaged[at] ^= mask;
        damaged
    };
    for mask in [0x01, 0x80, 0xff] {
        for at in 0..cert.len() {
            attempt(&damage(&cert, at, mask), &key);
        }
        for at in 0..key.len() {
            attempt(&cert, &damage(&key, at, mask));
        }
    }
    for length in 0..cert.len() {
        attempt(&cert[..length], &key);
    }
    // Other bytes of a key, and of a signature that nobody checks, still sign.
    assert!(signed > 0, "nothing was read to its end");
}
