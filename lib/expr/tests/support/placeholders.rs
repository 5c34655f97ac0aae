//! `{{ … }}` and `${ … }` in strings, resolved in typed mode.

use govalue::Value;

use super::World;

pub(crate) fn resolve(text: &str, world: &World) -> Result<Value, expr::Error> {
    let mut out = String::new();
    let mut rest = text;
    while let Some((start, open)) = opener(rest) {
        let inner_start = start + open.len();
        let Some((inner, after)) = closer(&rest[inner_start..], open) else {
            out.push_str(&rest[..inner_start]);
            rest = &rest[inner_start..];
            continue;
        };
        let value = world.evaluate(inner.trim())?;
        if out.is_empty()
            && rest.len() == text.len()
            && rest[..start].trim().is_empty()
            && after.trim().is_empty()
        {
            return Ok(value);
        }
        out.push_str(&rest[..start]);
        out.push_str(&value.to_string());
        rest = after;
    }
    out.push_str(rest);
    Ok(out.into())
}

fn opener(text: &str) -> Option<(usize, &'static str)> {
    let double = text.find("{{").map(|at| (at, "{{"));
    let dollar =
        text.find("${").filter(|at| !text[at + 1..].starts_with("{{")).map(|at| (at, "${"));
    [double, dollar].into_iter().flatten().min()
}

/// The text inside and the text after the closing mark.
fn closer<'t>(text: &'t str, open: &str) -> Option<(&'t str, &'t str)> {
    let (mut quote, mut escaped, mut depth) = (None, false, 0);
    for (at, c) in text.char_indices() {
        match quote {
            Some(_) if escaped => escaped = false,
            Some(mark) if c == '\\' && mark != '`' => escaped = true,
            Some(mark) if c == mark => quote = None,
            Some(_) => {}
            None => match c {
                '"' | '\'' | '`' => quote = Some(c),
                '}' if open == "{{" && text[at..].starts_with("}}") => {
                    return Some((&text[..at], &text[at + 2..]));
                }
                '}' if open == "${" && depth == 0 => return Some((&text[..at], &text[at + 1..])),
                '}' => depth -= i32::from(open == "${"),
                '{' => depth += 1,
                _ => {}
            },
        }
    }
    None
}
