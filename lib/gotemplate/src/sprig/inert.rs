//! Functions that would reach outside: they exist, and find nothing.
//!
//! A template renders the same everywhere; what it may know of the machine is
//! for the caller to hand over as data or functions.

use crate::functions::Type::String;
use crate::functions::{Arguments, Context, Native, Outcome};

/// Stand-ins for groups of functions this build leaves out.
#[cfg(not(feature = "certificates"))]
pub(super) const NO_CERTIFICATES: &[Native] = &{
    use crate::functions::Type::{Certificate as C, Int, List as L};
    [
        Native::new("buildCustomCert", &[String, String], absent),
        Native::new("genCA", &[String, Int], absent),
        Native::new("genCAWithKey", &[String, Int, String], absent),
        Native::new("genPrivateKey", &[String], absent),
        Native::new("genSelfSignedCert", &[String, L, L, Int], absent),
        Native::new("genSelfSignedCertWithKey", &[String, L, L, Int, String], absent),
        Native::new("genSignedCert", &[String, L, L, Int, C], absent),
        Native::new("genSignedCertWithKey", &[String, L, L, Int, C, String], absent),
    ]
};

/// Stand-ins for groups of functions this build leaves out.
#[cfg(not(feature = "crypto"))]
pub(super) const NO_CRYPTO: &[Native] = &{
    use crate::functions::Type::Uint32;
    [
        Native::new("adler32sum", &[String], absent),
        Native::new("bcrypt", &[String], absent),
        Native::new("decryptAES", &[String, String], absent),
        Native::new("derivePassword", &[Uint32, String, String, String, String], absent),
        Native::new("encryptAES", &[String, String], absent),
        Native::new("htpasswd", &[String, String], absent),
        Native::new("sha1sum", &[String], absent),
        Native::new("sha256sum", &[String], absent),
        Native::new("sha512sum", &[String], absent),
    ]
};

#[cfg(not(all(feature = "certificates", feature = "crypto")))]
fn absent(_: &mut Context<'_>, _: &Arguments<'_>) -> Outcome {
    Err("not available in this build".into())
}

pub(super) const FUNCTIONS: &[Native] = &[
    Native::new("env", &[String], |_, _| Ok("".into())),
    Native::new("expandenv", &[String], expand),
    Native::new("getHostByName", &[String], |_, _| Ok("".into())),
];

/// Every variable is unset: `$NAME` and `${NAME}` disappear.
fn expand(_: &mut Context<'_>, arguments: &Arguments<'_>) -> Outcome {
    let text = arguments.text(0);
    let mut out = std::string::String::with_capacity(text.len());
    let mut rest = &*text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        let name = |c: char| c == '_' || c.is_ascii_alphanumeric();
        rest = match after.chars().next() {
            Some('{') => match after.find('}') {
                Some(end) => &after[end + 1..],
                // Bad syntax: the opening is eaten.
                None => &after[1..],
            },
            // Special parameters of the shell are names of one character.
            Some('*' | '#' | '$' | '@' | '!' | '?' | '-' | '0'..='9') => &after[1..],
            Some(c) if name(c) => after.trim_start_matches(name),
            _ => {
                out.push('$');
                after
            }
        };
    }
    out.push_str(rest);
    Ok(out.into())
}
