//! The field table of a type: plain data from which the command line, schemas
//! and documentation are generated.

/// One property of a resource type, or one setting of a program.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Its name in manifests.
    pub name: &'static str,
    /// One-line description.
    pub doc: &'static str,
    /// Other names that mean the same.
    pub aliases: &'static [&'static str],
    /// Type of its values.
    pub shape: Shape,
    /// Default of a setting, as it would be written.
    pub default: Option<&'static str>,
    /// Format of its string.
    pub format: Option<Format>,
    /// The heading that a form shows it under.
    pub group: Option<&'static str>,
    /// When its templates are resolved.
    pub phase: Phase,
    /// Whether its value must never be shown.
    pub secret: bool,
    /// Whether the values in it must never be shown, but their names may be.
    pub secret_values: bool,
    /// Whether it must be given.
    pub required: Required,
    /// Properties that cannot be given together with it.
    pub conflicts: &'static [&'static str],
    /// How it looks at the command line.
    pub flag: Flag,
}

impl Field {
    /// Whether this field goes by that name.
    pub fn is_called(&self, name: &str) -> bool {
        self.name == name || self.aliases.contains(&name)
    }
}

/// How a field looks at the command line.
#[derive(Clone, Copy, Debug)]
pub struct Flag {
    /// `--long`, without the dashes.
    pub long: &'static str,
    /// `-s`.
    pub short: Option<char>,
    /// Placeholder of the value in the help.
    pub value: Option<&'static str>,
    /// A variable of the environment that gives it too.
    pub env: Option<&'static str>,
    /// Default on the command line.
    pub default: Option<&'static str>,
}

/// The type of a field's values.
#[derive(Clone, Copy, Debug)]
pub enum Shape {
    /// Any string, taken as written.
    Text,
    /// `true` or `false`.
    Boolean,
    /// A whole number; each property has its own range.
    Integer,
    /// `type#name`.
    Reference,
    /// A list of one shape.
    List(&'static Shape),
    /// A map of texts.
    Texts,
    /// A map of anything.
    Data,
    /// A map with fields of its own.
    Struct(&'static [Field]),
    /// A string, or a map with these fields; the string stands for the first of them.
    TextOr(&'static [Field]),
    /// Goss rules, or a text that becomes a map of them.
    Rules,
}

/// What the text of a field, or of each item of a list, is. Types check it
/// themselves; schemas are rendered from this, and forms choose how to ask for it.
#[derive(Clone, Copy, Debug)]
pub enum Format {
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// A time such as `1h30m`, not negative.
    Duration,
    /// Permissions in octal notation, at most 0777.
    Mode,
    /// `KEY=value`.
    Assignment,
    /// A number from 1 on.
    Count,
    /// A file or directory.
    Path,
    /// A command line.
    Command,
    /// A URL.
    Url,
    /// An expression without placeholders around it.
    Expression,
    /// A user, by name or number.
    User,
    /// A group, by name or number.
    Group,
    /// A name that matches this regular expression; a word that YAML takes for a
    /// boolean is one.
    Name(&'static str),
    /// Text that matches this regular expression.
    Pattern(&'static str),
    /// A whole number between these two, both included.
    Within(i64, i64),
    /// `never`, or a time of at least a second.
    Lifetime,
}

impl Format {
    /// The format in one word, as forms and other programs know it.
    pub fn word(self) -> &'static str {
        match self {
            Self::OneOf(_) => "one_of",
            Self::Duration => "duration",
            Self::Mode => "mode",
            Self::Assignment => "assignment",
            Self::Count => "count",
            Self::Path => "path",
            Self::Command => "command",
            Self::Url => "url",
            Self::Expression => "expression",
            Self::User => "user",
            Self::Group => "group",
            Self::Name(_) => "name",
            Self::Pattern(_) => "pattern",
            Self::Within(..) => "within",
            Self::Lifetime => "lifetime",
        }
    }
}

/// When a field's templates are resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// When the manifest is resolved.
    Parse,
    /// As `Parse`, keys of maps too.
    Keys,
    /// After the control gate, when the resource is applied.
    Deferred,
    /// Never, or by a step of its own.
    Never,
}

/// Whether a field must be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Required {
    /// In every resource of the type.
    Always,
    /// Unless `ensure` has one of these values.
    UnlessEnsure(&'static [&'static str]),
    /// Unless this other property is given.
    UnlessSet(&'static str),
    /// The property is optional.
    Never,
}

/// Joins two tables when constants are made.
pub const fn concat_fields<const N: usize>(first: &[Field], second: &[Field]) -> [Field; N] {
    let mut all = [if first.is_empty() { second[0] } else { first[0] }; N];
    let mut at = 0;
    while at < N {
        all[at] = if at < first.len() { first[at] } else { second[at - first.len()] };
        at += 1;
    }
    all
}
