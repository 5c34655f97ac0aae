//! The provider `choria`, which renders templates itself.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ccm_archive::{Limits, fetch_tree};
use ccm_engine::{Context, Declare as _, Diffs, Error, ProviderDef, Result};
use ccm_host::{Attributes, Content, FileKind, Host, Stat, Tree, TreeEntry};

use super::compare::{Comparison, FileStatus};
use super::predicted;
use super::render::{RenderedFile, render};
use super::stage::Stage;
use super::{FileState, Language, Properties, Provider, Remove, Render, Scaffold, State};
use crate::file::validate;
use crate::text_diff::{MAX_TEXT, hidden, no_text, redacted};
use crate::tree::{self, Kept, check_apart};

const NAME: &str = "choria";
/// What to do about a source in the target, or the reverse.
const APART: &str = "use separate directories for templates and rendered files";

pub(super) const DEF: ProviderDef<Scaffold> = ProviderDef {
    name: NAME,
    rank: |_, _| Some(1),
    open: |host| Box::new(Choria { host: host.clone(), stage: None }),
};

pub(super) struct Choria {
    pub(super) host: Host,
    /// Rendered once: what is compared is what is written and verified.
    pub(super) stage: Option<Stage>,
}

impl Choria {
    fn stage(&self, want: &Properties, cx: &mut Context<'_>) -> Result<Stage> {
        let rules = want.rules();
        let own = want.data.as_ref().filter(|data| !data.0.is_empty());
        let own = own.map(|data| cx.templates.with_data(data.0.clone()));
        let engine = own.as_ref().unwrap_or(cx.templates);
        // What was fetched is needed no longer than it is rendered.
        let outputs = if rules.is_downloaded {
            let tree = fetch_tree(&self.host, &want.source, &Limits::TREE).map_err(|error| {
                Error::Refused { reason: ccm_engine::chain(&error), hint: error.hint() }
            })?;
            render(&self.host, &self.root_of(tree.path())?, rules, engine)?
        } else {
            let source = cx.working_directory.join(&want.source);
            check_apart(&self.host, &source, want.target(), APART)?;
            render(&self.host, &source, rules, engine)?
        };
        Stage::new(&self.host, outputs, &want.post, cx)
    }

    /// The directory of templates in an unpacked tarball: all of it, or the one
    /// directory that everything is in.
    fn root_of(&self, unpacked: &Path) -> Result<PathBuf> {
        let names = self.host.list(unpacked)?;
        let only = match names.as_slice() {
            [name] => unpacked.join(name),
            _ => return Ok(unpacked.to_owned()),
        };
        let is_directory =
            self.host.stat(&only)?.is_some_and(|stat| stat.kind == FileKind::Directory);
        Ok(if is_directory { only } else { unpacked.to_owned() })
    }

    /// What is in the target against what should be, if there is a target.
    fn compare(&self, want: &Properties, stage: &Stage) -> Result<(Comparison, bool)> {
        let is_removal = want.is_removal();
        if self.host.predicted_below(want.target()).is_some() {
            return predicted::compare(&self.host, stage, want, is_removal);
        }
        let tree = self.host.open_tree(want.target())?;
        let mut compared = Comparison::new(&self.host, stage, tree.as_ref(), is_removal)?;
        // What cannot be listed may hold what is to be purged.
        match compared.unknown.take().filter(|_| want.purge && !is_removal) {
            Some(error) => Err(error.into()),
            None => Ok((compared, tree.is_some())),
        }
    }

    fn is_target_missing(&self, want: &Properties) -> Result<bool> {
        let is_predicted = self.host.predicted_below(want.target()).is_some();
        Ok(!is_predicted && self.host.open_tree(want.target())?.is_none())
    }

    fn open_target(&self, path: &Path) -> Result<Tree> {
        if let Some(tree) = self.host.open_tree(path)? {
            return Ok(tree);
        }
        let (uid, gid) = self.host.whoami();
        self.host.create_directory(path, &Attributes { uid, gid, mode: 0o755 })?;
        let tree = self.host.open_tree(path)?;
        tree.ok_or_else(|| Error::refused(format!("{} has disappeared", path.display())))
    }

    /// Files that are replaced stay with who has them.
    fn attributes(&self, target: &Tree, place: &Path, mode: u32) -> Result<Attributes> {
        let (mut uid, mut gid) = self.host.whoami();
        if self.host.is_root()
            && let TreeEntry::File(_, stat) = target.open(place)?
        {
            (uid, gid) = (stat.uid, stat.gid);
        }
        Ok(Attributes { uid, gid, mode })
    }

    /// The diff of one file, or a line that says why there is none.
    fn text_diff(
        &self,
        path: &Path,
        old: Option<Stat>,
        new: &RenderedFile,
        diffs: Diffs,
    ) -> String {
        let shown = path.to_string_lossy();
        let is_hidden = |mode: u32| mode & 0o004 == 0;
        let modes = [old.map_or(new.mode, |stat| stat.mode), new.mode];
        if diffs != Diffs::All && modes.into_iter().any(is_hidden) {
            return hidden(&shown, None);
        }
        let before = match old {
            None => None,
            Some(_) => match self.host.read_text(path, MAX_TEXT) {
                Ok((text, _)) => Some(text),
                Err(_) => return no_text(&shown),
            },
        };
        match std::str::from_utf8(&new.bytes) {
            Ok(after) if after.len() as u64 <= MAX_TEXT => {
                redacted(&self.host.redactor(), &shown, before.as_deref(), after)
            }
            _ => no_text(&shown),
        }
    }
}

impl Provider for Choria {
    fn observe(&mut self, want: &Properties, cx: &mut Context<'_>) -> Result<State> {
        let stage = match self.stage.take() {
            Some(stage) => stage,
            // Nothing is to go, whatever the source says.
            None if want.is_removal() && self.is_target_missing(want)? => Stage::default(),
            None => self.stage(want, cx)?,
        };
        let (compared, target_exists) = self.compare(want, &stage)?;
        let is_kept = |status: FileStatus| !want.is_removal() || status != FileStatus::Added;
        let files = compared.files.into_iter().filter(|(_, status)| is_kept(*status));
        let file = |(place, mut status): (PathBuf, FileStatus)| {
            if status != FileStatus::Added && stage.uncompared.contains(&place) {
                status = FileStatus::Uncompared;
            }
            let rendered = stage.files.get(&place).cloned();
            FileState { place, status, rendered }
        };
        let mut files: Vec<FileState> = files.map(file).collect();
        if want.purge && files.iter().any(|file| file.status == FileStatus::Foreign) {
            let own = format!("{}#{}", Scaffold::NAME, want.common.name);
            let kept = Kept::new(&self.host, want.target(), cx.declared, &own, None)?;
            files.retain(|file| file.status != FileStatus::Foreign || !kept.has(&file.place));
        }
        if cx.skips_post && !want.is_removal() {
            let open = stage.uncompared.iter().map(|place| want.target().join(place));
            cx.at_apply = open.collect();
        }
        if !want.is_removal() {
            let by = format!("{}#{}", Scaffold::NAME, want.common.name);
            let written = stage.files.keys().map(|place| want.target().join(place));
            crate::whole::note(&self.host, &by, written);
        }
        self.stage = Some(stage);
        Ok(State {
            name: want.common.name.clone(),
            provider: NAME,
            engine: want.language().unwrap_or(Language::Jet),
            target_exists,
            files,
            missing_directories: compared.missing_directories,
        })
    }

    fn validate(&mut self, render: &Render) -> Result<()> {
        let Some(command) = &render.validate else { return Ok(()) };
        let is_known = |place: &Path| {
            self.stage.as_ref().is_none_or(|stage| !stage.uncompared.contains(place))
        };
        for (place, file) in render.write.iter().filter(|(place, _)| is_known(place)) {
            let path = render.target.join(place);
            let found = self.host.stat(&path)?.filter(|_| self.host.is_root());
            let (uid, gid) =
                found.map_or_else(|| self.host.whoami(), |found| (found.uid, found.gid));
            let attributes = Attributes { uid, gid, mode: file.mode };
            validate::run(&self.host, command, &path, Content::Bytes(&file.bytes), &attributes)?;
        }
        Ok(())
    }

    fn render(&mut self, render: &Render) -> Result<()> {
        let target = self.open_target(&render.target)?;
        tree::check_kept(&self.host, &target, &render.remove)?;
        for place in &render.directories {
            target.make_directory(place)?;
        }
        for (place, file) in &render.write {
            let attributes = self.attributes(&target, place, file.mode)?;
            target.replace(place, Content::Bytes(&file.bytes), &attributes)?;
        }
        let _kept = self.host.must_keep();
        render.remove.iter().try_for_each(|place| Ok(target.remove_file(place)?))
    }

    fn remove(&mut self, remove: &Remove) -> Result<()> {
        let Some(target) = self.host.open_tree(&remove.target)? else { return Ok(()) };
        let mut directories = BTreeSet::new();
        let mut failure = None;
        for place in &remove.files {
            if let Err(error) = target.remove_file(place) {
                let error: Error = error.into();
                let message = ccm_engine::chain(&error);
                self.host.warn(format!("{message}; ccm removes the other files"));
                failure.get_or_insert(error);
            }
            let parents = place.ancestors().skip(1);
            directories.extend(parents.filter(|path| !path.as_os_str().is_empty()));
        }
        // What is inside comes before what it is in.
        for place in directories.into_iter().rev() {
            if let Err(error) = target.remove_empty(place) {
                self.host.warn(ccm_engine::chain(&error));
            }
        }
        drop(target);
        // The target goes too if nothing else is in it; a link to it stays.
        if let Ok(true) = self.host.is_empty_directory(&remove.target)
            && let Err(error) = self.host.remove(&remove.target)
        {
            let error = self.host.redactor().text(&error.to_string()).into_owned();
            tracing::debug!(error, "cannot remove the empty target directory");
        }
        failure.map_or(Ok(()), Err)
    }

    fn digest(&mut self, path: &Path) -> Option<String> {
        let (file, stat) = self.host.open(path).ok()?;
        Some(self.host.digest(&file, path, stat.size).ok()?.to_string())
    }

    fn is_settled(&self, directory: &Path) -> bool {
        self.host.unsettled(directory).is_none()
    }

    fn predict_render(&mut self, render: &Render) -> Result<()> {
        predicted::render(&self.host, render)
    }

    fn predict_removal(&mut self, remove: &Remove) -> Result<()> {
        predicted::remove(&self.host, remove)
    }

    fn diff(&mut self, render: &Render, diffs: Diffs) -> Option<String> {
        let is_predicted = self.host.predicted_below(&render.target).is_some();
        let target = if is_predicted { None } else { self.host.open_tree(&render.target).ok()? };
        let mut text = String::new();
        let is_open = |place: &Path| {
            self.stage.as_ref().is_some_and(|stage| stage.uncompared.contains(place))
        };
        for (place, file) in render.write.iter().filter(|(place, _)| !is_open(place)) {
            let path = render.target.join(place);
            let old = match target.as_ref().map(|tree| tree.open(place)) {
                Some(Ok(TreeEntry::File(_, stat))) => Some(stat),
                None if is_predicted => self.host.stat(&path).ok().flatten(),
                _ => None,
            };
            text.push_str(&self.text_diff(&path, old, file, diffs));
        }
        Some(text).filter(|text| !text.is_empty())
    }
}
