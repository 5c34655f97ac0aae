//! Archive formats, detected by file name.

/// A kind of archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A tar archive, compressed like this.
    Tar(Compression),
    /// A zip archive, which has its directory at the end.
    Zip,
}

/// How a whole archive is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// The tar archive is stored as it is.
    None,
    /// A tar archive in gzip, such as `.tar.gz`.
    Gzip,
    /// A tar archive in bzip2, such as `.tar.bz2`.
    Bzip2,
    /// A tar archive in xz, such as `.tar.xz`.
    Xz,
    /// A tar archive in Zstandard, such as `.tar.zst`.
    Zstd,
}

impl Compression {
    /// Its name, and the bytes that every file of it begins with, if there are
    /// any: Zstandard may begin with frames that are skipped.
    pub(crate) fn beginning(self) -> Option<(&'static str, &'static [u8])> {
        match self {
            Self::Gzip => Some(("gzip", b"\x1f\x8b")),
            Self::Bzip2 => Some(("bzip2", b"BZh")),
            Self::Xz => Some(("xz", b"\xfd7zXZ\0")),
            Self::None | Self::Zstd => None,
        }
    }
}

const EXTENSIONS: [(&str, Format); 13] = [
    (".tar.gz", Format::Tar(Compression::Gzip)),
    (".tgz", Format::Tar(Compression::Gzip)),
    (".tar", Format::Tar(Compression::None)),
    (".zip", Format::Zip),
    (".tar.xz", Format::Tar(Compression::Xz)),
    (".txz", Format::Tar(Compression::Xz)),
    (".tar.zst", Format::Tar(Compression::Zstd)),
    (".tar.zstd", Format::Tar(Compression::Zstd)),
    (".tzst", Format::Tar(Compression::Zstd)),
    (".tar.bz2", Format::Tar(Compression::Bzip2)),
    (".tbz2", Format::Tar(Compression::Bzip2)),
    (".tbz", Format::Tar(Compression::Bzip2)),
    (".tb2", Format::Tar(Compression::Bzip2)),
];

impl Format {
    /// The kind that the end of a name stands for, in either case.
    pub fn of(name: &str) -> Option<Self> {
        let ends = |extension: &str| {
            let start = name.len().checked_sub(extension.len());
            start
                .and_then(|start| name.get(start..))
                .is_some_and(|end| end.eq_ignore_ascii_case(extension))
        };
        EXTENSIONS.iter().find(|(extension, _)| ends(extension)).map(|&(_, format)| format)
    }

    /// All extensions, for messages.
    pub fn known() -> String {
        EXTENSIONS.map(|(extension, _)| extension).join(", ")
    }

    /// The extensions of tar archives, for messages.
    pub(crate) fn known_tarballs() -> String {
        let is_tar = |(extension, format)| matches!(format, Self::Tar(_)).then_some(extension);
        EXTENSIONS.into_iter().filter_map(is_tar).collect::<Vec<_>>().join(", ")
    }

    /// The kind that the path of an address stands for.
    pub fn of_url(url: &str) -> Option<Self> {
        let (_, rest) = url.split_once("://")?;
        let (_, path) = rest.split_once('/')?;
        Self::of(path.split(['?', '#']).next().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_the_kind() {
        let gzip = Some(Format::Tar(Compression::Gzip));
        for (name, wanted) in [
            ("/tmp/a.tar.gz", gzip),
            ("A.TGZ", gzip),
            ("a.tar", Some(Format::Tar(Compression::None))),
            ("a.zip", Some(Format::Zip)),
            ("a.tar.zst", Some(Format::Tar(Compression::Zstd))),
            ("a.tbz2", Some(Format::Tar(Compression::Bzip2))),
            ("a.txz", Some(Format::Tar(Compression::Xz))),
            ("a.gz", None),
            ("zip", None),
            ("é.7z", None),
            ("", None),
        ] {
            assert_eq!(Format::of(name), wanted, "{name}");
        }
        assert_eq!(Format::of_url("http://u:p@h/a.tgz?x=.zip#y"), gzip);
        assert_eq!(Format::of_url("http://host.zip"), None);
        assert_eq!(Format::of_url("http://h/?a.zip"), None);
    }
}
