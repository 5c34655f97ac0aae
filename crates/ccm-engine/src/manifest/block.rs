//! Blocks of resources: `for_each`, `as`, `tags` and `control` beside a type.

use std::collections::BTreeSet;
use std::sync::Arc;

use ccm_model::{Control, Finding, Node, Span, Templates};
use ccm_template::placeholder::{Openers, scan};
use ccm_template::{LoopItem, Resolver, is_free_name, roots_of_text};
use ccm_yaml::{Entry, Key, Kind, Source};
use govalue::Value;

use crate::resource::PropertyError;

/// Resources that a manifest may have once its loops are written out.
pub(super) const MAX_RESOURCES: usize = 100_000;
/// Items that all loops together may go through: those around others too.
pub(super) const MAX_ITEMS: usize = 200_000;
/// Loops within loops, the outermost included.
pub(super) const MAX_LOOPS: usize = 4;

/// What a block adds to each of its resources.
#[derive(Clone, Debug, Default)]
pub struct Block {
    /// The item that the resources were made for, in a loop.
    pub(crate) item: Option<Arc<LoopItem>>,
    /// Conditions that must all hold, beside that of the resource itself.
    pub(crate) control: Vec<Control>,
    /// Tags, those of the blocks around it included.
    pub(crate) tags: Vec<String>,
    /// What the expressions of the loops read, the outermost loop first.
    loops: Vec<Arc<BTreeSet<String>>>,
}

impl Block {
    /// How many loops its resources stand in.
    pub(super) fn depth(&self) -> usize {
        self.loops.len()
    }

    /// Whether its resources are the first that the innermost loop makes.
    pub(super) fn is_first(&self) -> bool {
        self.item.as_ref().is_some_and(|item| item.index == 0)
    }

    /// Goes into a loop whose expression reads these names.
    pub(super) fn enter_loop(&mut self, item: Arc<LoopItem>, reads: Arc<BTreeSet<String>>) {
        self.item = Some(item);
        self.loops.push(reads);
    }

    /// Puts what it adds into the properties of a resource as they are written, so
    /// that they mean the same without it.
    pub(super) fn write_into(&self, properties: &mut serde_json::Value) {
        if let Some(properties) = properties.as_object_mut().filter(|_| !self.control.is_empty()) {
            let own = properties.get("control").cloned().unwrap_or_default();
            let mut control = serde_json::Map::new();
            for (word, operator) in [("if", " and "), ("unless", " or ")] {
                let of_block = self.control.iter().filter_map(|control| match word {
                    "if" => control.r#if.as_ref(),
                    _ => control.unless.as_ref(),
                });
                let of_block = of_block.map(|expression| &*expression.value);
                let all: Vec<&str> =
                    of_block.chain(own.get(word).and_then(|own| own.as_str())).collect();
                match &all[..] {
                    [] => {}
                    [one] => drop(control.insert(word.into(), (*one).into())),
                    all => {
                        let all: Vec<String> = all.iter().map(|one| format!("({one})")).collect();
                        control.insert(word.into(), all.join(operator).into());
                    }
                }
            }
            properties.insert("control".into(), control.into());
        }
        let Some(item) = &self.item else { return };
        if let Some(control) =
            properties.get_mut("control").and_then(|control| control.as_object_mut())
        {
            for expression in control.values_mut() {
                let Some(text) = expression.as_str() else { continue };
                let roots = roots_of_text(&format!("{{{{ {text} }}}}"));
                *expression = (lets(roots, item) + text).into();
            }
        }
        fix_variables(properties, item);
    }

    /// What is wrong with a name that all items would give, if it is.
    pub(super) fn check_name(&self, name: &str, span: Span) -> Option<Finding> {
        let innermost = self.item.as_deref()?;
        let mut reads = roots_of_text(name);
        let mut level = Some(innermost);
        let mut loops = self.loops.iter().rev();
        while let Some(item) = level {
            let uses = |names: &[String]| names.iter().any(|name| reads.contains(name));
            if !uses(&item.own_names()) {
                if !uses(&item.index_names()) {
                    let message = format!(
                        "the name does not use `{}`; every item would make the same resource",
                        item.name
                    );
                    let finding = Finding::error(span, message);
                    let is_hidden = &*item.name == "Item" && !std::ptr::eq(item, innermost);
                    return Some(if is_hidden {
                        let hint = "`Item` is that of the inner loop here; give the outer `for_each` \
                                    an `as`, and use its name";
                        finding.hint(hint.to_owned())
                    } else {
                        finding
                    });
                }
                let hint = "use the key or a member of the item".to_owned();
                let message = "the name uses only the index of the item: a new item renames \
                               all that follow";
                return Some(Finding::warning(span, message).hint(hint));
            }
            // What the inner loop goes over tells the outer items apart.
            let plain = ["Item", "Key", "Index"];
            reads.retain(|name| !plain.contains(&name.as_str()));
            reads.extend(loops.next().into_iter().flat_map(|reads| reads.iter().cloned()));
            level = item.outer.as_deref();
        }
        None
    }
}

/// The words that may stand beside a type.
pub(super) const WORDS: [&str; 4] = ["for_each", "as", "tags", "control"];

/// The words of a block as they are written.
#[derive(Default)]
pub(super) struct Words<'a> {
    pub(super) for_each: Option<(Key<'a>, Node<'a>)>,
    pub(super) name: Option<(Key<'a>, Node<'a>)>,
    pub(super) tags: Option<Node<'a>>,
    pub(super) control: Option<Node<'a>>,
}

impl<'a> Words<'a> {
    /// Takes the words out of the entries of a block.
    pub(super) fn take(entries: Vec<Entry<'a>>) -> (Self, Vec<Entry<'a>>) {
        let mut words = Self::default();
        let mut rest = Vec::with_capacity(1);
        for Entry { key, value } in entries {
            match &*key.text {
                "for_each" => words.for_each = Some((key, value)),
                "as" => words.name = Some((key, value)),
                "tags" => words.tags = Some(value),
                "control" => words.control = Some(value),
                _ => rest.push(Entry { key, value }),
            }
        }
        (words, rest)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.for_each.is_none()
            && self.name.is_none()
            && self.tags.is_none()
            && self.control.is_none()
    }
}

/// What a loop goes over.
pub(super) enum Items {
    List(Vec<Value>),
    /// In the order of the bytes of the keys: merged data has no order of its own.
    Map(Vec<(String, Value)>),
}

impl Items {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::List(items) => items.len(),
            Self::Map(items) => items.len(),
        }
    }

    pub(super) fn into_pairs(self) -> Vec<(Option<String>, Value)> {
        match self {
            Self::List(items) => items.into_iter().map(|item| (None, item)).collect(),
            Self::Map(items) => items.into_iter().map(|(key, item)| (Some(key), item)).collect(),
        }
    }
}

/// Resolves what a loop goes over.
pub(super) fn items(
    node: &Node<'_>,
    templates: &Resolver,
    source: Option<&Source>,
) -> Result<Items, Box<Finding>> {
    let failed = |error| {
        let failure = PropertyError { property: "for_each", span: Some(node.span), error };
        Box::new(failure.finding(source))
    };
    let text = node.scalar().filter(|scalar| !scalar.is_null()).map(|scalar| &*scalar.text);
    let value = match text.filter(|text| ccm_model::has_placeholder(text)) {
        Some(text) => Templates::value(templates, text).map_err(failed)?,
        None => {
            let written = ccm_yaml::to_value(node);
            templates.expand(&written, true).map_err(|error| failed(error.into()))?
        }
    };
    match value {
        Value::Array(items) => Ok(Items::List(Arc::unwrap_or_clone(items))),
        Value::Map(map) => {
            let pairs = map.iter().map(|(key, value)| (key.value().to_string(), value.clone()));
            let mut pairs: Vec<(String, Value)> = pairs.collect();
            pairs.sort_by(|one, other| one.0.as_bytes().cmp(other.0.as_bytes()));
            Ok(Items::Map(pairs))
        }
        Value::Nil if text.is_some() => {
            let text = text.unwrap_or_default();
            let finding = match Templates::text(templates, text) {
                Err(error) => failed(error),
                Ok(_) => Box::new(Finding::error(node.span, "for_each has no value")),
            };
            let hint = "use `?? []` for an optional list".to_owned();
            let hint = match &finding.hint {
                Some(known) => format!("{known}; {hint}"),
                None => hint,
            };
            Err(Box::new(Finding { hint: Some(hint), ..*finding }))
        }
        other => {
            let found = match &other {
                Value::Nil => "nothing",
                Value::String(_) => "a string",
                Value::Bool(_) => "true or false",
                Value::Int(_) | Value::Float(_) => "a number",
                _ => "something else",
            };
            let message = format!("for_each needs a list or a map, found {found}");
            let word = text.filter(|text| !ccm_model::has_placeholder(text));
            let hint = word.map(|word| match word.strip_prefix("Data.") {
                Some(key) => format!("write `{{{{ Data.{key} }}}}`"),
                None => "write an expression, such as `{{ Data.sites }}`".to_owned(),
            });
            Err(Box::new(Finding::error(node.span, message).hint(hint)))
        }
    }
}

/// The names that the texts of a loop's value read.
pub(super) fn reads_of(node: &Node<'_>) -> BTreeSet<String> {
    match &node.kind {
        Kind::Scalar(scalar) => roots_of_text(&scalar.text),
        Kind::Sequence(items) => items.iter().flat_map(reads_of).collect(),
        Kind::Mapping(entries) => {
            let each = |entry: &Entry<'_>| {
                let mut reads = roots_of_text(&entry.key.text);
                reads.extend(reads_of(&entry.value));
                reads
            };
            entries.iter().flat_map(each).collect()
        }
    }
}

/// Puts the values of loop variables into the templates that are still to be
/// resolved, so that they mean the same outside of the loop.
fn fix_variables(properties: &mut serde_json::Value, item: &LoopItem) {
    match properties {
        serde_json::Value::String(text) => {
            if let Some(fixed) = fixed(text, item) {
                *text = fixed;
            }
        }
        serde_json::Value::Array(items) => {
            for value in items {
                fix_variables(value, item);
            }
        }
        serde_json::Value::Object(map) => {
            map.values_mut().for_each(|value| fix_variables(value, item));
        }
        _ => {}
    }
}

/// The same text with `let` before each expression that reads loop variables.
fn fixed(text: &str, item: &LoopItem) -> Option<String> {
    let mut out = String::new();
    let mut copied = 0;
    for placeholder in scan(text, Openers::All).filter_map(Result::ok) {
        let found = text.get(placeholder.start..placeholder.end)?;
        let at = placeholder.start + found.find(placeholder.inner)?;
        let lets = lets(roots_of_text(found), item);
        if !lets.is_empty() {
            out += text.get(copied..at)?;
            out += &lets;
            copied = at;
        }
    }
    (copied > 0).then(|| out + text.get(copied..).unwrap_or_default())
}

/// Declarations of those names that are variables of the loop.
fn lets(names: BTreeSet<String>, item: &LoopItem) -> String {
    let known = names.into_iter().filter_map(|name| {
        let value = serde_json::to_string(item.get(&name)?).ok()?;
        Some(format!("let {name} = {value}; "))
    });
    known.collect()
}

/// What is wrong with the name of the items of a loop.
pub(super) fn check_as(name: &str, span: Span, block: &Block) -> Option<Finding> {
    if !is_free_name(name) {
        let message = format!("an item cannot be called `{name}`");
        let hint = "use a word of letters, digits and `_` that is no function and no variable";
        return Some(Finding::error(span, message).hint(hint.to_owned()));
    }
    let mut outer = block.item.as_deref();
    while let Some(item) = outer {
        if *item.name == *name {
            let message = format!("the items of an outer `for_each` are called `{name}` already");
            return Some(Finding::error(span, message));
        }
        outer = item.outer.as_deref();
    }
    None
}
