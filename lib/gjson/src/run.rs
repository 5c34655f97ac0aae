//! Evaluates a path over a JSON text.

use std::borrow::Cow;
use std::cell::Cell;

use crate::Error;
use crate::found::{Found, Kind};
use crate::modifier;
use crate::multipath::{self, Multipath};
use crate::query::Query;
use crate::scan::{Cursor, Head, Piece};
use crate::step::{self, ArrayStep, Next, ObjectStep, Select};

/// How deeply paths may be nested, and lead into nested data.
const MAX_DEPTH: usize = 200;

/// Bytes that any path may read and make, and how often it may go through a
/// text that is longer.
const BASE_FUEL: usize = 1 << 27;
const FUEL_PER_BYTE: usize = 64;

/// Making a byte costs memory too, and so more than reading one.
const COST_OF_OUTPUT: usize = 4;

/// One evaluation, with what is left of its allowance.
#[derive(Debug)]
pub(crate) struct Run {
    fuel: Cell<usize>,
    depth: Cell<usize>,
}

/// What a part of a path comes to.
enum Outcome<'j, 'p> {
    Done(Found<'j>),
    /// The rest of the path is for this text.
    Continue(Cow<'j, str>, &'p str),
}

impl Run {
    pub(crate) fn new(json: &str) -> Self {
        let fuel = json.len().saturating_mul(FUEL_PER_BYTE).saturating_add(BASE_FUEL);
        Self { fuel: Cell::new(fuel), depth: Cell::new(0) }
    }

    #[cfg(test)]
    pub(crate) fn with_fuel(fuel: usize) -> Self {
        Self { fuel: Cell::new(fuel), depth: Cell::new(0) }
    }

    /// Pays for reading so many bytes.
    pub(crate) fn spend(&self, bytes: usize) -> Result<(), Error> {
        // Something is paid for nothing too, so that every loop ends.
        let left = self.fuel.get().checked_sub(bytes.saturating_add(16));
        self.fuel.set(left.unwrap_or(0));
        left.map(drop).ok_or(Error::TooMuchWork)
    }

    /// What a path finds in a text.
    pub(crate) fn get<'j>(&self, json: &'j str, path: &str) -> Result<Found<'j>, Error> {
        let mut outcome = self.nested(|| self.step(json, path))?;
        loop {
            outcome = match outcome {
                Outcome::Done(found) => return Ok(found),
                Outcome::Continue(Cow::Borrowed(json), path) => {
                    self.nested(|| self.step(json, path))?
                }
                Outcome::Continue(Cow::Owned(json), path) => {
                    match self.nested(|| self.step(&json, path))? {
                        Outcome::Done(found) => Outcome::Done(found.into_owned()),
                        Outcome::Continue(json, path) => {
                            Outcome::Continue(Cow::Owned(json.into_owned()), path)
                        }
                    }
                }
            };
        }
    }

    /// Goes one level deeper for what `work` does.
    fn nested<T>(&self, work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        let depth = self.depth.get();
        if depth == MAX_DEPTH {
            return Err(Error::TooDeep);
        }
        self.depth.set(depth + 1);
        let result = work();
        self.depth.set(depth);
        result
    }

    /// Evaluates a path up to its first pipe.
    fn step<'j, 'p>(&self, json: &'j str, path: &'p str) -> Result<Outcome<'j, 'p>, Error> {
        self.spend(path.len())?;
        // A single character is always a name.
        if path.len() > 1 {
            match path.as_bytes()[0] {
                b'@' => {
                    if let Some((call, rest)) = modifier::Call::parse(path) {
                        let made = call.apply(self, json)?;
                        return Ok(continued(rest, made));
                    }
                }
                b'!' => {
                    if let Some((literal, rest)) = step::literal(path) {
                        return Ok(continued(rest, Cow::Owned(literal.to_owned())));
                    }
                }
                b'[' | b'{' => {
                    if let Some((multipath, rest)) = Multipath::parse(path) {
                        let made = multipath::collect(self, json, &multipath)?;
                        return Ok(continued(rest, Cow::Owned(made)));
                    }
                }
                _ => {}
            }
        }
        let mut walk = Walk { run: self, pipe: None };
        let found = if let Some(path) = path.strip_prefix("..") {
            self.spend(json.len())?;
            walk.array(&mut Cursor::new(json, 0), path)?
        } else if let Some(at) = first_bracket(json) {
            walk.container(json, at, path)?
        } else {
            None
        };
        let found = found.unwrap_or_else(Found::missing);
        Ok(match walk.pipe {
            Some(path) => Outcome::Continue(found.into_raw(), path),
            None => Outcome::Done(found),
        })
    }
}

/// What comes of a text that was made, given the path behind its maker.
fn continued<'j, 'p>(rest: &'p str, made: Cow<'j, str>) -> Outcome<'j, 'p> {
    match rest.strip_prefix(['.', '|']) {
        Some(path) => Outcome::Continue(made, path),
        None => Outcome::Done(Found::parse(made)),
    }
}

/// Where the object or array of a text begins; a string has none inside.
fn first_bracket(json: &str) -> Option<usize> {
    let at = json.find(['{', '[', '"'])?;
    (json.as_bytes()[at] != b'"').then_some(at)
}

/// One way through a text, from bracket to bracket.
struct Walk<'r, 'p> {
    run: &'r Run,
    /// The path for the result, once a component before a pipe was reached.
    pipe: Option<&'p str>,
}

impl<'p> Walk<'_, 'p> {
    /// What a path finds in the container that begins at an offset.
    fn container<'j>(
        &mut self,
        json: &'j str,
        at: usize,
        path: &'p str,
    ) -> Result<Option<Found<'j>>, Error> {
        let run = self.run;
        let mut cursor = Cursor::new(json, at + 1);
        let found = run.nested(|| {
            if json.as_bytes()[at] == b'{' {
                self.object(&mut cursor, path)
            } else {
                self.array(&mut cursor, path)
            }
        });
        run.spend(cursor.at.saturating_sub(at))?;
        found
    }

    fn object<'j>(
        &mut self,
        cursor: &mut Cursor<'j>,
        path: &'p str,
    ) -> Result<Option<Found<'j>>, Error> {
        let step = ObjectStep::parse(path);
        self.note_pipe(step.next);
        while let Some(key) = cursor.key() {
            let Some(head) = cursor.head(b'}') else { break };
            if step.matches(self.run, key)? {
                match self.enter(cursor, head, step.next)? {
                    // A key may come again, or another match the wildcards.
                    None => {}
                    found => return Ok(found),
                }
            }
            if cursor.take(head).is_none() {
                break;
            }
        }
        Ok(None)
    }

    fn array<'j>(
        &mut self,
        cursor: &mut Cursor<'j>,
        path: &'p str,
    ) -> Result<Option<Found<'j>>, Error> {
        let step = ArrayStep::parse(path);
        self.note_pipe(step.next);
        match step.select {
            Select::Nothing => Ok(None),
            Select::Index(index) => {
                for _ in 0..index {
                    if element(cursor).is_none() {
                        return Ok(None);
                    }
                }
                match cursor.head(b']') {
                    Some(head) => self.enter(cursor, head, step.next),
                    None => Ok(None),
                }
            }
            Select::Count => {
                let count = std::iter::from_fn(|| element(cursor)).count();
                Ok(Some(Found::new(Kind::Number, Cow::Owned(count.to_string()))))
            }
            Select::Each(path) => {
                let (path, pipe) = step::split_pipe(path);
                self.pipe = pipe.or(self.pipe);
                let mut list = List::new(self.run);
                while let Some(element) = element(cursor) {
                    self.push_found(&mut list, element, path)?;
                }
                Ok(Some(list.finish()))
            }
            Select::Query(query) => self.query(cursor, &query, step.next),
        }
    }

    fn query<'j>(
        &mut self,
        cursor: &mut Cursor<'j>,
        query: &Query<'_>,
        next: Next<'p>,
    ) -> Result<Option<Found<'j>>, Error> {
        let (path, pipe) = match next {
            Next::Down(path) => {
                let (path, pipe) = step::split_pipe(path);
                (Some(path), pipe)
            }
            Next::End | Next::Pipe(_) => (None, None),
        };
        let mut list = List::new(self.run);
        while let Some(element) = element(cursor) {
            if !self.selects(query, element)? {
                continue;
            }
            // Only a match makes the rest of the path count: without one, the
            // empty list is the result.
            self.pipe = pipe.or(self.pipe);
            if !query.all {
                return match path {
                    Some(path) => self.run.get(element.raw, path).map(Some),
                    None => Ok(Some(element.into())),
                };
            }
            match path {
                Some(path) => self.push_found(&mut list, element, path)?,
                None => list.push(element.raw)?,
            }
        }
        Ok(query.all.then(|| list.finish()))
    }

    /// Whether an element matches a query.
    fn selects(&self, query: &Query<'_>, element: Piece<'_>) -> Result<bool, Error> {
        let found = if element.kind == Kind::Json {
            self.run.get(element.raw, query.path)?
        } else if query.path.is_empty() {
            element.into()
        } else {
            return Ok(false);
        };
        query.matches(self.run, &found)
    }

    /// Adds what a path finds in an element.
    fn push_found(&self, list: &mut List<'_>, element: Piece<'_>, path: &str) -> Result<(), Error> {
        self.run.spend(element.raw.len())?;
        let found = self.run.get(element.raw, path)?;
        if found.exists() { list.push(found.raw()) } else { Ok(()) }
    }

    /// The value at a head, or what the path behind it finds inside.
    fn enter<'j>(
        &mut self,
        cursor: &mut Cursor<'j>,
        head: Head,
        next: Next<'p>,
    ) -> Result<Option<Found<'j>>, Error> {
        match next {
            Next::Down(path) if head.kind == Kind::Json => {
                self.container(cursor.text, head.at, path)
            }
            Next::Down(_) => Ok(None),
            Next::End | Next::Pipe(_) => Ok(cursor.take(head).map(Found::from)),
        }
    }

    fn note_pipe(&mut self, next: Next<'p>) {
        if let Next::Pipe(path) = next {
            self.pipe = Some(path);
        }
    }
}

/// The next element of an array.
fn element<'j>(cursor: &mut Cursor<'j>) -> Option<Piece<'j>> {
    let head = cursor.head(b']')?;
    cursor.take(head)
}

/// JSON text in the making, paid for as it grows.
pub(crate) struct Output<'r> {
    run: &'r Run,
    text: String,
}

impl<'r> Output<'r> {
    pub(crate) fn new(run: &'r Run) -> Self {
        Self { run, text: String::new() }
    }

    pub(crate) fn push(&mut self, text: &str) -> Result<(), Error> {
        self.run.spend(text.len().saturating_mul(COST_OF_OUTPUT))?;
        self.text.push_str(text);
        Ok(())
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    pub(crate) fn truncate(&mut self, length: usize) {
        self.text.truncate(length);
    }

    pub(crate) fn finish(self) -> String {
        self.text
    }
}

/// An array in the making.
pub(crate) struct List<'r> {
    out: Output<'r>,
    empty: bool,
}

impl<'r> List<'r> {
    pub(crate) fn new(run: &'r Run) -> Self {
        Self { out: Output::new(run), empty: true }
    }

    pub(crate) fn push(&mut self, raw: &str) -> Result<(), Error> {
        self.out.push(if self.empty { "[" } else { "," })?;
        self.empty = false;
        self.out.push(raw)
    }

    pub(crate) fn into_json(self) -> String {
        let mut text = self.out.finish();
        text.push_str(if self.empty { "[]" } else { "]" });
        text
    }

    fn finish<'j>(self) -> Found<'j> {
        Found::new(Kind::Json, Cow::Owned(self.into_json()))
    }
}
