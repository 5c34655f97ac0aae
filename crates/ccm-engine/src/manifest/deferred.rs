//! Checks deferred templates before the run.

use ccm_model::{Stage, TemplateError, Templates};
use ccm_template::Resolver;
use ccm_template::placeholder::Openers;

use super::Manifest;
use crate::lifecycle::is_managed;

impl Manifest {
    /// Finds errors in deferred properties as far as they can be known now. A
    /// resource that `control` skips resolves nothing.
    pub(super) fn check_deferred(&mut self) {
        let checked = Unresolved(&self.templates);
        let rendered = self.declarations.rendered.as_ref();
        let source = rendered.unwrap_or(&self.warnings.source);
        for resource in &mut self.declarations.resources {
            if !is_managed(&**resource, &self.templates).unwrap_or(false) {
                continue;
            }
            let failures = resource.resolve(Stage::Apply, &checked);
            let name = resource.display();
            let found = failures.iter().map(|failure| {
                let finding = failure.finding(Some(source)).of(&*name);
                match rendered {
                    Some(rendered) => finding.within(rendered),
                    None => finding,
                }
            });
            self.declarations.control_errors.extend(found);
        }
    }
}

/// Templates that are checked and stay as they are.
struct Unresolved<'a>(&'a Resolver);

impl Templates for Unresolved<'_> {
    fn text(&self, text: &str) -> Result<String, TemplateError> {
        self.0.check_later(text, Openers::All).map(|()| text.to_owned())
    }

    fn script(&self, text: &str) -> Result<String, TemplateError> {
        self.0.check_later(text, Openers::Shell).map(|()| text.to_owned())
    }

    fn condition(&self, _expression: &str) -> Result<bool, TemplateError> {
        Ok(false)
    }

    fn value(&self, text: &str) -> Result<govalue::Value, TemplateError> {
        self.0.check_later(text, Openers::All).map(|()| text.into())
    }
}
