//! Members, indexes and slices.

use govalue::Span;
use govalue::{IntType, Str, Value};

use super::{Runtime, ops};
use crate::ast::Name;
use crate::error::{Error, ErrorKind};
use crate::function::{self, Function};
use crate::item::Item;
use crate::variables::method_name;

/// A byte of a string.
pub(super) fn byte(value: u8) -> Item {
    Value::Sized(IntType::Uint8, i64::from(value)).into()
}

impl Runtime<'_> {
    /// `.a.b`: every member must be there.
    pub(super) fn field(&mut self, path: &[(Name, Span)], span: Span) -> Result<Item, Error> {
        let mut item = self.context.clone();
        if path.is_empty() {
            return Ok(item);
        }
        for (name, at) in path {
            item = match self.member(&item, name, *at)? {
                Item::Missing => return Err(self.no_member(name, span.to(*at))),
                found => found,
            };
        }
        Ok(item)
    }

    /// `base.a.b`: only the last member may be missing.
    pub(super) fn chain(&mut self, base: Item, path: &[(Name, Span)]) -> Result<Item, Error> {
        let mut item = base;
        for (index, (name, at)) in path.iter().enumerate() {
            self.work(1, *at)?;
            item = match self.member(&item, name, *at)? {
                Item::Missing if index + 1 < path.len() => return Err(self.no_member(name, *at)),
                found => found,
            };
        }
        Ok(item)
    }

    fn no_member(&self, name: &str, span: Span) -> Error {
        self.error(ErrorKind::Missing, span, format!("there is no member `{name}`"))
    }

    fn member(&mut self, base: &Item, name: &str, span: Span) -> Result<Item, Error> {
        match base {
            Item::Value(Value::Map(map)) => match self.edits.view(map).get(name) {
                Some(value) => Ok(value.clone().into()),
                None => Ok(self.note_missing(map, name)),
            },
            Item::Failure(text) if name == "Error" => {
                let text = text.clone();
                Ok(Item::Function(Function::new(
                    0..=0,
                    move |_| Ok(Str::from(text.clone()).into()),
                )))
            }
            Item::Value(list @ Value::Array(_))
                if let (Some(Item::Function(method)), _) = self.scope.find(&method_name(name)) =>
            {
                let list = list.clone();
                Ok(Item::Function(method.with_first(list)))
            }
            Item::Missing | Item::Value(Value::Nil) => {
                let message = format!("member `{name}` of {}", base.describe());
                Err(self.error(ErrorKind::Missing, span, message))
            }
            _ => {
                let message = format!("{} has no members", base.describe());
                Err(self.error(ErrorKind::Type, span, message))
            }
        }
    }

    /// `base[key]`
    pub(super) fn index(&mut self, base: &Item, key: &Item, span: Span) -> Result<Item, Error> {
        match base {
            Item::Value(Value::Map(map)) => {
                let Some(name) = (match key {
                    Item::Value(key) => function::text(key),
                    _ => None,
                }) else {
                    let message = format!("a key is a string, not {}", key.describe());
                    return Err(self.error(ErrorKind::Type, span, message));
                };
                match self.edits.view(map).get_str(&name) {
                    Some(value) => Ok(value.clone().into()),
                    None => Ok(self.note_missing(map, name)),
                }
            }
            Item::Value(Value::Array(items)) => {
                let at = self.position(key, items.len(), span)?;
                Ok(items[at].clone().into())
            }
            Item::Value(Value::String(text)) => {
                let at = self.position(key, text.len(), span)?;
                Ok(byte(text.as_bytes()[at]))
            }
            Item::Value(Value::Bytes(bytes)) => {
                let at = self.position(key, bytes.len(), span)?;
                Ok(byte(bytes[at]))
            }
            Item::Missing | Item::Value(Value::Nil) => {
                let message = format!("an index into {}", base.describe());
                Err(self.error(ErrorKind::Missing, span, message))
            }
            _ => {
                let message = format!("{} cannot be indexed", base.describe());
                Err(self.error(ErrorKind::Type, span, message))
            }
        }
    }

    /// An index from 0; a float loses its fraction.
    fn position(&self, key: &Item, len: usize, span: Span) -> Result<usize, Error> {
        let wanted = match key {
            Item::Value(Value::Float(number)) => Some(function::truncate(*number)),
            Item::Value(value) => value.as_int(),
            _ => None,
        };
        let Some(wanted) = wanted else {
            let message = format!("an index is an integer, not {}", key.describe());
            return Err(self.error(ErrorKind::Type, span, message));
        };
        usize::try_from(wanted).ok().filter(|at| *at < len).ok_or_else(|| {
            let message = format!("index {wanted} is out of range: the length is {len}");
            self.error(ErrorKind::Missing, span, message)
        })
    }

    /// `base[from:to]`
    pub(super) fn slice(
        &mut self,
        base: &Item,
        from: Option<Item>,
        to: Option<Item>,
        span: Span,
    ) -> Result<Item, Error> {
        let len = match base {
            Item::Value(Value::Array(items)) => items.len(),
            Item::Value(Value::String(text)) => text.len(),
            Item::Value(Value::Bytes(bytes)) => bytes.len(),
            _ => {
                let message = format!("{} cannot be sliced", base.describe());
                return Err(self.error(ErrorKind::Type, span, message));
            }
        };
        let bound = |item: Option<Item>, default: usize| match item {
            None => Ok(default as i64),
            Some(item) => {
                ops::to_int(&item).map_err(|message| self.error(ErrorKind::Type, span, message))
            }
        };
        let (low, high) = (bound(from, 0)?, bound(to, len)?);
        let range = match (usize::try_from(low), usize::try_from(high)) {
            (Ok(low), Ok(high)) if low <= high && high <= len => low..high,
            _ => {
                let message = format!("slice {low}:{high} is out of range: the length is {len}");
                return Err(self.error(ErrorKind::Missing, span, message));
            }
        };
        match base {
            Item::Value(Value::Array(items)) => {
                self.work(range.len(), span)?;
                Ok(Value::from(items[range].to_vec()).into())
            }
            Item::Value(Value::String(text)) => {
                self.work_on(range.len(), span)?;
                Ok(text.slice(range.start, range.end).into())
            }
            Item::Value(Value::Bytes(bytes)) => {
                self.work_on(range.len(), span)?;
                Ok(Value::bytes(&bytes[range]).into())
            }
            _ => Ok(Item::Missing),
        }
    }
}
