//! Every package that ends up in a build has a licence that we can ship.

use crate::{Result, metadata};

const ALLOWED: [&str; 14] = [
    "CDLA-Permissive-2.0",
    "MIT",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-1-Clause",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "Zlib",
    "0BSD",
    "Unlicense",
    "Unicode-3.0",
    "MIT-0",
    // As BSD-3-Clause, in other words.
    "bzip2-1.0.6",
];

pub(crate) fn check() -> Result {
    let metadata = metadata(&[])?;
    let packages = metadata["packages"].as_array().ok_or("no packages")?;
    let refused: Vec<String> = packages
        .iter()
        .filter_map(|package| {
            let licence = package["license"].as_str().unwrap_or("none");
            let name = package["name"].as_str().unwrap_or_default();
            (!is_allowed(licence)).then(|| format!("{name} ({licence})"))
        })
        .collect();
    if refused.is_empty() { Ok(()) } else { Err(refused.join(", ")) }
}

/// One of the alternatives must be allowed, with all of its parts.
fn is_allowed(expression: &str) -> bool {
    let alternatives = expression.replace('/', " OR ").replace(['(', ')'], "");
    alternatives
        .split(" OR ")
        .any(|parts| parts.split(" AND ").all(|part| ALLOWED.contains(&part.trim())))
}

#[cfg(test)]
mod tests {
    use super::is_allowed;

    #[test]
    fn alternatives_and_parts() {
        assert!(is_allowed("MIT OR Apache-2.0"));
        assert!(is_allowed("MIT/Apache-2.0"));
        assert!(is_allowed("GPL-3.0 OR MIT"));
        assert!(is_allowed("(MIT OR Apache-2.0) AND Unicode-3.0"));
        assert!(!is_allowed("GPL-3.0"));
        assert!(!is_allowed("MIT AND GPL-3.0"));
        assert!(!is_allowed("none"));
    }
}
