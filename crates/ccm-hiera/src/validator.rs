//! Expressions that say what a value must be like.
//!
//! ```
//! use ccm_hiera::validator::check;
//!
//! assert!(check("10.0.0.1", "isIPv4(value) || isIPv6(value)")?);
//! assert!(!check("80x", "is_int(value)")?);
//! assert!(check("x", "nope(value)").is_err());
//! # Ok::<(), ccm_hiera::validator::Invalid>(())
//! ```

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

use expr::{Environment, ErrorKind, Function, Program, Type};
use govalue::Value;

/// A validation that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Invalid {
    /// It does not compile, or wants too much.
    #[error("{}", source.snippet(expression))]
    Expression {
        /// The expression as the rule has it.
        expression: String,
        /// The error and its location.
        source: expr::Error,
    },
    /// It is neither true nor false.
    #[error("`{expression}` must be true or false")]
    NotBoolean {
        /// The expression as the rule has it.
        expression: String,
    },
}

/// Whether an expression is true for `value`. An expression that fails is
/// false.
pub fn check(value: &str, expression: &str) -> Result<bool, Invalid> {
    let invalid = |source| Invalid::Expression { expression: expression.to_owned(), source };
    let not_boolean = || Invalid::NotBoolean { expression: expression.to_owned() };
    let program = Program::compile(expression, &ENVIRONMENT).map_err(invalid)?;
    if !matches!(program.result_type(), Type::Bool | Type::Any) {
        return Err(not_boolean());
    }
    let mut vars = ENVIRONMENT.vars();
    vars.set("value", value);
    vars.set("Value", value);
    match program.run(&vars) {
        Ok(Value::Bool(holds)) => Ok(holds),
        Ok(_) => Err(not_boolean()),
        Err(error) if matches!(error.kind(), ErrorKind::Value | ErrorKind::Function) => Ok(false),
        Err(error) => Err(invalid(error)),
    }
}

type Test = fn(&str) -> bool;

/// Every test of one text, by all its names.
const TESTS: &[(&[&str], Test)] = &[
    (&["isIP", "is_ip"], is_ip),
    (&["isIPv4", "is_ipv4"], is_ipv4),
    (&["isIPv6", "is_ipv6"], is_ipv6),
    (&["isInt", "is_int"], is_int),
    (&["isFloat", "is_float"], is_float),
    (&["isDuration", "is_duration"], is_duration),
    (&["isShellSafe", "is_shellsafe", "is_shell_safe"], is_shell_safe),
    (&["isHostname", "is_hostname"], is_hostname),
    (&["isFQDN", "is_fqdn"], is_fqdn),
];

static ENVIRONMENT: LazyLock<Environment> = LazyLock::new(|| {
    let mut environment =
        Environment::new().member("value", Type::String).member("Value", Type::String);
    for (names, test) in TESTS {
        for name in *names {
            let function = Function::new(move |_, args| {
                Ok(args.first().and_then(Value::as_str).is_some_and(test).into())
            });
            let function = function.arity(1, 1).params([Type::String]).returns(Type::Bool);
            environment = environment.function(name, function);
        }
    }
    for name in ["isRegex", "is_regex"] {
        let function = Function::new(|_, args| Ok(matches(args).into()))
            .arity(2, 2)
            .params([Type::String, Type::String])
            .returns(Type::Bool);
        environment = environment.function(name, function);
    }
    environment
});

/// Regular expressions are those of the expression language.
fn matches(args: &[Value]) -> bool {
    static MATCHES: LazyLock<(Environment, Option<Program>)> = LazyLock::new(|| {
        let environment = Environment::new().member("text", Type::Any).member("pattern", Type::Any);
        let program = Program::compile("text matches pattern", &environment).ok();
        (environment, program)
    });
    let ((environment, Some(program)), [text, pattern]) = (&*MATCHES, args) else { return false };
    let mut vars = environment.vars();
    vars.set("text", text.clone());
    vars.set("pattern", pattern.clone());
    program.run(&vars).is_ok_and(|holds| holds == Value::Bool(true))
}

fn is_ip(text: &str) -> bool {
    text.parse::<IpAddr>().is_ok()
}

/// An IPv4 address stays one in the clothes of IPv6.
fn is_ipv4(text: &str) -> bool {
    text.parse::<Ipv4Addr>().is_ok()
        || text.parse::<Ipv6Addr>().is_ok_and(|address| address.to_ipv4_mapped().is_some())
}

fn is_ipv6(text: &str) -> bool {
    text.parse::<Ipv6Addr>().is_ok_and(|address| address.to_ipv4_mapped().is_none())
}

fn unsigned(text: &str) -> &str {
    text.strip_prefix(['+', '-']).unwrap_or(text)
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_int(text: &str) -> bool {
    is_digits(unsigned(text))
}

fn is_float(text: &str) -> bool {
    let text = unsigned(text);
    if ["inf", "infinity", "nan"].iter().any(|word| text.eq_ignore_ascii_case(word)) {
        return true;
    }
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let digits = mantissa.replacen('.', "", 1);
    is_digits(&digits) && exponent.is_none_or(is_int)
}

fn is_duration(text: &str) -> bool {
    ccm_model::duration::parse(text).is_ok()
}

/// Nothing that makes a shell do more than read words.
fn is_shell_safe(text: &str) -> bool {
    !text.trim().contains(['`', '$', ';', '|', '&', '<', '>', '(', ')', '\n', '\r', '\0'])
}

fn is_label(label: &str) -> bool {
    (1..=63).contains(&label.len())
        && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        && !label.starts_with('-')
}

/// Names as RFC 1123 has them.
fn is_hostname(text: &str) -> bool {
    text.split('.').all(is_label)
}

/// A host name with a domain whose last part begins with a letter; a dot may
/// stand at the end.
fn is_fqdn(text: &str) -> bool {
    let text = text.strip_suffix('.').unwrap_or(text);
    text.rsplit_once('.').is_some_and(|(front, last)| {
        is_hostname(front)
            && is_label(last)
            && last.starts_with(|c: char| c.is_ascii_alphabetic())
            && !last.contains('-')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_names_are_there() {
        for (names, _) in TESTS {
            for name in *names {
                check("x", &format!("{name}(value)")).unwrap();
            }
        }
        assert!(check("web01", r#"is_regex(value, "^web\\d+$")"#).unwrap());
    }

    #[test]
    fn tests_of_texts() {
        for (test, holds, fails) in [
            (
                is_int as fn(&str) -> bool,
                &["0", "-12", "+1"][..],
                &["", "-", "1.0", "1 ", "0x1"][..],
            ),
            (is_float, &["1", "1.", ".5", "-1e-3", "Inf"], &["", ".", "e3", "1e", "1.2.3", "1_0"]),
            (is_ipv4, &["1.2.3.4", "::ffff:1.2.3.4"], &["1.2.3", "01.2.3.4", "::1"]),
            (is_ipv6, &["::1"], &["1.2.3.4", "fe80::1%eth0"]),
            (is_hostname, &["a", "a-b.c", "1"], &["", "-a", "a.", "a_b", "é"]),
            (is_fqdn, &["a.b", "a.b.", "1.b2"], &["a", "a.1", "a..b", "."]),
            (is_duration, &["1h30m", "0"], &["soon", ""]),
            (is_shell_safe, &["a b", "'x'", ""], &["a;b", "$x", "a\nb"]),
        ] {
            for text in holds {
                assert!(test(text), "{text:?}");
            }
            for text in fails {
                assert!(!test(text), "{text:?}");
            }
        }
    }

    #[test]
    fn what_fails_while_running_does_not_hold() {
        assert!(!check("x", "int(value) > 3").unwrap());
        assert!(matches!(check("x", "value"), Err(Invalid::NotBoolean { .. })));
        assert!(check("x", "value ==").is_err());
    }
}
