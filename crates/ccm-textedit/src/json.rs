//! The format `json`. Comments and trailing commas are kept where a file has them.

mod parse;
mod write;

use serde_json::Value;

use crate::change::{Refusal, Result};
use crate::laws::Plan;
use crate::typed;
use parse::{Kind, Node};
use write::{Layout, Writer};

pub(crate) struct Json;

impl typed::Format for Json {
    fn read(&self, text: &[u8]) -> Result<Value> {
        let (_, text) = typed::as_str(text)?;
        if text.trim().is_empty() {
            return Ok(Value::Object(serde_json::Map::new()));
        }
        Ok(parse::parse(text)?.value())
    }

    fn set(&self, text: &[u8], path: &[String], value: &Value) -> Result<Vec<u8>> {
        edit(text, |text, root| {
            let mut node = root;
            for (depth, key) in path.iter().enumerate() {
                let rest = &path[depth + 1..];
                let Kind::Object(_) = &node.kind else { break };
                let writer = Writer::new(text, root);
                match only(node, key)? {
                    None => {
                        let mut plan = Plan::default();
                        let value = typed::nested(rest, value);
                        writer.add_member(&mut plan, node, key, &value);
                        return Ok(plan);
                    }
                    Some(index) => {
                        let Kind::Object(members) = &node.kind else { break };
                        let found = &members[index].value;
                        if rest.is_empty() || !matches!(found.kind, Kind::Object(_)) {
                            let value = typed::nested(rest, value);
                            let mut plan = Plan::default();
                            let layout = Layout::at(text, node, members[index].start);
                            plan.replace(found.span.clone(), writer.written(&value, &layout));
                            return Ok(plan);
                        }
                        node = found;
                    }
                }
            }
            Err(Refusal::unsafe_here("a key on the way is no map"))
        })
    }

    fn add(&self, text: &[u8], path: &[String], members: &[Value]) -> Result<Vec<u8>> {
        members.iter().try_fold(text.to_vec(), |text, member| {
            edit(&text, |text, root| {
                let node = reach(root, path)?;
                let mut plan = Plan::default();
                Writer::new(text, root).add_item(&mut plan, node, member);
                Ok(plan)
            })
        })
    }

    fn remove(&self, text: &[u8], path: &[String]) -> Result<Vec<u8>> {
        let Some((key, above)) = path.split_last() else { return Ok(text.to_vec()) };
        edit(text, |text, root| {
            let node = reach(root, above)?;
            let mut plan = Plan::default();
            if let (Some(index), Kind::Object(members)) = (only(node, key)?, &node.kind) {
                write::remove(&mut plan, text, members, index);
            }
            Ok(plan)
        })
    }
}

/// Makes a plan for a text, which may be empty or have a byte order mark.
fn edit(text: &[u8], plan: impl Fn(&str, &Node) -> Result<Plan>) -> Result<Vec<u8>> {
    let (skipped, body) = typed::as_str(text)?;
    let is_empty = body.trim().is_empty();
    // An empty document ends with its line.
    let empty = if body.is_empty() { "{}\n".to_owned() } else { format!("{{}}{body}") };
    let body = if is_empty { &empty } else { body };
    let made = plan(body, &parse::parse(body)?)?.carry_out(body.as_bytes())?;
    Ok([&text[..skipped], &made.text].concat())
}

fn reach<'n>(root: &'n Node, path: &[String]) -> Result<&'n Node> {
    let mut node = root;
    for key in path {
        let found = only(node, key)?;
        match (&node.kind, found) {
            (Kind::Object(members), Some(index)) => node = &members[index].value,
            _ => return Err(Refusal::unsafe_here("a key on the way is missing")),
        }
    }
    Ok(node)
}

/// The index of the member with a key. With two of them, programs disagree about
/// which one counts.
fn only(node: &Node, key: &str) -> Result<Option<usize>> {
    let Kind::Object(members) = &node.kind else { return Ok(None) };
    let mut found = members.iter().enumerate().filter(|(_, member)| member.key == key);
    let first = found.next().map(|(index, _)| index);
    if found.next().is_some() {
        return Err(Refusal::unsafe_here(format!("the key `{key}` is there twice")));
    }
    Ok(first)
}
