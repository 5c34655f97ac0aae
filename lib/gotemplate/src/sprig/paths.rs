//! File paths, by their text alone. Paths of the system are those with slashes.

use crate::functions::Type::String;
use crate::functions::{Arguments, Context, Native, Outcome};

pub(super) const FUNCTIONS: &[Native] = &[
    Native::new("base", &[String], base),
    Native::new("clean", &[String], |_, a| Ok(clean(&a.text(0)).into())),
    Native::new("dir", &[String], dir),
    Native::new("ext", &[String], ext),
    Native::new("isAbs", &[String], |_, a| Ok(a.text(0).starts_with('/').into())),
    Native::new("osBase", &[String], base),
    Native::new("osClean", &[String], |_, a| Ok(clean(&a.text(0)).into())),
    Native::new("osDir", &[String], dir),
    Native::new("osExt", &[String], ext),
    Native::new("osIsAbs", &[String], |_, a| Ok(a.text(0).starts_with('/').into())),
];

/// The shortest equal path: no doubled slashes, no `.`, `..` only in front.
pub(super) fn clean(path: &str) -> std::string::String {
    let rooted = path.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => match parts.last() {
                Some(&last) if last != ".." => {
                    parts.pop();
                }
                // Above the root there is only the root.
                _ if rooted => {}
                _ => parts.push(part),
            },
            _ => parts.push(part),
        }
    }
    let joined = parts.join("/");
    match (rooted, joined.is_empty()) {
        (true, _) => format!("/{joined}"),
        (false, true) => ".".to_owned(),
        (false, false) => joined,
    }
}

fn base(_: &mut Context<'_>, arguments: &Arguments<'_>) -> Outcome {
    let path = arguments.text(0);
    let trimmed = path.trim_end_matches('/');
    Ok(match (&*path, trimmed) {
        ("", _) => ".",
        (_, "") => "/",
        (_, trimmed) => trimmed.rsplit('/').next().unwrap_or(trimmed),
    }
    .into())
}

fn dir(_: &mut Context<'_>, arguments: &Arguments<'_>) -> Outcome {
    let path = arguments.text(0);
    Ok(clean(path.rfind('/').map_or("", |at| &path[..=at])).into())
}

fn ext(_: &mut Context<'_>, arguments: &Arguments<'_>) -> Outcome {
    let path = arguments.text(0);
    let name = path.rsplit('/').next().unwrap_or_default();
    Ok(name.rfind('.').map_or("", |at| &name[at..]).into())
}
