//! A short run of what fuzzing does at length: archives, mutated. Whatever
//! becomes of them, nothing panics, hangs or leaves the destination.

use ccm_archive::Limits;

use crate::build::{Tar, deflated, gzip, zip, zipped};
use crate::hostile::Stage;

const RUNS: usize = 1500;
const SMALL: Limits = Limits { entries: 50, bytes: 1 << 20, ratio: 10 };

/// Numbers that are the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % sides as u64) as usize
    }
}

#[test]
fn nothing_that_changes_an_archive_makes_it_dangerous() {
    let tar = Tar::default()
        .directory("d")
        .file("d/f", "content")
        .symlink("l", "d")
        .pax(&[("path", "d/long"), ("mtime", "1.5")])
        .file("x", "y")
        .pax(&[("GNU.sparse.size", "20"), ("GNU.sparse.map", "0,2,10,2")])
        .file("s", "abcd")
        .hard_link("h", "d/f")
        .end();
    let zip = zip(&[zipped("d/", ""), deflated("d/f", b"content"), zipped("g", "x")]);
    let seeds = [("a.tar", tar.clone()), ("a.tar.gz", gzip(&tar)), ("a.zip", zip)];
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let mut stage = Stage::new();
    for run in 0..RUNS {
        let (name, seed) = &seeds[run % seeds.len()];
        let mut bytes = seed.clone();
        for _ in 0..=dice.roll(4) {
            let at = dice.roll(bytes.len());
            match dice.roll(5) {
                0 => bytes[at] ^= 1 << dice.roll(8),
                1 => bytes[at] = b"/.\0\xff7PK"[dice.roll(7)],
                2 => bytes.truncate(at.max(1)),
                3 => bytes.insert(at, b'.'),
                _ => {
                    let end = (at + dice.roll(600)).min(bytes.len());
                    let part = bytes[at..end].to_vec();
                    let to = dice.roll(bytes.len());
                    bytes.splice(to..to, part);
                }
            }
        }
        if *name == "a.tar" {
            // Most changes are lost to a wrong checksum otherwise.
            for block in bytes.chunks_exact_mut(512) {
                if let Ok(block) = <&mut [u8; 512]>::try_from(block)
                    && block[257..262] == *b"ustar"
                {
                    crate::build::seal(block);
                }
            }
        }
        let _ = stage.unpack(name, &bytes, &SMALL);
        if run % 100 == 0 {
            stage = Stage::new();
        }
    }
}
