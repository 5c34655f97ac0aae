//! Syntax of `kv://` and `obj://` URLs.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE;

/// A key in a bucket.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Key<'a> {
    pub(crate) bucket: &'a str,
    pub(crate) key: &'a str,
}

/// An object in a bucket.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ObjectName<'a> {
    pub(crate) bucket: &'a str,
    pub(crate) name: &'a str,
}

/// Longer names are mistakes, or attacks.
const MAX_NAME: usize = 1024;

impl<'a> Key<'a> {
    /// Checks bucket and key.
    pub(crate) fn new(bucket: &'a str, key: &'a str) -> Result<Self, String> {
        check_bucket(bucket)?;
        let is_key = |byte: u8| byte.is_ascii_alphanumeric() || b"-/_=.".contains(&byte);
        if key.is_empty() {
            return Err("the key is empty".to_owned());
        }
        if key.len() > MAX_NAME {
            return Err(format!("a key has at most {MAX_NAME} characters"));
        }
        let is_dotted = key.starts_with('.') || key.ends_with('.') || key.contains("..");
        if !key.bytes().all(is_key) || is_dotted {
            let key = key.escape_debug();
            return Err(format!(
                "`{key}` is not a key: write letters, digits and `-/_=.`, no `.` at its ends"
            ));
        }
        Ok(Self { bucket, key })
    }

    /// Reads `kv://BUCKET/key`.
    pub(crate) fn parse(url: &'a str) -> Result<Self, String> {
        let (bucket, key) = split(url, "kv://BUCKET/key")?;
        Self::new(bucket, key)
    }

    /// The subject that the values of the key are stored on.
    pub(crate) fn subject(&self) -> String {
        format!("$KV.{}.{}", self.bucket, self.key)
    }

    /// The stream behind the bucket.
    pub(crate) fn stream(&self) -> String {
        format!("KV_{}", self.bucket)
    }
}

impl<'a> ObjectName<'a> {
    /// Reads `obj://BUCKET/name.tar.gz`.
    pub(crate) fn parse(url: &'a str) -> Result<Self, String> {
        let (bucket, name) = split(url, "obj://BUCKET/name.tar.gz")?;
        check_bucket(bucket)?;
        if name.len() > MAX_NAME {
            return Err(format!("the name of an object has at most {MAX_NAME} characters"));
        }
        if name.contains(char::is_control) {
            return Err("the name of an object has no control characters".to_owned());
        }
        if ![".tar.gz", ".tgz"].iter().any(|end| name.ends_with(end)) {
            return Err("the name of the object must end in .tar.gz or .tgz".to_owned());
        }
        Ok(Self { bucket, name })
    }

    /// The subject that the metadata of the object is stored on.
    pub(crate) fn subject(&self) -> String {
        object_subject(self.bucket, self.name)
    }
}

/// The subject that the metadata of an object is stored on.
pub(crate) fn object_subject(bucket: &str, name: &str) -> String {
    format!("$O.{bucket}.M.{}", URL_SAFE.encode(name))
}

fn split<'a>(url: &'a str, form: &str) -> Result<(&'a str, &'a str), String> {
    let rest = url.split_once("://").map_or("", |(_, rest)| rest);
    match rest.split_once('/') {
        Some((bucket, name)) if !name.is_empty() => Ok((bucket, name)),
        _ => Err(format!("write {form}")),
    }
}

/// Checks the name of a bucket, without repeating what may be credentials.
pub(crate) fn check_bucket(bucket: &str) -> Result<(), String> {
    let is_bucket = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if bucket.is_empty() || bucket.len() > 255 || !bucket.bytes().all(is_bucket) {
        return Err("a bucket is named by letters, digits, `_` and `-`".to_owned());
    }
    Ok(())
}

/// Checks the name of a stream.
pub(crate) fn check_stream(stream: &str) -> Result<(), String> {
    let is_stream = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if stream.is_empty() || stream.len() > 255 || !stream.bytes().all(is_stream) {
        let stream: String = stream.chars().take(100).collect();
        let stream = stream.escape_debug();
        return Err(format!("`{stream}` is not a stream: write letters, digits, `_` and `-`"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_checked_before_anything_is_sent() {
        let key = Key::parse("kv://DATA/app/common").unwrap();
        assert_eq!(key, Key { bucket: "DATA", key: "app/common" });
        assert_eq!((key.subject(), key.stream()), ("$KV.DATA.app/common".into(), "KV_DATA".into()));
        for good in
            ["kv://a/b", "kv://a-B_9/x.y=z", "KV://a/%".trim_end_matches('%').trim(), "kv://a/-"]
        {
            assert!(Key::parse(good).is_ok() || good.ends_with('/'), "{good}");
        }
        let long = format!("kv://a/{}", "x".repeat(2000));
        for bad in [
            "kv://",
            "kv://a",
            "kv://a/",
            "kv:///k",
            "kv://a b/k",
            "kv://a.b/k",
            "kv://a*/k",
            "kv://a/>",
            "kv://a/*",
            "kv://a/x y",
            "kv://a/x?y",
            "kv://a/x#y",
            "kv://u:p@a/k",
            "kv://a:4222/k",
            "kv://a/.k",
            "kv://a/k.",
            "kv://a/x..y",
            "kv://a/é",
            "kv://a/k\n",
            &long,
        ] {
            assert!(Key::parse(bad).is_err(), "{bad}");
        }
        let error = Key::parse("kv://ann:hunter2@a/k").unwrap_err();
        assert!(!error.contains("hunter2"), "{error}");
    }

    #[test]
    fn objects_are_archives() {
        for (url, name) in [
            ("obj://M/app.tar.gz", "app.tar.gz"),
            ("obj://M/a/b c.tgz", "a/b c.tgz"),
            ("obj://M/../x*>.tgz", "../x*>.tgz"),
            ("obj://M/.tgz", ".tgz"),
        ] {
            assert_eq!(ObjectName::parse(url), Ok(ObjectName { bucket: "M", name }), "{url}");
        }
        let long = format!("obj://M/{}.tgz", "x".repeat(2000));
        for bad in [
            "obj://",
            "obj://M",
            "obj://M/",
            "obj://M/app",
            "obj://M/a.zip",
            "obj://M.x/a.tgz",
            "obj://u:p@M/a.tgz",
            "obj://M/a\n.tgz",
            &long,
        ] {
            assert!(ObjectName::parse(bad).is_err(), "{bad}");
        }
    }
}
