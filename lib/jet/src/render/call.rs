//! Calls.

use std::sync::Arc;

use govalue::Span;
use govalue::{Key, Map, Value};

use super::Runtime;
use super::edits::weigh;
use crate::ast::{Args, ExprKind};
use crate::builtins::{self, Builtin, Plain, Refusal};
use crate::error::{Error, ErrorKind};
use crate::function::{self, Function};
use crate::item::Item;
use crate::set::not_found;

impl Runtime<'_> {
    /// Calls a function with the arguments written after it and the value
    /// piped into it, if any.
    pub(super) fn call(
        &mut self,
        callee: &Item,
        args: Option<&Args>,
        piped: Option<Item>,
        span: Span,
    ) -> Result<Item, Error> {
        self.deeper(span, |runtime| match callee {
            Item::Builtin(Builtin::IsSet) => runtime.isset(args, piped.as_ref(), span),
            Item::Builtin(builtin) => {
                let items = runtime.arguments(args, piped, span)?;
                runtime.call_builtin(*builtin, items, span)
            }
            Item::Function(function) => {
                let items = runtime.arguments(args, piped, span)?;
                runtime.call_function(function, items, span)
            }
            other => {
                let message = format!("{} is no function", other.describe());
                Err(runtime.error(ErrorKind::Arguments, span, message))
            }
        })
    }

    /// The arguments in order, with a piped value first or where `_` stands.
    pub(super) fn arguments(
        &mut self,
        args: Option<&Args>,
        piped: Option<Item>,
        span: Span,
    ) -> Result<Vec<Item>, Error> {
        let mut items = Vec::new();
        let slot = args.and_then(|args| args.slot);
        if piped.is_none() && slot.is_some() {
            let message = "`_` stands for a piped value, and there is none";
            return Err(self.error(ErrorKind::Arguments, span, message));
        }
        let mut piped = piped;
        if slot.is_none() {
            items.extend(piped.take());
        }
        for expr in args.map_or(&[][..], |args| &args.values) {
            items.push(match (&expr.kind, piped.take()) {
                (ExprKind::Slot, Some(item)) => item,
                (_, unused) => {
                    piped = unused;
                    self.eval(expr)?
                }
            });
        }
        Ok(items)
    }

    fn isset(
        &mut self,
        args: Option<&Args>,
        piped: Option<&Item>,
        span: Span,
    ) -> Result<Item, Error> {
        let exprs = args.map_or(&[][..], |args| &args.values);
        if exprs.is_empty() && piped.is_none() {
            return Err(self.error(ErrorKind::Arguments, span, "`isset` takes an argument"));
        }
        let mut all = piped.is_none_or(Item::is_set);
        for expr in exprs.iter().filter(|expr| !matches!(expr.kind, ExprKind::Slot)) {
            all = all && self.is_set(expr)?;
        }
        Ok(all.into())
    }

    fn call_function(
        &mut self,
        function: &Function,
        items: Vec<Item>,
        span: Span,
    ) -> Result<Item, Error> {
        let values = self.values(items, span)?;
        let values = function
            .arguments(values)
            .map_err(|message| self.error(ErrorKind::Arguments, span, message))?;
        match function.call(&values) {
            Ok(value) => Ok(Item::from_answer(value)),
            Err(cause) => {
                let message = cause.to_string();
                Err(self.error(ErrorKind::Function, span, message).caused_by(cause))
            }
        }
    }

    /// Plain values for functions outside; `None` is a missing one.
    fn values(&mut self, items: Vec<Item>, span: Span) -> Result<Vec<Option<Value>>, Error> {
        let mut values = Vec::with_capacity(items.len());
        for item in items {
            let value = item
                .into_value()
                .map_err(|message| self.error(ErrorKind::Arguments, span, message))?;
            values.push(match value {
                Some(value) => Some(self.plain_value(&value, span)?),
                None => None,
            });
        }
        Ok(values)
    }

    fn call_builtin(
        &mut self,
        builtin: Builtin,
        items: Vec<Item>,
        span: Span,
    ) -> Result<Item, Error> {
        match builtin {
            Builtin::Plain(plain) => self.call_plain(plain, items, span),
            Builtin::Len => self.len(items, span),
            Builtin::Map => self.make_map(items, span),
            Builtin::Slice => self.make_list(items, span),
            Builtin::Ints => self.ints(&items, span),
            Builtin::WriteJson => {
                let [value] = self.exactly(items, "writeJson", span)?;
                let json = self.json_of(value, span)?;
                Ok(Item::Json(Arc::from(format!("{json}\n"))))
            }
            Builtin::Dump => self.dump(items, span),
            Builtin::Exec => self.exec(items, span),
            Builtin::IncludeIfExists => self.include_if_exists(items, span),
            Builtin::IsSet => Ok(true.into()),
            Builtin::Writer(_) => {
                let message = "what writes to the output must be an action of its own";
                Err(self.error(ErrorKind::Arguments, span, message))
            }
        }
    }

    fn exactly<const N: usize>(
        &self,
        items: Vec<Item>,
        name: &str,
        span: Span,
    ) -> Result<[Item; N], Error> {
        items.try_into().map_err(|items: Vec<Item>| {
            let plural = if N == 1 { "" } else { "s" };
            let message = format!("`{name}` takes {N} argument{plural}, not {}", items.len());
            self.error(ErrorKind::Arguments, span, message)
        })
    }

    fn call_plain(&mut self, plain: Plain, items: Vec<Item>, span: Span) -> Result<Item, Error> {
        let values = self.values(items, span)?;
        let values = function::convert_all(plain.params(), values)
            .map_err(|message| self.error(ErrorKind::Arguments, span, message))?;
        let refused = |runtime: &Self, refusal| match refusal {
            Refusal::TooLarge => runtime.too_large(span),
            Refusal::Arguments(message) => runtime.error(ErrorKind::Arguments, span, message),
        };
        for value in &values {
            let weight = weigh(value, self.limits.output).map_err(|_| self.too_large(span))?;
            self.work_on(weight, span)?;
        }
        let answer =
            plain.call(&values, self.limits.output).map_err(|refusal| refused(self, refusal))?;
        let weight = weigh(&answer, self.limits.output.saturating_mul(8));
        self.work_on(weight.map_err(|_| self.too_large(span))?, span)?;
        Ok(answer.into())
    }

    fn json_of(&mut self, item: Item, span: Span) -> Result<String, Error> {
        let [value] = &self.values(vec![item], span)?[..] else { return Ok(String::new()) };
        let Some(value) = value else {
            return Err(self.error(ErrorKind::Arguments, span, "there is no value to write"));
        };
        let weight = weigh(value, self.limits.output).map_err(|_| self.too_large(span))?;
        self.work_on(weight, span)?;
        builtins::json(value).map_err(|refusal| match refusal {
            Refusal::TooLarge => self.too_large(span),
            Refusal::Arguments(message) => self.error(ErrorKind::Arguments, span, message),
        })
    }

    fn len(&mut self, items: Vec<Item>, span: Span) -> Result<Item, Error> {
        let [item] = self.exactly(items, "len", span)?;
        let len = match &item {
            Item::Value(Value::String(text)) => text.len(),
            Item::Value(Value::Bytes(bytes)) => bytes.len(),
            Item::Value(Value::Array(items)) => items.len(),
            Item::Value(Value::Map(map)) => self.edits.view(map).len(),
            other => {
                let message = format!("{} has no length", other.describe());
                return Err(self.error(ErrorKind::Arguments, span, message));
            }
        };
        Ok(len.into())
    }

    fn make_list(&mut self, items: Vec<Item>, span: Span) -> Result<Item, Error> {
        let mut values = Vec::with_capacity(items.len());
        for item in items {
            match item.into_value() {
                Ok(Some(value)) => values.push(value),
                Ok(None) => {
                    let message = "nothing cannot be an item of a list";
                    return Err(self.error(ErrorKind::Arguments, span, message));
                }
                Err(message) => return Err(self.error(ErrorKind::Arguments, span, message)),
            }
        }
        self.built(Value::from(values), span)
    }

    /// Keys and values in turn. A value that is not there leaves its key out.
    fn make_map(&mut self, items: Vec<Item>, span: Span) -> Result<Item, Error> {
        let mut map = Map::new();
        let mut items = items.into_iter();
        while let Some(key) = items.next() {
            let Some(value) = items.next() else {
                let message = "`map` takes keys and values in turn";
                return Err(self.error(ErrorKind::Arguments, span, message));
            };
            let name = match &key {
                Item::Value(key) => function::text(key),
                _ => None,
            };
            let Some(name) = name else {
                let message = format!("a key is a string, not {}", key.describe());
                return Err(self.error(ErrorKind::Arguments, span, message));
            };
            match value.into_value() {
                Ok(Some(value)) => drop(map.insert(Key::from(name), value)),
                Ok(None) => {
                    if let Some(name) = name.as_str() {
                        map.remove(name);
                    }
                }
                Err(message) => return Err(self.error(ErrorKind::Arguments, span, message)),
            }
        }
        self.built(map.into(), span)
    }

    /// A new list or map, if it is not too large.
    fn built(&mut self, value: Value, span: Span) -> Result<Item, Error> {
        let weight = weigh(&value, self.limits.output).map_err(|_| self.too_large(span))?;
        self.work_on(weight, span)?;
        Ok(value.into())
    }

    fn ints(&mut self, items: &[Item], span: Span) -> Result<Item, Error> {
        let bound = |index: usize| match items.get(index) {
            Some(Item::Value(Value::Float(number))) => Some(function::truncate(*number)),
            Some(Item::Value(value)) => value.as_int(),
            _ => None,
        };
        match (items.len(), bound(0), bound(1)) {
            (2, Some(from), Some(to)) if from < to => Ok(Item::Ints(from, to)),
            (2, Some(from), Some(to)) => {
                let message = format!("`ints` goes upwards, not from {from} to {to}");
                Err(self.error(ErrorKind::Arguments, span, message))
            }
            _ => Err(self.error(ErrorKind::Arguments, span, "`ints` takes two integers")),
        }
    }

    /// The template that an argument names, and the context that may follow.
    fn named_template(
        &mut self,
        items: Vec<Item>,
        span: Span,
    ) -> Result<(String, Option<Item>), Error> {
        let given = items.len();
        let mut items = items.into_iter();
        match (items.next(), items.next()) {
            (Some(Item::Value(Value::String(path))), context) if given <= 2 => {
                Ok((crate::loader::join("/", &path.to_str_lossy()), context))
            }
            _ => {
                let message = "this takes the path of a template and perhaps a context";
                Err(self.error(ErrorKind::Arguments, span, message))
            }
        }
    }

    /// `exec`: what a template returned; what it wrote is lost.
    fn exec(&mut self, items: Vec<Item>, span: Span) -> Result<Item, Error> {
        let (path, context) = self.named_template(items, span)?;
        let template = match self.set.find(&path) {
            Ok(Some(template)) => template,
            Ok(None) => return Err(not_found(&path, &self.source, span)),
            Err(failure) => return Err(failure.at(&self.source, span)),
        };
        let out = std::mem::take(&mut self.out);
        let returned = self.run_template(&template, context)?;
        self.out = out;
        Ok(returned.unwrap_or(Item::Missing))
    }

    fn include_if_exists(&mut self, items: Vec<Item>, span: Span) -> Result<Item, Error> {
        let (path, context) = self.named_template(items, span)?;
        match self.set.find(&path) {
            Ok(Some(template)) => {
                self.run_template(&template, context)?;
                Ok(Item::Silent(true))
            }
            Ok(None) => Ok(Item::Silent(false)),
            Err(failure) => Err(failure.at(&self.source, span)),
        }
    }
}
