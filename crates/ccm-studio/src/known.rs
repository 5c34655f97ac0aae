//! The last text. A page asks about one text many times: for its check, for the
//! form of one resource after the other, for an edit. So the server keeps it,
//! with what reading it gave, and a page can name it by its digest.

use std::sync::{Arc, Mutex, OnceLock};

use ccm_engine::{Inputs, Manifest};
use ccm_host::Digest;
use ccm_yaml::edit::Document;
use ccm_yaml::{Source, SyntaxError};

use crate::app::{STACK, lock};
use crate::error::{ApiError, ApiResult};
use crate::facts::FactsChoice;

/// A text that was read at most once.
pub(crate) struct KnownText {
    pub(crate) text: String,
    pub(crate) digest: String,
    document: OnceLock<Result<Document, SyntaxError>>,
    manifest: Mutex<Option<KnownManifest>>,
}

/// The manifest that a check has made of a text. Only one that depends on
/// nothing else is kept: no file was read for it.
pub(crate) struct KnownManifest {
    pub(crate) manifest: Manifest,
    pub(crate) path: String,
    pub(crate) facts: Option<FactsChoice>,
    pub(crate) inputs: Arc<Inputs>,
}

impl KnownText {
    fn new(text: String, document: OnceLock<Result<Document, SyntaxError>>) -> Arc<Self> {
        let digest = Digest::of(text.as_bytes()).to_string();
        Arc::new(Self { text, digest, document, manifest: Mutex::default() })
    }

    pub(crate) fn keep_manifest(&self, manifest: KnownManifest) {
        *lock(&self.manifest) = Some(manifest);
    }

    /// Uses the manifest that the last check has made, if it would be the same
    /// now.
    pub(crate) fn with_manifest<T>(
        &self,
        path: &str,
        facts: Option<&FactsChoice>,
        inputs: &Arc<Inputs>,
        used: impl FnOnce(&Manifest) -> T,
    ) -> Option<T> {
        let kept = lock(&self.manifest);
        let is_same = |kept: &&KnownManifest| {
            kept.path == path && kept.facts.as_ref() == facts && Arc::ptr_eq(&kept.inputs, inputs)
        };
        kept.as_ref().filter(is_same).map(|kept| used(&kept.manifest))
    }

    /// The text as a document that can be edited.
    pub(crate) fn document(&self) -> Result<&Document, &SyntaxError> {
        let read = || Document::parse(Source::new("the text", self.text.as_str()));
        self.document.get_or_init(read).as_ref()
    }

    /// Reads it in a thread, for the request that mostly follows.
    pub(crate) fn read_ahead(self: Arc<Self>) {
        let read = move || {
            let _ = self.document().map(|document| document.locate(&[]));
        };
        // Without a thread, the next request reads it.
        let _ = std::thread::Builder::new().name("read".into()).stack_size(STACK).spawn(read);
    }
}

/// The one text that is kept.
#[derive(Default)]
pub(crate) struct LastText {
    last: Mutex<Option<Arc<KnownText>>>,
}

impl LastText {
    /// The text of a request: as it was sent, or the last one by its digest.
    pub(crate) fn find(
        &self,
        text: Option<&str>,
        digest: Option<&str>,
    ) -> ApiResult<Arc<KnownText>> {
        let last = lock(&self.last).clone();
        match (text, digest) {
            (Some(text), _) => {
                let same = last.filter(|last| last.text == text);
                Ok(same.unwrap_or_else(|| self.keep(text.to_owned(), OnceLock::new())))
            }
            (None, Some(digest)) => last.filter(|last| last.digest == digest).ok_or_else(|| {
                ApiError::conflict("text_unknown", "the server has another text by now")
                    .hint("send the text itself")
            }),
            (None, None) => Err(ApiError::malformed("the request has no `text`")),
        }
    }

    /// Keeps the document that an edit has made.
    pub(crate) fn keep_document(&self, document: Document) -> Arc<KnownText> {
        let text = document.text().to_owned();
        self.keep(text, OnceLock::from(Ok(document)))
    }

    fn keep(
        &self,
        text: String,
        document: OnceLock<Result<Document, SyntaxError>>,
    ) -> Arc<KnownText> {
        let known = KnownText::new(text, document);
        *lock(&self.last) = Some(Arc::clone(&known));
        known
    }
}
