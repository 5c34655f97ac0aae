//! Finds what templates read, without resolving them.

use std::collections::BTreeSet;

use crate::functions::{names_file, names_jet};
use crate::placeholder::{Openers, scan};
use crate::table::{self, Language};

/// Where something that a template reads comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadKind {
    /// `Data`.
    Data,
    /// `Facts`.
    Fact,
    /// `Environ`.
    Environment,
    /// A variable of a loop, whose name is the first key; or another variable.
    Variable,
    /// A file that a function reads.
    File,
}

/// One thing that an expression reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    /// Where it comes from.
    pub kind: ReadKind,
    /// The keys that lead to it, as far as they are written out; for a file its
    /// name.
    pub path: Vec<String>,
    /// Whether these are all keys: not so where the next one is computed.
    pub is_complete: bool,
}

/// An expression of a template, and what it reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpressionReads {
    /// The expression.
    pub expression: String,
    /// What it reads, without duplicates.
    pub reads: Vec<Read>,
}

/// The expressions in the placeholders of a text, and what they read. Templates
/// within files are not looked into: only the files are named.
///
/// ```
/// use ccm_template::{ReadKind, placeholder::Openers, reads_of_text};
///
/// let found = reads_of_text("port {{ Data.web.port }} of ${ lookup('facts.os') }", Openers::All);
/// assert_eq!(found[0].reads[0].path, ["web", "port"]);
/// assert_eq!(found[1].reads[0].kind, ReadKind::Fact);
/// ```
pub fn reads_of_text(text: &str, openers: Openers) -> Vec<ExpressionReads> {
    let placeholders = scan(text, openers).filter_map(Result::ok);
    placeholders.map(|placeholder| reads_of_expression(placeholder.inner)).collect()
}

/// The variables that the expressions of a text begin with: `Data`, or those of
/// loops.
pub fn roots_of_text(text: &str) -> BTreeSet<String> {
    let placeholders = scan(text, Openers::All).filter_map(Result::ok);
    let found = placeholders.map(|placeholder| expr::references(placeholder.inner));
    found.filter_map(Result::ok).flat_map(roots).collect()
}

fn roots(found: expr::References) -> impl Iterator<Item = String> {
    let nested = found.calls.into_iter().flat_map(|call| call.arguments).flatten();
    // A text in an expression may be a template itself.
    let nested = nested.flat_map(|text| roots_of_text(&text)).collect::<Vec<_>>();
    found.members.into_iter().map(|member| member.root).chain(nested)
}

/// Returns what one expression reads; empty if the expression does not parse.
pub fn reads_of_expression(expression: &str) -> ExpressionReads {
    let mut reads: Vec<Read> = Vec::new();
    let mut add = |read: Read| {
        if !reads.contains(&read) {
            reads.push(read);
        }
    };
    let found = expr::references(expression).unwrap_or_default();
    for member in found.members {
        let kind = match &*member.root {
            "Data" => ReadKind::Data,
            "Facts" => ReadKind::Fact,
            "Environ" => ReadKind::Environment,
            _ => ReadKind::Variable,
        };
        let mut path = member.keys;
        if kind == ReadKind::Variable {
            path.insert(0, member.root);
        }
        add(Read { kind, path, is_complete: member.is_complete });
    }
    for call in found.calls {
        let Some(Some(argument)) = call.arguments.first() else { continue };
        match &*call.name {
            "lookup" => {
                if let Some(read) = looked_up(argument) {
                    add(read);
                }
            }
            "readFile" | "file" => add(file(argument)),
            "template" if names_file(argument) => add(file(argument)),
            "jet" if names_jet(argument) => add(file(argument)),
            // The text may be a template itself.
            "template" => reads_of_text(argument, Openers::All)
                .into_iter()
                .flat_map(|inner| inner.reads)
                .for_each(&mut add),
            _ => {}
        }
    }
    ExpressionReads { expression: expression.to_owned(), reads }
}

/// Whether an expression calls a function that reads files or asks a server, or
/// may: what it gets may be another value later.
pub(crate) fn asks_elsewhere(expression: &str) -> bool {
    let found = expr::references(expression).unwrap_or_default();
    found.calls.iter().any(|call| {
        table::of(Language::Expr)
            .any(|(name, function)| function.asks_elsewhere && *call.name == *name)
    })
}

fn file(name: &str) -> Read {
    Read { kind: ReadKind::File, path: vec![name.to_owned()], is_complete: true }
}

/// What a GJSON path leads to, up to where it becomes a query.
fn looked_up(key: &str) -> Option<Read> {
    let mut parts = key.split('.');
    let kind = match parts.next()? {
        "data" => ReadKind::Data,
        "facts" => ReadKind::Fact,
        "environ" | "env" => ReadKind::Environment,
        _ => return None,
    };
    let is_query = |part: &str| part.contains(['#', '*', '?', '|', '@', '!', '{', '[', '(', '\\']);
    let parts: Vec<&str> = parts.collect();
    let plain: Vec<String> =
        parts.iter().take_while(|part| !is_query(part)).map(|&part| part.to_owned()).collect();
    let is_complete = plain.len() == parts.len();
    Some(Read { kind, path: plain, is_complete })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(expression: &str) -> Vec<String> {
        let shown = |read: Read| {
            let more = if read.is_complete { "" } else { "…" };
            format!("{:?} {}{more}", read.kind, read.path.join("."))
        };
        reads_of_expression(expression).reads.into_iter().map(shown).collect()
    }

    #[test]
    fn members_and_look_ups_and_files() {
        for (expression, wanted) in [
            ("Data.a.b + Data.a.b", &["Data a.b"][..]),
            ("Facts.host.info['os'] == Environ.HOME", &["Fact host.info.os", "Environment HOME"]),
            ("lookup('data.a.b', Data.c)", &["Data c", "Data a.b"]),
            ("lookup('facts.net.#.name')", &["Fact net…"]),
            ("lookup('a' + 'b')", &[]),
            ("lookup('other.x')", &[]),
            ("Data[Facts.role]", &["Data …", "Fact role"]),
            (
                "template('motd.templ') + jet('a.jet') + file('x')",
                &["File motd.templ", "File a.jet", "File x"],
            ),
            ("jet('[[ data.x ]]')", &[]),
            ("template('{{ Data.x }}')", &["Data x"]),
            ("WorkingDir + unknown", &["Variable WorkingDir", "Variable unknown"]),
            ("not an + expression (", &[]),
        ] {
            assert_eq!(shown(expression), wanted, "{expression}");
        }
    }

    #[test]
    fn texts_have_an_entry_for_each_placeholder() {
        let found = reads_of_text("${HOME} {{ Data.a }} ${ Data.b }", Openers::Shell);
        let expressions: Vec<_> = found.iter().map(|found| &*found.expression).collect();
        assert_eq!(expressions, ["Data.a", "Data.b"]);
        assert!(reads_of_text("{{ open", Openers::All).is_empty());
    }
}
