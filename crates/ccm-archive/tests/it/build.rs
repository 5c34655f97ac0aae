//! Archives byte by byte, so that they can say what no tool would write.

use std::io::Write as _;

/// A tar archive in the making.
#[derive(Clone, Default)]
pub(crate) struct Tar(pub(crate) Vec<u8>);

/// One header's fields.
#[derive(Clone)]
pub(crate) struct Header {
    pub(crate) name: Vec<u8>,
    pub(crate) kind: u8,
    pub(crate) mode: u32,
    pub(crate) link: Vec<u8>,
    pub(crate) size: u64,
    pub(crate) magic: [u8; 8],
    pub(crate) prefix: Vec<u8>,
}

pub(crate) fn header(name: &str, kind: u8) -> Header {
    Header {
        name: name.into(),
        kind,
        mode: if kind == b'5' { 0o755 } else { 0o644 },
        link: Vec::new(),
        size: 0,
        magic: *b"ustar\x0000",
        prefix: Vec::new(),
    }
}

impl Header {
    pub(crate) fn block(&self) -> [u8; 512] {
        let mut block = [0; 512];
        let mut put = |at: usize, bytes: &[u8]| block[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &self.name);
        put(100, format!("{:07o}\0", self.mode).as_bytes());
        let (uid, gid) = ccm_host::Host::new().whoami();
        put(108, format!("{uid:07o}\0").as_bytes());
        put(116, format!("{gid:07o}\0").as_bytes());
        put(124, format!("{:011o}\0", self.size).as_bytes());
        put(136, b"07777777777\0");
        put(156, &[self.kind]);
        put(157, &self.link);
        put(257, &self.magic);
        put(345, &self.prefix);
        seal(&mut block);
        block
    }
}

/// Writes the checksum of a block.
pub(crate) fn seal(block: &mut [u8; 512]) {
    block[148..156].fill(b' ');
    let sum: u32 = block.iter().map(|&byte| u32::from(byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
}

impl Tar {
    pub(crate) fn raw(mut self, header: &Header, content: &[u8]) -> Self {
        self.0.extend_from_slice(&header.block());
        self.0.extend_from_slice(content);
        self.0.resize(self.0.len().next_multiple_of(512), 0);
        self
    }

    fn sized(self, mut header: Header, content: &[u8]) -> Self {
        header.size = content.len() as u64;
        self.raw(&header, content)
    }

    pub(crate) fn file(self, name: &str, content: &str) -> Self {
        self.sized(header(name, b'0'), content.as_bytes())
    }

    pub(crate) fn directory(self, name: &str) -> Self {
        self.raw(&header(name, b'5'), b"")
    }

    pub(crate) fn symlink(self, name: &str, target: &str) -> Self {
        self.raw(&Header { link: target.into(), ..header(name, b'2') }, b"")
    }

    pub(crate) fn hard_link(self, name: &str, existing: &str) -> Self {
        self.raw(&Header { link: existing.into(), ..header(name, b'1') }, b"")
    }

    pub(crate) fn kind(self, name: &str, kind: u8) -> Self {
        self.raw(&header(name, kind), b"")
    }

    pub(crate) fn mode(self, name: &str, kind: u8, mode: u32) -> Self {
        self.raw(&Header { mode, ..header(name, kind) }, b"")
    }

    /// A header that describes the next one.
    pub(crate) fn described(self, kind: u8, content: &[u8]) -> Self {
        self.sized(header("description", kind), content)
    }

    pub(crate) fn pax(self, records: &[(&str, &str)]) -> Self {
        self.described(b'x', &pax(records))
    }

    pub(crate) fn end(mut self) -> Vec<u8> {
        self.0.resize(self.0.len() + 1024, 0);
        self.0
    }
}

/// Records of an extended header.
pub(crate) fn pax(records: &[(&str, &str)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (key, value) in records {
        let rest = format!(" {key}={value}\n");
        let mut length = rest.len() + 1;
        while length != rest.len() + length.to_string().len() {
            length = rest.len() + length.to_string().len();
        }
        bytes.extend_from_slice(format!("{length}{rest}").as_bytes());
    }
    bytes
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// One file of a zip archive: what its header and the directory say of it.
#[derive(Clone)]
pub(crate) struct Zipped {
    pub(crate) local_name: Vec<u8>,
    pub(crate) name: Vec<u8>,
    pub(crate) content: Vec<u8>,
    pub(crate) method: u16,
    pub(crate) local_method: u16,
    pub(crate) flags: u16,
    pub(crate) mode: u32,
    pub(crate) made_by: u8,
    pub(crate) size: u32,
    pub(crate) local_size: u32,
    pub(crate) crc: u32,
    /// Points at this header instead of its own.
    pub(crate) header: Option<u32>,
}

pub(crate) fn zipped(name: &str, content: &str) -> Zipped {
    let mut crc = flate2::Crc::new();
    crc.update(content.as_bytes());
    Zipped {
        local_name: name.into(),
        name: name.into(),
        content: content.into(),
        method: 0,
        local_method: 0,
        flags: 0,
        mode: if name.ends_with('/') { 0o040_755 } else { 0o100_644 },
        made_by: 3,
        size: content.len() as u32,
        local_size: content.len() as u32,
        crc: crc.sum(),
        header: None,
    }
}

pub(crate) fn deflated(name: &str, content: &[u8]) -> Zipped {
    let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(content).unwrap();
    let mut crc = flate2::Crc::new();
    crc.update(content);
    let size = content.len() as u32;
    Zipped {
        content: encoder.finish().unwrap(),
        method: 8,
        local_method: 8,
        size,
        local_size: size,
        crc: crc.sum(),
        ..zipped(name, "")
    }
}

/// The archive; `edit` may change the bytes of its end.
pub(crate) fn zip_with(files: &[Zipped], edit: impl FnOnce(&mut [u8])) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut directory = Vec::new();
    for file in files {
        let at = bytes.len() as u32;
        let stored = file.content.len() as u32;
        bytes.extend_from_slice(b"PK\x03\x04\x14\0");
        bytes.extend_from_slice(&file.flags.to_le_bytes());
        bytes.extend_from_slice(&file.local_method.to_le_bytes());
        bytes.extend_from_slice(&[0, 0, 0x21, 0x50]);
        for number in [file.crc, stored, file.local_size] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes.extend_from_slice(&(file.local_name.len() as u16).to_le_bytes());
        bytes.extend_from_slice(&[0, 0]);
        bytes.extend_from_slice(&file.local_name);
        bytes.extend_from_slice(&file.content);

        directory.extend_from_slice(b"PK\x01\x02\x1e");
        directory.push(file.made_by);
        directory.extend_from_slice(&[0x14, 0]);
        directory.extend_from_slice(&file.flags.to_le_bytes());
        directory.extend_from_slice(&file.method.to_le_bytes());
        directory.extend_from_slice(&[0, 0, 0x21, 0x50]);
        for number in [file.crc, stored, file.size] {
            directory.extend_from_slice(&number.to_le_bytes());
        }
        directory.extend_from_slice(&(file.name.len() as u16).to_le_bytes());
        directory.extend_from_slice(&[0; 8]);
        directory.extend_from_slice(&(file.mode << 16).to_le_bytes());
        directory.extend_from_slice(&file.header.unwrap_or(at).to_le_bytes());
        directory.extend_from_slice(&file.name);
    }
    let begin = bytes.len() as u32;
    bytes.extend_from_slice(&directory);
    let at = bytes.len();
    bytes.extend_from_slice(b"PK\x05\x06\0\0\0\0");
    for _ in 0..2 {
        bytes.extend_from_slice(&(files.len() as u16).to_le_bytes());
    }
    bytes.extend_from_slice(&(directory.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&begin.to_le_bytes());
    bytes.extend_from_slice(&[0, 0]);
    edit(&mut bytes[at..]);
    bytes
}

pub(crate) fn zip(files: &[Zipped]) -> Vec<u8> {
    zip_with(files, |_| {})
}
