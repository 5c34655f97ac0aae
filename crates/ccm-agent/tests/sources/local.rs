//! Files of this machine.

use std::time::Duration;

use ccm_agent::sources::{SourceContent, SourceEvent};

use crate::bed::{Bed, names};

#[test]
fn files_are_read_when_they_are_asked_for() {
    let bed = Bed::new();
    let cache = bed.cache();
    let path = bed.directory.path().join("data.yaml");
    let url = format!("file://{}", path.display());
    for url in [path.to_str().unwrap(), url.as_str()] {
        std::fs::write(&path, "data: {a: 1}").unwrap();
        let watch = bed.data(&cache, url);
        assert_eq!(watch.text().unwrap(), "data: {a: 1}");
        std::fs::write(&path, "data: {a: 2}").unwrap();
        assert_eq!(watch.text().unwrap(), "data: {a: 2}");
        // The last good one stays.
        std::fs::write(&path, "data: [").unwrap();
        assert_eq!(watch.text().unwrap(), "data: {a: 2}");
        assert_eq!(watch.text().unwrap(), "data: {a: 2}");
        std::fs::remove_file(&path).unwrap();
        assert_eq!(watch.text().unwrap(), "data: {a: 2}");
        assert_eq!(watch.failures().len(), 2, "once per reason: {:?}", watch.failures());
        std::fs::write(&path, "data: {a: 3}").unwrap();
        assert_eq!(watch.text().unwrap(), "data: {a: 3}");
        assert_eq!(watch.events().last(), Some(&SourceEvent::Recovered));
    }
    assert!(names(&bed.cache_path()).is_empty(), "files have no copies");
}

#[test]
fn a_manifest_is_left_to_the_run() {
    let bed = Bed::new();
    let cache = bed.cache();
    let path = bed.directory.path().join("manifest.yaml");
    let watch = bed.manifest(&cache, path.to_str().unwrap());
    assert!(watch.source.current().is_none());
    assert!(watch.failures()[0].ends_with("there is no such file"), "{:?}", watch.failures());
    let error = watch.source.fetch_once(Duration::from_secs(1)).unwrap_err().to_string();
    assert!(error.contains("there is no such file"), "{error}");
    std::fs::write(&path, "not: [parsed").unwrap();
    let copy = watch.source.current().unwrap();
    assert!(matches!(&copy.content, SourceContent::Manifest(found) if *found == path));
    assert!(watch.source.fetch_once(Duration::from_secs(1)).is_ok());
    assert!(!watch.source.is_suspended());
}
