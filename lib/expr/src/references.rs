//! What an expression names, found without running it.

use crate::ast::{Ast, Node, NodeId};
use crate::builtins::Builtin;
use crate::error::Error;
use crate::parser;

/// The names in an expression, in the order written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct References {
    /// The members of the environment that it reads.
    pub members: Vec<MemberPath>,
    /// The functions of the environment that it calls.
    pub calls: Vec<FunctionCall>,
}

/// A member of the environment, and the keys that lead on from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberPath {
    /// The name of the member.
    pub root: String,
    /// The keys below it, as far as they are written out.
    pub keys: Vec<String>,
    /// Whether these are all keys: not so where the next one is computed.
    pub is_complete: bool,
}

/// A call of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionCall {
    /// Its name.
    pub name: String,
    /// The arguments that are string literals; `None` for all others.
    pub arguments: Vec<Option<String>>,
}

/// Finds what an expression names, whether an environment has it or not.
/// Variables of the expression itself are left out.
///
/// ```
/// let found = expr::references("data.web['port'] > 80 && lookup('facts.os') in data[key]")?;
/// let paths: Vec<String> =
///     found.members.iter().map(|path| format!("{} {}", path.root, path.keys.join("."))).collect();
/// assert_eq!(paths, ["data web.port", "data ", "key "]);
/// assert!(!found.members[1].is_complete);
/// assert_eq!(found.calls[0].arguments, [Some("facts.os".to_owned())]);
/// # Ok::<(), expr::Error>(())
/// ```
///
/// # Errors
///
/// Returns what is wrong with the syntax.
pub fn references(source: &str) -> Result<References, Error> {
    let (ast, root) = parser::parse(source)?;
    let mut finding = Finding { ast: &ast, variables: Vec::new(), found: References::default() };
    finding.walk(root);
    Ok(finding.found)
}

/// What is left to do. Long expressions are deep trees, so there is no recursion.
enum Task {
    Visit(NodeId),
    Declare(NodeId),
    Forget,
}

struct Finding<'a> {
    ast: &'a Ast,
    variables: Vec<&'a str>,
    found: References,
}

impl Finding<'_> {
    fn walk(&mut self, root: NodeId) {
        let mut tasks = vec![Task::Visit(root)];
        while let Some(task) = tasks.pop() {
            match task {
                Task::Forget => drop(self.variables.pop()),
                Task::Declare(id) => {
                    if let Node::Let { name, body, .. } = self.ast.node(id) {
                        self.variables.push(name);
                        tasks.push(Task::Forget);
                        tasks.push(Task::Visit(*body));
                    }
                }
                Task::Visit(id) => {
                    let first = tasks.len();
                    self.visit(id, &mut tasks);
                    // The first one is done first.
                    tasks[first..].reverse();
                }
            }
        }
    }

    fn visit(&mut self, id: NodeId, tasks: &mut Vec<Task>) {
        let ast = self.ast;
        match ast.node(id) {
            Node::Let { value, .. } => {
                tasks.push(Task::Visit(*value));
                tasks.push(Task::Declare(id));
            }
            Node::Name(_) | Node::Env | Node::Member { .. } | Node::Chain(_) => {
                self.chain(id, tasks);
            }
            Node::Builtin { function: Builtin::Get, args } if args.len() == 2 => {
                self.chain(id, tasks);
            }
            node => {
                if let Node::Call { name, args } = node {
                    let arguments = args.iter().map(|&argument| text(ast, argument)).collect();
                    self.found.calls.push(FunctionCall { name: name.to_string(), arguments });
                }
                node.children(|child| tasks.push(Task::Visit(child)));
            }
        }
    }

    /// Follows members down to where they begin.
    fn chain(&mut self, id: NodeId, tasks: &mut Vec<Task>) {
        let mut keys: Vec<NodeId> = Vec::new();
        let mut at = id;
        let root = loop {
            match self.ast.node(at) {
                Node::Chain(inner) => at = *inner,
                Node::Member { base, key, .. } => {
                    keys.push(*key);
                    at = *base;
                }
                Node::Builtin { function: Builtin::Get, args } if args.len() == 2 => {
                    keys.push(args[1]);
                    at = args[0];
                }
                Node::Name(name) if self.variables.contains(&&**name) => break None,
                Node::Name(name) => break Some(Some(name.to_string())),
                Node::Env => break Some(None),
                _ => {
                    tasks.push(Task::Visit(at));
                    break None;
                }
            }
        };
        keys.reverse();
        let written = keys.iter().map_while(|&key| key_text(self.ast, key));
        let written: Vec<String> = written.collect();
        let is_complete = written.len() == keys.len();
        // Keys that are computed read something themselves.
        let computed = keys.iter().filter(|&&key| key_text(self.ast, key).is_none());
        tasks.extend(computed.map(|&key| Task::Visit(key)));
        let Some(root) = root else { return };
        let mut written = written.into_iter();
        // A member of `$env` is a member of the environment.
        let root = root.or_else(|| written.next()).unwrap_or_else(|| "$env".to_owned());
        self.found.members.push(MemberPath { root, keys: written.collect(), is_complete });
    }
}

fn text(ast: &Ast, id: NodeId) -> Option<String> {
    match ast.node(id) {
        Node::String(text) => text.as_str().map(str::to_owned),
        _ => None,
    }
}

fn key_text(ast: &Ast, id: NodeId) -> Option<String> {
    match ast.node(id) {
        Node::Int(number) => Some(number.to_string()),
        _ => text(ast, id),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(source: &str) -> Vec<String> {
        let found = references(source).unwrap();
        let shown = |path: MemberPath| {
            let more = if path.is_complete { "" } else { "[…]" };
            std::iter::once(path.root).chain(path.keys).collect::<Vec<_>>().join(".") + more
        };
        found.members.into_iter().map(shown).collect()
    }

    #[test]
    fn members_are_found_wherever_they_stand() {
        for (source, wanted) in [
            ("a.b.c", &["a.b.c"][..]),
            ("a?.b?.['c d']", &["a.b.c d"]),
            ("(a.b).c", &["a.b.c"]),
            ("a.list[0].name", &["a.list.0.name"]),
            ("a[b.c].d", &["a[…]", "b.c"]),
            ("a[1:b]", &["a", "b"]),
            ("get(a.b, 'c')", &["a.b.c"]),
            ("$env.a.b", &["a.b"]),
            ("$env['a']", &["a"]),
            ("$env", &["$env"]),
            ("$env[a]", &["$env[…]", "a"]),
            ("let a = b.c; a.d + e", &["b.c", "e"]),
            ("(let a = 1; a) + a", &["a"]),
            ("filter(a.list, .x == b)", &["a.list", "b"]),
            ("a.b | upper() | f(c)", &["a.b", "c"]),
            ("{a: b, (c): d}", &["b", "c", "d"]),
            ("a.b() + a.c.d()", &["a", "a.c"]),
            ("if a { b } else { c }", &["a", "b", "c"]),
            ("a ?? b ? c : d", &["a", "b", "c", "d"]),
            ("'text' + 5", &[]),
        ] {
            assert_eq!(paths(source), wanted, "{source}");
        }
    }

    #[test]
    fn calls_tell_their_literal_arguments() {
        let calls = references("lookup('a.b', c) + file('x' + 'y') + len([1])").unwrap().calls;
        assert_eq!(calls.len(), 2);
        assert_eq!(calls[0].name, "lookup");
        assert_eq!(calls[0].arguments, [Some("a.b".to_owned()), None]);
        assert_eq!((&*calls[1].name, &calls[1].arguments[..]), ("file", &[None][..]));
    }

    #[test]
    fn long_expressions_are_no_nesting() {
        let source = vec!["a.b"; 2000].join(" + ");
        assert_eq!(paths(&source).len(), 2000);
        let chain = format!("a{}", ".b".repeat(100));
        assert_eq!(references(&chain).unwrap().members[0].keys.len(), 100);
        assert!(references("a +").is_err());
    }
}
