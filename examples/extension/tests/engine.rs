//! The type `setting` through everything that the engine offers. Nothing but its
//! own files and its line in `TYPES` makes this work.

#![expect(clippy::disallowed_methods, clippy::unwrap_used, reason = "the test sets its stage")]

use std::fs;
use std::path::{Path, PathBuf};

use ccm_author::schema;
use ccm_engine::{
    AnyType, Arguments, Detail, Engine, EnsureError, Finished, Manifest, ManifestError,
    MemorySession, NoObserver, RunOptions, SourceRef, find_type,
};
use ccm_extension_example::TYPES;
use ccm_host::{Cancel, Host, System};
use ccm_model::{Change, Event, Request, Verb};
use serde_json::Value;

struct Stage {
    directory: tempfile::TempDir,
    engine: Engine,
    options: RunOptions,
}

impl Stage {
    fn new() -> Self {
        let engine = Engine::new(System::default(), TYPES);
        let mut options = engine.options(Cancel::default());
        options.detail = Detail::Report;
        Self { directory: tempfile::tempdir().unwrap(), engine, options }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// A file of ccm's own type, and settings in it for both providers.
    fn manifest(&self) -> SourceRef {
        let (uid, gid) = Host::new().whoami();
        let (plain, script) = (self.path("app.env"), self.path("app.sh"));
        let (plain, script) = (plain.display(), script.display());
        let text = format!(
            r#"
data: {{port: 8080}}
ccm:
  resources:
    - file:
        - {plain}: {{owner: "{uid}", group: "{gid}", mode: "0640"}}
    - setting:
        - PORT: {{file: {plain}, value: "{{{{ Data.port }}}}", require: ["file#{plain}"]}}
        - EDITOR: {{file: {script}, value: vi}}
"#
        );
        let path = self.path("manifest.yaml");
        fs::write(&path, text).unwrap();
        SourceRef::new(path)
    }

    fn load(&self, source: &SourceRef) -> Manifest {
        self.engine.load(source, &self.options).unwrap_or_else(|error| panic!("{error}"))
    }

    fn apply(&self, source: &SourceRef) -> Finished {
        let manifest = self.load(source);
        self.engine.apply(manifest, &self.options, None, &mut NoObserver)
    }

    /// What `ccm ensure setting` would ask for.
    fn request(&self, ensure: &str, value: &str) -> Request<'static> {
        let mut arguments = Arguments::default();
        arguments.set("name", "PORT");
        arguments.set("ensure", ensure);
        arguments.set("file", self.path("app.env").display().to_string());
        if !value.is_empty() {
            arguments.set("value", value);
        }
        arguments.into_request("setting")
    }

    fn ensure(&self, ensure: &str, value: &str) -> Result<Event, EnsureError> {
        let mut session = MemorySession::default();
        let request = self.request(ensure, value);
        let done = self.engine.ensure(request, &self.options, &mut session, &mut NoObserver);
        done.map(|(event, finished)| {
            assert!(finished.losses.is_empty());
            event
        })
    }
}

fn setting() -> &'static dyn AnyType {
    find_type(TYPES, "setting").unwrap()
}

#[test]
fn a_manifest_is_loaded_validated_previewed_and_applied() {
    let mut stage = Stage::new();
    let source = stage.manifest();
    let validation = ccm_author::validate(&stage.engine, &source, &stage.options);
    assert!(validation.is_valid(), "{validation:?}");
    assert_eq!(validation.resources, 3);

    stage.options.mode.noop = true;
    let preview = stage.apply(&source);
    let notes: Vec<_> = preview.report.events.iter().map(|event| &event.noop_message).collect();
    assert_eq!(notes[1].as_deref(), Some("Would have set"), "{notes:?}");
    assert!(!stage.path("app.env").exists() && !stage.path("app.sh").exists());

    stage.options.mode.noop = false;
    let done = stage.apply(&source);
    assert!(done.is_without_errors(), "{done:?}");
    assert_eq!(done.report.summary.changed, 3);
    let made = &done.report.events[1];
    assert_eq!((&*made.provider, &*made.verbs), ("plain", &[Verb::Created][..]));
    assert_eq!(made.changes, [Change::of("value").to("8080")]);
    assert_eq!(made.status["value"], "8080");
    assert_eq!(done.report.events[2].provider, "shell", "the lowest rank is chosen");
    assert_eq!(stage.read("app.env"), "PORT=8080\n");
    assert_eq!(stage.read("app.sh"), "export EDITOR='vi'\n");

    let again = stage.apply(&source);
    assert_eq!((again.report.summary.stable, again.report.summary.changed), (3, 0));
}

#[test]
fn single_resources_are_ensured_and_shown() {
    let stage = Stage::new();
    fs::write(stage.path("app.env"), "HOST=a\nPORT=1\n").unwrap();
    let updated = stage.ensure("present", "2").unwrap();
    assert_eq!(updated.changes, [Change::of("value").from("1").to("2")]);
    assert_eq!(stage.read("app.env"), "HOST=a\nPORT=2\n");
    let again = stage.ensure("present", "2").unwrap();
    assert!(!again.changed && !again.failed && again.changes.is_empty(), "{again:?}");
    let status = stage.engine.status(stage.request("present", ""), &stage.options);
    assert!(status.is_err(), "a present setting needs a value");
    let status = stage.engine.status(stage.request("present", "2"), &stage.options).unwrap();
    assert_eq!((&status["type"], &status["value"]), (&Value::from("setting"), &"2".into()));
    let removed = stage.ensure("absent", "").unwrap();
    assert_eq!(removed.verbs, [Verb::Removed]);
    assert_eq!(stage.read("app.env"), "HOST=a\n");
}

#[test]
fn a_provider_can_be_chosen_by_name() {
    let stage = Stage::new();
    let run = |provider: &str| {
        let file = stage.path("choice.sh");
        let text = format!(
            "ccm: {{resources: [{{setting: [{{A: {{file: {}, value: x, provider: {provider}}}}}]}}]}}\n",
            file.display()
        );
        let path = stage.path("choice.yaml");
        fs::write(&path, text).unwrap();
        stage.apply(&SourceRef::new(path)).report.events.remove(0)
    };
    assert_eq!(run("plain").provider, "plain");
    assert_eq!(stage.read("choice.sh"), "A=x\n");
    let unknown = run("dconf");
    assert!(unknown.failed && unknown.error[0].contains("has no provider `dconf`"), "{unknown:?}");
}

#[test]
fn errors_point_at_the_property() {
    let stage = Stage::new();
    let text = "ccm: {resources: [{setting: [{P-T: {file: etc, vlue: x}}]}]}\n".to_owned();
    let error = stage.engine.load_text(Path::new("/m.yaml"), text, &stage.options).err();
    let Some(ManifestError::Invalid(diagnosis)) = error else { panic!("accepted") };
    let found: Vec<String> = diagnosis.findings.into_iter().map(|one| one.message).collect();
    let has = |part: &str| found.iter().any(|message| message.contains(part));
    assert!(has("unknown property `vlue`"), "{found:?}");
}

#[test]
fn the_schemas_describe_it() {
    let manifest = schema::manifest(TYPES);
    let validator = jsonschema::validator_for(&manifest).unwrap();
    let resource =
        |value: Value| serde_json::json!({"ccm": {"resources": [{"setting": [{"PORT": value}]}]}});
    let right = resource(serde_json::json!({"file": "/etc/app", "value": "1"}));
    let wrong = resource(serde_json::json!({"file": "/etc/app", "valu": "1"}));
    assert!(validator.is_valid(&right));
    assert!(!validator.is_valid(&wrong));
    let request = jsonschema::validator_for(&schema::request(TYPES)).unwrap();
    let asked = serde_json::json!({
        "protocol": Request::PROTOCOL,
        "type": "setting",
        "properties": {"name": "PORT", "file": "/etc/app", "value": "1"},
    });
    assert!(request.is_valid(&asked));
}

#[test]
fn flags_and_help_are_rendered_from_its_fields() {
    let kind = setting();
    assert_eq!(kind.providers(), ["plain", "shell"]);
    let flags: Vec<&str> = kind.fields().iter().map(|field| field.flag.long).collect();
    assert!(flags.contains(&"file") && flags.contains(&"value"), "{flags:?}");
    assert_eq!(kind.command_line().unwrap().status, ["file"]);
}
