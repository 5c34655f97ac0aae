//! The functions that are part of the language, by name.

macro_rules! names {
    ($(#[$doc:meta])* $kind:ident { $($variant:ident = $name:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum $kind {
            $($variant,)*
        }

        impl $kind {
            pub(crate) fn named(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$variant),)*
                    _ => None,
                }
            }

            const NAMES: &'static [&'static str] = &[$($name,)*];

            pub(crate) fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }
    };
}

names! {
    /// Functions of plain values.
    Builtin {
        Abs = "abs",
        Bitand = "bitand",
        Bitnand = "bitnand",
        Bitnot = "bitnot",
        Bitor = "bitor",
        Bitshl = "bitshl",
        Bitshr = "bitshr",
        Bitushr = "bitushr",
        Bitxor = "bitxor",
        Ceil = "ceil",
        Concat = "concat",
        Date = "date",
        Duration = "duration",
        First = "first",
        Flatten = "flatten",
        Float = "float",
        Floor = "floor",
        FromBase64 = "fromBase64",
        FromJson = "fromJSON",
        FromPairs = "fromPairs",
        Get = "get",
        HasPrefix = "hasPrefix",
        HasSuffix = "hasSuffix",
        IndexOf = "indexOf",
        Int = "int",
        Join = "join",
        Keys = "keys",
        Last = "last",
        LastIndexOf = "lastIndexOf",
        Len = "len",
        Lower = "lower",
        Max = "max",
        Mean = "mean",
        Median = "median",
        Min = "min",
        Now = "now",
        Repeat = "repeat",
        Replace = "replace",
        Reverse = "reverse",
        Round = "round",
        Sort = "sort",
        Split = "split",
        SplitAfter = "splitAfter",
        String = "string",
        Take = "take",
        Timezone = "timezone",
        ToBase64 = "toBase64",
        ToJson = "toJSON",
        ToPairs = "toPairs",
        Trim = "trim",
        TrimPrefix = "trimPrefix",
        TrimSuffix = "trimSuffix",
        Type = "type",
        Uniq = "uniq",
        Upper = "upper",
        Values = "values",
    }
}

names! {
    /// Functions that run a body for the items of a list.
    Predicate {
        All = "all",
        Any = "any",
        Count = "count",
        Filter = "filter",
        Find = "find",
        FindIndex = "findIndex",
        FindLast = "findLast",
        FindLastIndex = "findLastIndex",
        GroupBy = "groupBy",
        Map = "map",
        None = "none",
        One = "one",
        Reduce = "reduce",
        SortBy = "sortBy",
        Sum = "sum",
    }
}

impl Predicate {
    /// Whether the body must give a boolean.
    pub(crate) fn wants_bool(self) -> bool {
        !matches!(self, Self::GroupBy | Self::Map | Self::Reduce | Self::SortBy | Self::Sum)
    }

    /// Whether the body may be left out.
    pub(crate) fn body_optional(self) -> bool {
        matches!(self, Self::Count | Self::Sum)
    }

    /// Whether the items are visited from the last to the first.
    pub(crate) fn backwards(self) -> bool {
        matches!(self, Self::FindLast | Self::FindLastIndex)
    }
}

/// The names of the functions that are part of the language.
pub fn names() -> impl Iterator<Item = &'static str> {
    Builtin::NAMES.iter().chain(Predicate::NAMES).copied()
}

/// Whether a name belongs to the language.
pub(crate) fn is_builtin(name: &str) -> bool {
    Builtin::named(name).is_some() || Predicate::named(name).is_some()
}
