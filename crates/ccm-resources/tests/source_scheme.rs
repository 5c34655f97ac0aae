//! A new source scheme is one implementation of `Fetch` and one line that
//! registers it. This test adds `mem://` and fetches through it everything that
//! ccm fetches by URL: a manifest, hierarchical data, an archive and a scaffold.

#![expect(clippy::disallowed_methods, clippy::unwrap_used, reason = "the test sets its stage")]

use std::collections::BTreeMap;
use std::io::Cursor;
use std::path::Path;
use std::sync::Arc;

use ccm_engine::{Detail, Engine, ManifestError, NoObserver, RunOptions, SourceRef};
use ccm_hiera::DataSource;
use ccm_host::{Body, Cancel, Fetch, Host, Request, System};
use ccm_model::Report;
use ccm_resources::TYPES;

/// Objects by the part of their URL behind `mem://`.
#[derive(Debug)]
struct Memory(BTreeMap<&'static str, Vec<u8>>);

// The implementation.
impl Fetch for Memory {
    fn schemes(&self) -> &'static [&'static str] {
        &["mem"]
    }

    fn check(&self, url: &str) -> Result<(), String> {
        let (_, name) = url.split_once("://").unwrap_or_default();
        let reason = "it names no object, write mem://BUCKET/NAME";
        name.contains('/').then_some(()).ok_or_else(|| reason.to_owned())
    }

    fn open(&self, request: &Request<'_>, _host: &Host) -> ccm_host::Result<Body> {
        let (_, name) = request.url().split_once("://").unwrap_or_default();
        let found = self.0.get(name).ok_or_else(|| request.failed("there is no such object"))?;
        Ok(Body::new(Cursor::new(found.clone())).with_length(Some(found.len() as u64)))
    }
}

fn system(objects: BTreeMap<&'static str, Vec<u8>>) -> System {
    // The line.
    System::default().with_fetch(Arc::new(Memory(objects)))
}

/// A tar archive of regular files.
fn tar(files: &[(&str, &str)]) -> Vec<u8> {
    let mut tar = Vec::new();
    for (name, content) in files {
        let mut block = [0; 512];
        block[..name.len()].copy_from_slice(name.as_bytes());
        let (mode, size) = (0o644, content.len());
        let fields = format!("{mode:07o}\0{0:07o}\0{0:07o}\0{size:011o}\0{0:011o}\0        0", 0);
        block[100..100 + fields.len()].copy_from_slice(fields.as_bytes());
        block[257..265].copy_from_slice(b"ustar\x0000");
        let sum: u32 = block.iter().map(|&byte| u32::from(byte)).sum();
        block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        tar.extend_from_slice(&block);
        tar.extend_from_slice(content.as_bytes());
        tar.resize(tar.len().next_multiple_of(512), 0);
    }
    tar.resize(tar.len() + 1024, 0);
    tar
}

fn apply(engine: &Engine, url: &str, options: &RunOptions) -> Report {
    let manifest = engine.load(&SourceRef::new(url), options).ok().unwrap();
    engine.apply(manifest, options, None, &mut NoObserver).report
}

#[test]
fn everything_that_takes_a_url_takes_an_added_scheme() {
    let dir = tempfile::tempdir().unwrap();
    let here = dir.path().display();
    let (uid, gid) = Host::new().whoami();
    let manifest = format!(
        r#"
ccm:
  resources:
    - archive:
        - {here}/app.tar:
            url: mem://files/app.tar
            extract_parent: {here}/app
            creates: {here}/app/run
            owner: "{uid}"
            group: "{gid}"
    - scaffold:
        - {here}/etc:
            source: "{{{{ Data.templates }}}}"
"#
    );
    let objects = BTreeMap::from([
        ("site/data.yaml", b"data: {port: 8080, templates: 'mem://files/etc.tar'}\n".to_vec()),
        ("site/site.tar", tar(&[("manifest.yaml", &manifest)])),
        ("files/app.tar", tar(&[("run", "#!/bin/sh\n")])),
        ("files/etc.tar", tar(&[("app.conf", "port = [[ data.port ]]\n")])),
    ]);
    let engine = Engine::new(system(objects), TYPES);
    let mut options = engine.options(Cancel::default());
    options.detail = Detail::Report;
    let data = DataSource::new("mem://site/data.yaml").load(&options.host).unwrap();
    options.inputs.external = Some(data);
    let report = apply(&engine, "mem://site/site.tar", &options);
    assert_eq!((report.summary.changed, report.summary.failed), (2, 0), "{report:?}");
    let read = |name: &str| std::fs::read_to_string(dir.path().join(name)).unwrap();
    assert_eq!(read("app/run"), "#!/bin/sh\n");
    assert_eq!(read("etc/app.conf"), "port = 8080\n");
    let report = apply(&engine, "mem://site/site.tar", &options);
    assert_eq!((report.summary.stable, report.summary.failed), (2, 0), "{report:?}");
}

#[test]
fn validation_knows_what_can_be_fetched() {
    let findings = |system: System, url: &str| {
        let manifest = format!(
            "ccm: {{resources: [{{scaffold: [{{/d: {{source: '{url}'}}}}]}}, \
             {{archive: [{{/a.tar: {{url: '{url}', owner: root, group: root}}}}]}}]}}\n"
        );
        let engine = Engine::new(system, TYPES);
        let options = engine.options(Cancel::default());
        match engine.load_text(Path::new("/m.yaml"), manifest, &options) {
            Ok(_) => Vec::new(),
            Err(ManifestError::Invalid(diagnosis)) => {
                let all = diagnosis.findings.into_iter();
                all.map(|one| format!("{} ({})", one.message, one.hint.unwrap_or_default()))
                    .collect()
            }
            Err(error) => panic!("{error}"),
        }
    };
    let with = || system(BTreeMap::new());
    let unknown = "cannot download mem://b/a.tar: `mem` is not available in this version (available \
                   schemes: file, http, https)";
    let wanted = [format!("source: {unknown}"), format!("url: {unknown}")];
    assert_eq!(findings(System::default(), "mem://u:secret@b/a.tar"), wanted);
    assert_eq!(findings(with(), "mem://u:secret@b/a.tar"), [""; 0]);
    let reason = "it names no object, write mem://BUCKET/NAME ()";
    assert_eq!(
        findings(with(), "mem://x"),
        [format!("source: {reason}"), format!("url: {reason}")]
    );
}
