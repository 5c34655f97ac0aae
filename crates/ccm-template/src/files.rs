//! Checks the template files that expressions name, before they are rendered.

use jet::Set;

use crate::functions::{names_file, names_jet};
use crate::jets::DELIMITERS;
use crate::placeholder::{Openers, scan};
use crate::{Error, Resolver};

impl Resolver {
    /// Parses the files that `jet()` and `template()` name. One that cannot be
    /// read now may be there when it is rendered.
    pub(crate) fn check_files(&self, expression: &str) -> Result<(), Error> {
        for call in expr::references(expression).unwrap_or_default().calls {
            let Some(Some(name)) = call.arguments.first() else { continue };
            let is_file = match &*call.name {
                "jet" => names_jet(name),
                "template" => names_file(name),
                _ => false,
            };
            let text = is_file.then(|| self.read_file(name).ok()).flatten();
            let Some(text) = text else { continue };
            if !names_jet(name) {
                self.check_placeholders(name, &text)?;
                continue;
            }
            let (left, right) = match &call.arguments[..] {
                [_, Some(left), Some(right), ..] => (left.as_str(), right.as_str()),
                // Delimiters that are computed.
                [_, _, _, ..] => continue,
                _ => DELIMITERS,
            };
            Set::new().with_delimiters(left, right).parse(name, &text)?;
            let is_given_data = call.arguments.len() == 2;
            if !is_given_data {
                // What else is wrong may be right once earlier resources are applied.
                let rendered = self.jet(name, Some((left, right)));
                if let Err(error @ Error::UnknownMember { .. }) = rendered {
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    fn check_placeholders(&self, name: &str, text: &str) -> Result<(), Error> {
        for placeholder in scan(text, Openers::All) {
            let checked = placeholder.map_err(Error::from).and_then(|it| self.check(it.inner));
            checked.map_err(|error| Error::File { message: format!("{name}: {error}") })?;
        }
        Ok(())
    }
}
