//! `:=` and `=`.

use govalue::Span;
use govalue::{MapShape, Value};

use super::Runtime;
use super::edits::weigh;
use crate::ast::{Assign, Target};
use crate::error::{Error, ErrorKind};
use crate::item::Item;

impl Runtime<'_> {
    pub(super) fn assign(&mut self, assign: &Assign) -> Result<(), Error> {
        if let (true, [value, found], [looked_up]) =
            (assign.lookup, &assign.targets[..], &assign.values[..])
        {
            let item = self.eval(looked_up)?;
            let there = !matches!(item, Item::Missing);
            self.assign_to(value, item, assign.declare, assign.span)?;
            return self.assign_to(found, there.into(), assign.declare, assign.span);
        }
        for (target, value) in assign.targets.iter().zip(&assign.values) {
            let item = self.eval(value)?;
            self.assign_to(target, item, assign.declare, assign.span)?;
        }
        Ok(())
    }

    pub(super) fn assign_to(
        &mut self,
        target: &Target,
        item: Item,
        declare: bool,
        span: Span,
    ) -> Result<(), Error> {
        match target {
            Target::Discard => Ok(()),
            Target::Variable(name, _) if declare => {
                self.scope.declare(name, item);
                Ok(())
            }
            Target::Variable(name, span) => {
                if self.scope.set(name, item) {
                    return Ok(());
                }
                let message = format!("variable `{name}` does not exist; `:=` would create it");
                Err(self.error(ErrorKind::UnknownName, *span, message))
            }
            Target::Member { base, member, span: at } => {
                let base = self.eval(base)?;
                self.set_member(&base, member, item, at.to(span))
            }
        }
    }

    /// Sets a member of a map, for everyone who holds the map. Nothing at all
    /// removes it.
    fn set_member(
        &mut self,
        base: &Item,
        member: &str,
        item: Item,
        span: Span,
    ) -> Result<(), Error> {
        let Item::Value(Value::Map(map)) = base else {
            let message = format!("`{member}` cannot be set in {}", base.describe());
            return Err(self.error(ErrorKind::Type, span, message));
        };
        let strings = map.shape() == MapShape::Strings;
        if !self.edits.is_edited(map) {
            self.work(map.len(), span)?;
        }
        match item.into_value() {
            Ok(None) => self.edits.remove(map, member),
            Ok(Some(value)) if strings && !matches!(value, Value::String(_)) => {
                let message = format!("only strings can be set here, and `{member}` is not one");
                return Err(self.error(ErrorKind::Type, span, message));
            }
            Ok(Some(value)) => {
                let weight = weigh(&value, self.limits.output).map_err(|_| self.too_large(span))?;
                self.work_on(weight, span)?;
                self.edits.insert(map, member, value);
            }
            Err(message) => return Err(self.error(ErrorKind::Type, span, message)),
        }
        Ok(())
    }
}
