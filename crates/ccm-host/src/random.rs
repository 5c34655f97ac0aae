//! Unguessable random bytes, read in large chunks.

use std::fs::File;
use std::io::Read as _;

#[derive(Debug, Default)]
pub(crate) struct Random {
    pool: Vec<u8>,
}

impl Random {
    const REFILL: usize = 4096;

    pub(crate) fn bytes<const N: usize>(&mut self) -> [u8; N] {
        if self.pool.len() < N {
            self.pool.resize(N.max(Self::REFILL), 0);
            if let Err(error) = getrandom::fill(&mut self.pool)
                && File::open("/dev/urandom")
                    .and_then(|mut f| f.read_exact(&mut self.pool))
                    .is_err()
            {
                // Every supported kernel has both; a guessable name would be a hole.
                panic!("the system has no random bytes: {error}");
            }
        }
        let mut bytes = [0; N];
        bytes.copy_from_slice(&self.pool.split_off(self.pool.len() - N));
        bytes
    }
}
