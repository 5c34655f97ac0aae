//! Passwords derived by the Master Password algorithm: the same inputs always
//! give the same password.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::functions::{Arguments, Context, Outcome};

const SEED: &[u8] = b"com.lyndir.masterpassword";

/// Patterns of a kind of password; each letter stands for a set of characters.
fn patterns(kind: &str) -> Option<&'static [&'static str]> {
    Some(match kind {
        "maximum" => &["anoxxxxxxxxxxxxxxxxx", "axxxxxxxxxxxxxxxxxno"],
        "long" => &[
            "CvcvnoCvcvCvcv",
            "CvcvCvcvnoCvcv",
            "CvcvCvcvCvcvno",
            "CvccnoCvcvCvcv",
            "CvccCvcvnoCvcv",
            "CvccCvcvCvcvno",
            "CvcvnoCvccCvcv",
            "CvcvCvccnoCvcv",
            "CvcvCvccCvcvno",
            "CvcvnoCvcvCvcc",
            "CvcvCvcvnoCvcc",
            "CvcvCvcvCvccno",
            "CvccnoCvccCvcv",
            "CvccCvccnoCvcv",
            "CvccCvccCvcvno",
            "CvcvnoCvccCvcc",
            "CvcvCvccnoCvcc",
            "CvcvCvccCvccno",
            "CvccnoCvcvCvcc",
            "CvccCvcvnoCvcc",
            "CvccCvcvCvccno",
        ],
        "medium" => &["CvcnoCvc", "CvcCvcno"],
        "short" => &["Cvcn"],
        "basic" => &["aaanaaan", "aannaaan", "aaannaaa"],
        "pin" => &["nnnn"],
        _ => return None,
    })
}

fn characters(letter: u8) -> &'static [u8] {
    match letter {
        b'V' => b"AEIOU",
        b'C' => b"BCDFGHJKLMNPQRSTVWXYZ",
        b'v' => b"aeiou",
        b'c' => b"bcdfghjklmnpqrstvwxyz",
        b'A' => b"AEIOUBCDFGHJKLMNPQRSTVWXYZ",
        b'a' => b"AEIOUaeiouBCDFGHJKLMNPQRSTVWXYZbcdfghjklmnpqrstvwxyz",
        b'n' => b"0123456789",
        b'o' => b"@&%?,=[]_:-+*$#!'^~;()/.",
        _ => b"AEIOUaeiouBCDFGHJKLMNPQRSTVWXYZbcdfghjklmnpqrstvwxyz0123456789!@#$%^&*()",
    }
}

/// A text with its length in front.
fn measured(text: &[u8]) -> Vec<u8> {
    [&(text.len() as u32).to_be_bytes()[..], text].concat()
}

pub(super) fn password(context: &mut Context<'_>, arguments: &Arguments<'_>) -> Outcome {
    let kind = arguments.text(1);
    let Some(patterns) = patterns(&kind) else {
        return Ok(format!("cannot find password template {kind}").into());
    };
    context.budget.spend(2 * super::SLOW)?;
    let salt = [SEED, &measured(arguments.bytes(3))].concat();
    let parameters = scrypt::Params::new(15, 8, 2).map_err(|error| error.to_string())?;
    let mut key = [0; 64];
    scrypt::scrypt(arguments.bytes(2), &salt, &parameters, &mut key)
        .map_err(|error| format!("failed to derive password: {error}"))?;
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).map_err(|error| error.to_string())?;
    mac.update(SEED);
    mac.update(&measured(arguments.bytes(4)));
    mac.update(&(arguments.int(0) as u32).to_be_bytes());
    let seed = mac.finalize().into_bytes();
    let pattern = patterns[usize::from(seed[0]) % patterns.len()];
    let password: Vec<u8> = pattern
        .bytes()
        .zip(&seed[1..])
        .map(|(letter, byte)| {
            let set = characters(letter);
            set[usize::from(*byte) % set.len()]
        })
        .collect();
    Ok(password.into())
}
