//! Objects, as clients store them.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE;
use sha2::Digest as _;

use super::Wire;

/// The name of an object as its subject has it.
pub fn encoded(name: &str) -> String {
    URL_SAFE.encode(name)
}

/// The digest of an object as its metadata has it.
pub fn object_digest(content: &[u8]) -> String {
    format!("SHA-256={}", URL_SAFE.encode(sha2::Sha256::digest(content)))
}

impl Wire {
    /// Stores an object whole, in place of what has the name; the id of its
    /// chunks.
    pub fn put_object(&mut self, bucket: &str, name: &str, content: &[u8]) -> String {
        let mut hasher = sha2::Sha256::new();
        hasher.update(name);
        hasher.update(content);
        hasher.update(self.next_number().to_be_bytes());
        let id = URL_SAFE.encode(hasher.finalize()).replace('=', "");
        let chunks = self.put_chunks(bucket, &id, content, 128 * 1024);
        let digest = object_digest(content);
        let size = content.len();
        let metadata = format!(
            "{{\"name\":\"{name}\",\"bucket\":\"{bucket}\",\"nuid\":\"{id}\",\"size\":{size},\
             \"chunks\":{chunks},\"digest\":\"{digest}\"}}"
        );
        self.put_metadata(bucket, &encoded(name), &metadata);
        id
    }

    /// Removes the chunks of an object, as clients do after they have replaced it.
    pub fn purge_chunks(&mut self, bucket: &str, id: &str) {
        let body = format!("{{\"filter\":\"$O.{bucket}.C.{id}\"}}");
        self.api(&format!("STREAM.PURGE.OBJ_{bucket}"), &body);
    }

    /// Deletes an object as clients do: its metadata says so.
    pub fn delete_object(&mut self, bucket: &str, name: &str, id: &str) {
        let metadata = format!(
            "{{\"name\":\"{name}\",\"bucket\":\"{bucket}\",\"nuid\":\"{id}\",\"deleted\":true}}"
        );
        self.put_metadata(bucket, &encoded(name), &metadata);
        self.purge_chunks(bucket, id);
    }
}
