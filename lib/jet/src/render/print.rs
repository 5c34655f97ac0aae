//! Values as text.

use govalue::Span;
use govalue::{FloatFormat, Str, Value, format_float, sprintf};

use super::Runtime;
use super::edits::weigh;
use crate::ast::Command;
use crate::builtins::Writer;
use crate::error::{Error, ErrorKind};
use crate::item::Item;

impl Runtime<'_> {
    /// Prints what an action yields: nothing at all prints as nothing, a null
    /// as `<nil>`, and floats never with an exponent.
    pub(super) fn print(&mut self, item: &Item, span: Span) -> Result<(), Error> {
        match item {
            Item::Missing | Item::Silent(_) => Ok(()),
            Item::Value(Value::String(text)) => {
                self.work_on(text.len(), span)?;
                self.write(text.as_bytes(), span)
            }
            Item::Value(Value::Float(number)) => {
                let text = format_float(*number, FloatFormat::Decimal, None);
                self.write(text.as_bytes(), span)
            }
            other => {
                let text = self.text_of(other.clone(), span)?;
                self.work_on(text.len(), span)?;
                self.write(text.as_bytes(), span)
            }
        }
    }

    /// The text of something by the rules of Go's `fmt.Sprint`, but bytes as
    /// the text they are.
    pub(super) fn text_of(&mut self, item: Item, span: Span) -> Result<Str, Error> {
        Ok(match item {
            Item::Missing => Str::default(),
            Item::Value(Value::Bytes(bytes)) => Str::from_bytes(&bytes),
            Item::Value(value @ (Value::Array(_) | Value::Map(_))) => {
                let value = self.plain_value(&value, span)?;
                let weight = weigh(&value, self.limits.output).map_err(|_| self.too_large(span))?;
                self.work_on(weight, span)?;
                value.to_go_string()
            }
            Item::Value(value) => value.to_go_string(),
            Item::Json(text) | Item::Failure(text) => text.into(),
            Item::Silent(truth) => Str::from(truth.to_string()),
            Item::Ints(from, to) => Str::from(format!("{{-1 {} {to}}}", from.wrapping_sub(1))),
            Item::Function(_) | Item::Builtin(_) => {
                let message = "a function cannot be printed; it takes parentheses to call it";
                return Err(self.error(ErrorKind::Type, span, message));
            }
        })
    }

    /// `raw`, `safeHtml` and `safeJs`: arguments straight to the output.
    pub(super) fn write_escaped(
        &mut self,
        writer: Writer,
        command: &Command,
        piped: Option<Item>,
    ) -> Result<(), Error> {
        let items = self.arguments(command.args.as_ref(), piped, command.span)?;
        for item in items {
            let text = match &item {
                Item::Value(Value::Float(number)) => {
                    format_float(*number, FloatFormat::Decimal, None).into()
                }
                Item::Silent(_) => Str::default(),
                _ => self.text_of(item, command.span)?,
            };
            self.work_on(text.len(), command.span)?;
            self.write(writer.escape(&text).as_bytes(), command.span)?;
        }
        Ok(())
    }

    /// `dump`: variables as Go would write them down, for the author's eyes.
    pub(super) fn dump(&mut self, args: Vec<Item>, span: Span) -> Result<Item, Error> {
        let mut out = String::new();
        let mut names = Vec::new();
        let mut levels = None;
        for arg in args {
            match arg {
                Item::Value(Value::String(name)) => names.push(name.to_string()),
                Item::Value(Value::Float(number)) if levels.is_none() => {
                    levels = Some(crate::function::truncate(number).max(0) as usize);
                }
                other => {
                    let message = format!("`dump` takes names, not {}", other.describe());
                    return Err(self.error(ErrorKind::Arguments, span, message));
                }
            }
        }
        if !names.is_empty() {
            for name in names {
                if let Some(item) = self.scope.find(&name).0 {
                    self.dump_one(&name, item, &mut out, span)?;
                }
            }
            return Ok(out.into());
        }
        out.push_str("Context:\n");
        self.dump_one(".", self.context.clone(), &mut out, span)?;
        let all: Vec<_> = self.scope.levels().take(levels.unwrap_or(usize::MAX)).collect();
        for (level, variables) in all.into_iter().enumerate() {
            out.push_str(match level {
                0 => "Variables in current scope:\n",
                _ => "Variables in an outer scope:\n",
            });
            for (name, item) in variables {
                self.dump_one(&name, item, &mut out, span)?;
            }
        }
        Ok(out.into())
    }

    fn dump_one(
        &mut self,
        name: &str,
        item: Item,
        out: &mut String,
        span: Span,
    ) -> Result<(), Error> {
        let line = match item.into_value() {
            Ok(Some(value)) => {
                let value = self.plain_value(&value, span)?;
                let weight = weigh(&value, self.limits.output).map_err(|_| self.too_large(span))?;
                self.work_on(weight, span)?;
                let kind = value.type_name();
                format!("\t{name}:={} // {kind}\n", sprintf("%#v", &[value]))
            }
            Ok(None) => format!("\t{name}:=nil\n"),
            Err(_) => format!("\t{name}:=func\n"),
        };
        if out.len() + line.len() > self.limits.output {
            return Err(self.too_large(span));
        }
        self.work_on(line.len(), span)?;
        out.push_str(&line);
        Ok(())
    }
}
