//! Hashes, passwords and ciphers.

mod derive;

use aes::Aes256;
use cbc::cipher::block_padding::NoPadding;
use cbc::cipher::{BlockModeDecrypt, BlockModeEncrypt, KeyIvInit};
use sha2::Digest;

use govalue::base64;

use super::encoding::decode64;
use crate::error::Fail;
use crate::functions::Type::{String, Uint32};
use crate::functions::{Arguments, Context, Native, Outcome};
use crate::val::Val;

pub(super) const FUNCTIONS: &[Native] = &[
    Native::new("adler32sum", &[String], |context, a| {
        summed(context, a, |bytes| adler32(bytes).to_string())
    }),
    Native::new("bcrypt", &[String], |context, a| Ok(bcrypt(context, a.bytes(0))?.into())),
    Native::new("decryptAES", &[String, String], decrypt),
    Native::new("derivePassword", &[Uint32, String, String, String, String], derive::password),
    Native::new("encryptAES", &[String, String], encrypt),
    Native::new("htpasswd", &[String, String], |context, a| {
        let name = a.text(0);
        if name.contains(':') {
            return Ok(format!("invalid username: {name}").into());
        }
        let hash = bcrypt(context, a.bytes(1))?;
        Ok(format!("{name}:{hash}").into())
    }),
    Native::new("sha1sum", &[String], |context, a| {
        summed(context, a, |bytes| hex(&sha1::Sha1::digest(bytes)))
    }),
    Native::new("sha256sum", &[String], |context, a| {
        summed(context, a, |bytes| hex(&sha2::Sha256::digest(bytes)))
    }),
    Native::new("sha512sum", &[String], |context, a| {
        summed(context, a, |bytes| hex(&sha2::Sha512::digest(bytes)))
    }),
];

/// What one slow hash costs: two hundred of them end a rendering.
const SLOW: usize = 100_000;

fn summed(
    context: &mut Context<'_>,
    arguments: &Arguments<'_>,
    sum: impl Fn(&[u8]) -> std::string::String,
) -> Outcome {
    context.budget.spend(arguments.bytes(0).len() / 16)?;
    Ok(sum(arguments.bytes(0)).into())
}

fn hex(bytes: &[u8]) -> std::string::String {
    use std::fmt::Write as _;
    bytes.iter().fold(std::string::String::new(), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

fn adler32(bytes: &[u8]) -> u32 {
    const MODULUS: u32 = 65_521;
    let (low, high) = bytes.iter().fold((1, 0), |(low, high), byte| {
        let low = (low + u32::from(*byte)) % MODULUS;
        (low, (high + low) % MODULUS)
    });
    high << 16 | low
}

fn bcrypt(context: &mut Context<'_>, password: &[u8]) -> Result<std::string::String, Fail> {
    const COST: u32 = 10;
    context.budget.spend(SLOW)?;
    let mut salt = [0; 16];
    context.random(&mut salt)?;
    if password.len() > 72 {
        let reason = "bcrypt: password length exceeds 72 bytes";
        return Ok(format!("failed to encrypt string with bcrypt: {reason}"));
    }
    match ::bcrypt::hash_with_salt(password, COST, salt) {
        Ok(parts) => Ok(parts.format_for_version(::bcrypt::Version::TwoA)),
        Err(error) => Ok(format!("failed to encrypt string with bcrypt: {error}")),
    }
}

/// The password itself is the key, cut or filled with zeros.
fn key(password: &[u8]) -> [u8; 32] {
    let mut key = [0; 32];
    let used = password.len().min(32);
    key[..used].copy_from_slice(&password[..used]);
    key
}

fn encrypt(context: &mut Context<'_>, arguments: &Arguments<'_>) -> Outcome {
    let plain = arguments.bytes(1);
    if plain.is_empty() {
        return Ok("".into());
    }
    context.budget.spend_bytes(plain.len().saturating_mul(2))?;
    let mut iv = [0; 16];
    context.random(&mut iv)?;
    let filler = 16 - plain.len() % 16;
    let mut blocks = plain.to_vec();
    blocks.extend(std::iter::repeat_n(filler as u8, filler));
    let length = blocks.len();
    cbc::Encryptor::<Aes256>::new(&key(arguments.bytes(0)).into(), &iv.into())
        .encrypt_padded::<NoPadding>(&mut blocks, length)
        .map_err(|_| "the text is not a whole number of blocks")?;
    Ok(base64::encode(&[&iv[..], &blocks].concat()).into())
}

fn decrypt(_: &mut Context<'_>, arguments: &Arguments<'_>) -> Outcome {
    let text = arguments.bytes(1);
    if text.is_empty() {
        return Ok("".into());
    }
    let content = decode64(text).map_err(|at| format!("illegal base64 data at input byte {at}"))?;
    let (iv, content) = content.split_first_chunk::<16>().ok_or("the text is too short")?;
    let mut content = content.to_vec();
    cbc::Decryptor::<Aes256>::new(&key(arguments.bytes(0)).into(), &(*iv).into())
        .decrypt_padded::<NoPadding>(&mut content)
        .map_err(|_| "input not full blocks")?;
    let filler = content.last().map(|last| usize::from(*last)).ok_or("the text is too short")?;
    let length = content.len().checked_sub(filler).ok_or("the padding is longer than the text")?;
    content.truncate(length);
    Ok(Val::from(content))
}
