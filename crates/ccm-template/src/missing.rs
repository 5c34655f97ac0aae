//! Missing members of maps, with suggestions.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use ccm_model::closest;
use govalue::{Map, MissingMember, Value};

use crate::{Error, Resolver};

/// A chain of members, such as `Data.web?.ports["http"]`.
struct Chain<'e> {
    root: &'e str,
    /// Each member's name, and where in the expression it begins and ends.
    members: Vec<(&'e str, usize, usize)>,
}

impl<'e> Chain<'e> {
    /// Reads an expression that is nothing but a chain of members.
    fn parse(expression: &'e str) -> Option<Self> {
        let root = identifier(expression)?;
        let mut members = Vec::new();
        let mut at = root.len();
        while let Some(rest) = expression.get(at..).filter(|rest| !rest.is_empty()) {
            let optional = rest.strip_prefix('?').unwrap_or(rest);
            let dotted = optional.strip_prefix('.');
            let behind = dotted.unwrap_or(optional);
            let (name, length) = match (behind.strip_prefix('['), dotted) {
                (Some(inner), _) => quoted(inner)?,
                (None, Some(behind)) => {
                    let name = identifier(behind)?;
                    (name, name.len())
                }
                (None, None) => return None,
            };
            let skipped = rest.len() - behind.len();
            let bracket = usize::from(behind.starts_with('['));
            let start = at + skipped + bracket;
            at = start + length;
            members.push((name, start, at));
        }
        Some(Self { root, members })
    }
}

fn identifier(text: &str) -> Option<&str> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let end = text.find(|c| !is_part(c)).unwrap_or(text.len());
    let name = &text[..end];
    name.starts_with(|c: char| is_part(c) && !c.is_ascii_digit()).then_some(name)
}

/// A name in quotes behind a bracket, and the bytes up to behind the closing
/// bracket.
fn quoted(inner: &str) -> Option<(&str, usize)> {
    let quote = inner.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    let (name, rest) = inner[1..].split_once(quote)?;
    let is_plain = !name.contains('\\') && rest.starts_with(']');
    is_plain.then_some((name, name.len() + 3))
}

impl Resolver {
    /// The error for an expression that failed: where it asks for a member of
    /// what has no value, what that is and which keys there are.
    pub(crate) fn failed(&self, expression: &str, error: expr::Error) -> Error {
        let part = expression.get(error.span().range()).unwrap_or(expression);
        let Some((member, suggestion)) =
            self.first_missing(part).filter(|(member, _)| member != part)
        else {
            return Error::expression(expression, error);
        };
        let hint = suggestion.is_none().then(|| {
            let rest = part.get(member.len()..).unwrap_or_default();
            let optional = format!("for an optional value, write `{member}?{rest} ?? \"default\"`");
            match self.known_beside(&member) {
                Some((map, keys)) => format!("`{map}` has {}; {optional}", listed(&keys)),
                None => optional,
            }
        });
        let meant = crate::error::did_you_mean(suggestion.as_deref());
        let message = format!("`{member}` has no value{meant}");
        Error::NoMember { part: part.to_owned(), message, hint }
    }

    /// The map that a member was looked for in, and its keys. Variables are too
    /// many, and nobody's business.
    fn known_beside(&self, member: &str) -> Option<(String, Vec<String>)> {
        let chain = Chain::parse(member)?;
        let mut value = match chain.root {
            "Environ" => return None,
            root => self.root(root)?,
        };
        let (_, above) = chain.members.split_last()?;
        for (name, _, _) in above {
            value = value.as_map()?.get(name)?;
        }
        let end = above.last().map_or(chain.root.len(), |&(_, _, end)| end);
        let keys = value.as_map()?.keys().map(|key| key.value().to_string());
        let mut keys: Vec<String> = keys.collect();
        keys.sort();
        (!keys.is_empty()).then(|| (member[..end].to_owned(), keys))
    }

    /// The error for an expression that gave nil where a value is needed.
    pub(crate) fn no_value(&self, expression: &str) -> Error {
        let (member, suggestion) =
            self.first_missing(expression).unwrap_or_else(|| (expression.to_owned(), None));
        Error::NoValue { expression: expression.to_owned(), member, suggestion }
    }

    /// What an expression can begin with.
    fn root(&self, name: &str) -> Option<&Value> {
        match name {
            "Data" => Some(self.data()),
            "Facts" => Some(self.facts().get()),
            "Environ" => Some(self.environ()),
            _ => self.item()?.get(name),
        }
    }

    /// The first member of a chain that is not there, and one that is called
    /// almost the same.
    fn first_missing(&self, expression: &str) -> Option<(String, Option<String>)> {
        let chain = Chain::parse(expression)?;
        let mut value = self.root(chain.root)?;
        for (name, start, end) in chain.members {
            let map = value.as_map()?;
            match map.get(name) {
                Some(found) if !found.is_nil() => value = found,
                found => {
                    let meant = if found.is_none() { closest_key(map, name) } else { None };
                    let meant = meant.map(|meant| {
                        let is_dotted = !expression[..end].ends_with(']');
                        match identifier(meant) {
                            Some(whole) if is_dotted && whole.len() == meant.len() => {
                                format!("{}{meant}", &expression[..start])
                            }
                            _ => {
                                let before = expression[..start].trim_end_matches(['.', '?', '[']);
                                format!("{before}[{meant:?}]")
                            }
                        }
                    });
                    return Some((expression[..end].to_owned(), meant));
                }
            }
        }
        None
    }

    /// Returns a callback for Jet and Go templates that print a missing member.
    /// It warns once of each member of a template, at its first place. Variables
    /// of the environment may be unset, so it does not warn of those.
    ///
    /// ```
    /// use ccm_template::{Resolver, Scope};
    ///
    /// let data = govalue::Map::from_iter([("port", 80)]);
    /// let scope = Scope::new(&ccm_host::Host::new());
    /// let resolver = Resolver::new(Scope { data, ..scope });
    /// assert_eq!(resolver.jet("[[ data.prot ]][[ if data.opt ]]x[[ end ]]", None)?, "");
    /// assert_eq!(
    ///     resolver.host().take_warnings(),
    ///     ["template:1:4: `Data.prot` has no value; did you mean `Data.port`?"],
    /// );
    /// # Ok::<(), ccm_template::Error>(())
    /// ```
    pub fn warn_of_unknown(&self) -> impl Fn(&MissingMember<'_>) + Send + Sync + use<> {
        let resolver = self.clone();
        let [places, names] = [(); 2].map(|()| Mutex::new(HashSet::new()));
        let is_new = |told: &Mutex<HashSet<(String, String)>>, one: &MissingMember<'_>, what| {
            let key = (one.template.to_owned(), what);
            told.lock().unwrap_or_else(PoisonError::into_inner).insert(key)
        };
        move |one| {
            // A place may be rendered many times.
            if !is_new(&places, one, one.span.start.to_string()) {
                return;
            }
            let Some((name, meant)) = resolver.written(one) else { return };
            if !is_new(&names, one, name.clone()) {
                return;
            }
            let hint = crate::error::did_you_mean(meant.as_deref());
            let (line, column) = one.position();
            let message = format!("{}:{line}:{column}: `{name}` has no value{hint}", one.template);
            if resolver.host().is_strict() {
                resolver.unknown().get_or_insert(message);
            } else {
                resolver.host().warn(message);
            }
        }
    }

    /// What a template calls a member that does not exist, and what was meant.
    /// `None` for a variable of the environment.
    fn written(&self, one: &MissingMember<'_>) -> Option<(String, Option<String>)> {
        let is = |value: &Value| matches!(value, Value::Map(own) if Arc::ptr_eq(own, one.map));
        let mut variables = self.item().into_iter().flat_map(|item| &item.variables);
        let root = if is(self.data()) {
            Some("Data")
        } else if is(self.facts().get()) {
            Some("Facts")
        } else {
            variables.rfind(|(_, value)| is(value)).map(|(name, _)| &**name)
        };
        let meant = closest_key(one.map, one.member);
        if let Some(root) = root {
            let meant = meant.map(|meant| format!("{root}.{meant}"));
            return Some((format!("{root}.{}", one.member), meant));
        }
        let expression = one.expression();
        let first = expression.trim_start_matches(['.', '$']);
        if is(self.environ()) || first.starts_with("environ.") || first.starts_with("Environ.") {
            return None;
        }
        // What stands behind the member was not asked for.
        let end = expression.rfind(one.member).map(|at| at + one.member.len());
        let end = end.filter(|end| expression[*end..].starts_with('.') || *end == expression.len());
        let name = &expression[..end.unwrap_or(expression.len())];
        let meant = meant.map(|meant| match name.strip_suffix(one.member) {
            Some(before) => format!("{before}{meant}"),
            None => meant.to_owned(),
        });
        Some((name.to_owned(), meant))
    }

    /// What is wrong with a Jet or Go template that was rendered: with
    /// `CCM_STRICT=1` that it printed a member that does not exist.
    ///
    /// # Errors
    ///
    /// Returns the first of these members.
    pub fn check_rendered(&self) -> Result<(), Error> {
        match self.unknown().take() {
            Some(message) => Err(Error::UnknownMember { message }),
            None => Ok(()),
        }
    }

    /// The key that was meant by one under which `lookup` finds nothing.
    pub(crate) fn meant_key(&self, key: &str) -> Option<String> {
        let (root, mut rest) = key.split_once('.')?;
        let mut value = match root {
            "data" => self.data(),
            "facts" => self.facts().get(),
            _ => return None,
        };
        loop {
            let (name, below) = rest.split_once('.').unwrap_or((rest, ""));
            let map = value.as_map()?;
            match map.get(name) {
                Some(found) if !below.is_empty() => (value, rest) = (found, below),
                Some(_) => return None,
                None => {
                    let before = &key[..key.len() - rest.len()];
                    return closest_key(map, name).map(|meant| format!("{before}{meant}"));
                }
            }
        }
    }
}

/// The first of many keys.
fn listed(keys: &[String]) -> String {
    const SHOWN: usize = 10;
    let shown = keys.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    let more = if keys.len() > SHOWN { ", …" } else { "" };
    format!("the keys {shown}{more}")
}

fn closest_key<'m>(map: &'m Map, name: &str) -> Option<&'m str> {
    closest(name, map.iter().filter_map(|(key, _)| key.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::{Facts, Scope};

    fn resolver() -> Resolver {
        let web = Map::from_iter([("port", Value::from(80)), ("none", Value::Nil)]);
        let data = Map::from_iter([
            ("port", Value::from(8080)),
            ("web", web.into()),
            ("list", Value::from(vec![Value::from(Map::from_iter([("foo", 1)]))])),
            ("log-level", "info".into()),
        ]);
        let facts = Facts::known(Map::from_iter([("hostname", "web1")]));
        Resolver::new(Scope { facts, data, ..Scope::new(&ccm_host::Host::new()) })
    }

    #[test]
    fn the_member_that_is_missing_is_named_and_the_one_that_was_meant() {
        for (expression, wanted) in [
            ("Data.prot", "`Data.prot` has no value; did you mean `Data.port`?"),
            ("Facts.hostnam", "`Facts.hostnam` has no value; did you mean `Facts.hostname`?"),
            ("Data.web.prot", "`Data.web.prot` has no value; did you mean `Data.web.port`?"),
            ("Data.wbe?.port", "`Data.wbe` has no value; did you mean `Data.web`?"),
            ("Data['prot']", "`Data['prot']` has no value; did you mean `Data[\"port\"]`?"),
            ("Data.loglevel", "`Data.loglevel` has no value; did you mean `Data[\"log-level\"]`?"),
            ("Data.web.none", "`Data.web.none` has no value"),
            ("Data.entirely_different", "`Data.entirely_different` has no value"),
            ("Data.é", "`Data.é` has no value"),
            ("nil", "`nil` has no value"),
            ("true ? nil : Data.prot", "`true ? nil : Data.prot` has no value"),
        ] {
            let shown = resolver().no_value(expression).to_string();
            assert_eq!(shown, wanted, "{expression}");
        }
    }

    #[test]
    fn members_of_nothing_are_errors_that_name_the_keys_there_are() {
        for (expression, wanted, hint) in [
            (
                "Facts.os.family",
                "`Facts.os` has no value",
                Some(
                    "`Facts` has the keys hostname; for an optional value, write `Facts.os?.family ?? \"default\"`",
                ),
            ),
            (
                "1 + Data.web.tls['port']",
                "`Data.web.tls` has no value",
                Some(
                    "`Data.web` has the keys none, port; for an optional value, write `Data.web.tls?['port'] ?? \"default\"`",
                ),
            ),
            ("Data.wbe.port == 80", "`Data.wbe` has no value; did you mean `Data.web`?", None),
            ("Environ.NO.x", "string has no member x", None),
        ] {
            let error = resolver().evaluate(expression).unwrap_err();
            let found = (error.brief(), error.hint());
            assert_eq!((found.0.as_str(), found.1.as_deref()), (wanted, hint), "{expression}");
        }
    }

    #[test]
    fn unknown_members_that_templates_print_are_warned_of() {
        let printed = "1:4: `Data.prot` has no value; did you mean `Data.port`?";
        for (template, wanted) in [
            ("[[ data.prot ]]", Some(printed)),
            ("[[ Data.prot ]]", Some(printed)),
            ("[[ data[\"prot\"] ]]", Some(printed)),
            (
                "[[ range i := ints(0, 3) ]]\n[[ data.prot ]][[ end ]]",
                Some("2:4: `Data.prot` has no value; did you mean `Data.port`?"),
            ),
            (
                "[[ facts.hostnam ]]",
                Some("1:4: `Facts.hostnam` has no value; did you mean `Facts.hostname`?"),
            ),
            ("[[ data.entirely_different ]]", Some("1:4: `Data.entirely_different` has no value")),
            (
                "[[ data.web.prot ]]",
                Some("1:4: `data.web.prot` has no value; did you mean `data.web.port`?"),
            ),
            (
                "[[ data.web[\"prot\"] ]]",
                Some("1:4: `data.web[\"prot\"]` has no value; did you mean `port`?"),
            ),
            (
                "[[ range _, x := data.list ]][[ x.fo ]][[ end ]]",
                Some("1:33: `x.fo` has no value; did you mean `x.foo`?"),
            ),
            ("[[ environ.HOEM ]]", None),
            ("[[ if data.prot ]]x[[ end ]]", None),
            ("[[ if isset(data.prot) ]]x[[ end ]]", None),
            ("[[ isset(data.prot) ? data.prot : 1 ]]", None),
            ("[[ data.prot ? data.prot : 1 ]]", None),
            ("[[ data.prot == nil ]]", None),
            ("[[ x := data.prot ]][[ x ? x : 1 ]]", None),
            ("[[ isset(data.web.prot) ? data.web.prot : 1 ]]", None),
            ("[[ data := map(\"a\", 1) ]][[ data.prot ]]", Some("1:29: `data.prot` has no value")),
        ] {
            let resolver = resolver();
            resolver.jet(template, None).unwrap();
            let wanted = wanted.map(|wanted| format!("template:{wanted}"));
            assert_eq!(resolver.host().take_warnings(), Vec::from_iter(wanted), "{template}");
        }
        let printed = "1:4: `Data.prot` has no value; did you mean `Data.port`?";
        for (template, wanted) in [
            ("{{ .data.prot }}", Some(printed)),
            ("{{ $.Data.prot }}{{ .Data.prot }}", Some(printed)),
            ("{{ .data.prot | quote }}", Some(printed)),
            (
                "{{ quote .data.prot .data.port }}",
                Some("1:10: `Data.prot` has no value; did you mean `Data.port`?"),
            ),
            (
                "{{ printf \"%v\" .data.prot }}",
                Some("1:16: `Data.prot` has no value; did you mean `Data.port`?"),
            ),
            ("{{ .data.prot.deeper }}", Some(printed)),
            (
                "{{ $d := .data }}{{ with $d }}\n{{ .prot }}{{ end }}",
                Some("2:4: `Data.prot` has no value; did you mean `Data.port`?"),
            ),
            (
                "{{ range .data.list }}{{ .fo }}{{ end }}",
                Some("1:26: `.fo` has no value; did you mean `.foo`?"),
            ),
            (
                "{{ .data.web.prot.deeper }}",
                Some("1:4: `.data.web.prot` has no value; did you mean `.data.web.port`?"),
            ),
            ("{{ .dta }}", Some("1:4: `.dta` has no value; did you mean `.data`?")),
            ("{{ .environ.HOEM }}{{ .Environ.HOEM }}", None),
            (
                "{{ .Facts.hostnam }}",
                Some("1:4: `Facts.hostnam` has no value; did you mean `Facts.hostname`?"),
            ),
            ("{{ if .data.prot }}x{{ end }}", None),
            ("{{ with .data.prot }}{{ . }}{{ end }}", None),
            ("{{ range .data.prot }}{{ . }}{{ end }}", None),
            ("{{ .data.prot | default 1 }}", None),
            ("{{ default 1 .data.prot }}", None),
            ("{{ .data.prot | quote | default 1 }}", None),
            ("{{ default 1 .data.prot | quote }}", None),
            ("{{ printf \"%v\" (or .data.prot 1) }}", None),
            ("{{ coalesce .data.prot 1 }}", None),
            ("{{ hasKey .data \"prot\" }}", None),
            ("{{ eq .data.prot nil }}", None),
            ("{{ $x := .data.prot }}{{ $x | default 1 }}", None),
            ("{{ .data.web.prot | default 1 }}", None),
            ("{{ range list (dict \"data\" (dict \"a\" 1)) }}{{ .data.prot }}{{ end }}", None),
        ] {
            let resolver = resolver();
            let (go, data) = resolver.go_scope();
            go.render("t", template, &data).unwrap();
            let wanted = wanted.map(|wanted| format!("t:{wanted}"));
            assert_eq!(resolver.host().take_warnings(), Vec::from_iter(wanted), "{template}");
        }
    }

    #[test]
    fn expressions_that_provide_for_nil_are_not_warned_of() {
        let resolver = resolver();
        for text in
            ["{{ Data.prot ?? 1 }}", "{{ Data?.prot == nil }}", "{{ lookup('data.prot', 1) }}"]
        {
            resolver.text(text).unwrap();
        }
        assert_eq!(resolver.host().take_warnings(), [""; 0]);
    }

    #[test]
    fn keys_of_look_ups_are_suggested() {
        for (key, wanted) in [
            ("data.prot", Some("data.port")),
            ("data.web.prot", Some("data.web.port")),
            ("facts.hostnam", Some("facts.hostname")),
            ("data.web.port", None),
            ("data.port.x", None),
            ("data", None),
            ("environ.HOEM", None),
        ] {
            assert_eq!(resolver().meant_key(key).as_deref(), wanted, "{key}");
        }
    }
}
