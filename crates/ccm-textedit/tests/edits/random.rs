//! Random documents that look like what a format reads, and random edits.

use ccm_textedit::{
    Anchor, BlockEdit, Comment, Edit, Entries, IfMissing, LineEdit, Pattern, Pointer, Which,
};
use proptest::prelude::*;
use serde_json::{Map, Value};

/// A text of such lines with random line ends, perhaps with a byte order mark,
/// perhaps without a final line end.
pub(crate) fn text(line: impl Strategy<Value = Vec<u8>> + 'static) -> BoxedStrategy<Vec<u8>> {
    let end = prop_oneof![8 => Just(&b"\n"[..]), 2 => Just(&b"\r\n"[..])];
    let lines = proptest::collection::vec((line, end), 0..14);
    let style =
        prop_oneof![6 => Just(None), 2 => Just(Some(&b"\n"[..])), 2 => Just(Some(&b"\r\n"[..]))];
    (any::<(bool, bool)>(), style, lines)
        .prop_map(|((bom, stub), style, lines)| {
            let mut text = if bom { b"\xEF\xBB\xBF".to_vec() } else { Vec::new() };
            let count = lines.len();
            for (index, (line, end)) in lines.into_iter().enumerate() {
                text.extend(line);
                if !(stub && index + 1 == count) {
                    text.extend_from_slice(style.unwrap_or(end));
                }
            }
            // A line end behind a last `\r` would belong to it.
            while text.ends_with(b"\r") {
                text.pop();
            }
            text
        })
        .boxed()
}

fn words(words: &'static [&'static str]) -> impl Strategy<Value = Vec<u8>> {
    proptest::sample::select(words).prop_map(|word| word.as_bytes().to_vec())
}

/// Anything but a line end and NUL.
fn noise() -> impl Strategy<Value = Vec<u8>> {
    let byte = any::<u8>().prop_filter("a line", |byte| !matches!(byte, 0 | b'\n'));
    proptest::collection::vec(byte, 0..6)
}

const LINES: &[&str] = &[
    "", "a", "ab", "b", "#a", "# a", "a ", " a", "c 1", "c 2", "Port 22", "#Port 22", "\u{e9}",
    "é a", "\r",
];

pub(crate) fn plain_line() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![8 => words(LINES), 1 => noise()]
}

fn pattern() -> impl Strategy<Value = Pattern> {
    const TEXTS: &[&str] = &["a", "^a", "a$", "^$", "^#?Port", "c [12]", "[^a]", ".", "é", "zz"];
    proptest::sample::select(TEXTS).prop_map(|text| Pattern::new(text).unwrap())
}

fn anchor() -> impl Strategy<Value = Anchor> {
    prop_oneof![
        1 => Just(Anchor::Start),
        3 => Just(Anchor::End),
        1 => pattern().prop_map(Anchor::After),
        1 => pattern().prop_map(Anchor::Before),
    ]
}

pub(crate) fn line_edit() -> impl Strategy<Value = Edit> {
    let line = proptest::sample::select(&["a", "ab", "Port 22", "Port 2222", "c 3", " a", "é"][..]);
    let which = prop_oneof![
        Just(None),
        Just(Some(Which::First)),
        Just(Some(Which::Last)),
        Just(Some(Which::Only))
    ];
    let if_missing = prop_oneof![4 => Just(IfMissing::Insert), 1 => Just(IfMissing::Skip), 1 => Just(IfMissing::Error)];
    let matching = proptest::option::of(pattern());
    (proptest::bool::weighted(0.2), line, matching, which, if_missing, anchor()).prop_map(
        |(absent, line, pattern, which, if_missing, anchor)| {
            let line = Some(line.to_owned());
            Edit::Line(LineEdit { absent, line, pattern, which, if_missing, anchor })
        },
    )
}

const MARKED: &[&str] = &[
    "# BEGIN ccm n",
    "# END ccm n",
    "# BEGIN ccm n  ",
    "# END ccm n\t",
    "# BEGIN ccm m",
    "x",
    "y",
    "",
    " # BEGIN ccm n",
];

pub(crate) fn marked_line() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![8 => words(MARKED), 4 => words(LINES), 1 => noise()]
}

pub(crate) fn block_edit() -> impl Strategy<Value = Edit> {
    let block = proptest::sample::select(&["", "x", "x\n", "x\ny\n", "\n", "x\r\ny", "é\n\n"][..]);
    let comment =
        prop_oneof![6 => Just(Comment::Hash), 1 => proptest::sample::select(&Comment::ALL[..])];
    (proptest::bool::weighted(0.2), block, comment, anchor()).prop_map(
        |(absent, block, comment, anchor)| {
            let (name, block) = ("n".to_owned(), block.to_owned());
            Edit::Block(BlockEdit { absent, name, block, comment, anchor })
        },
    )
}

/// Lines of an ini file. Every line of a value has the key in it.
const INI: &[&str] = &[
    "[s]",
    "[t]",
    " [s]",
    "[s] # s",
    "[",
    "[]",
    "k = 1",
    "k=2",
    "k: 3",
    "k",
    "k =",
    "  k = 4",
    "l = 1",
    "l",
    "l=",
    "\tl = 2",
    "    k-more",
    "  l more = x",
    "#k = 0",
    ";k=0",
    "# k",
    "# l : 1",
    "",
    "  ",
    "; note",
    "k = a \\\nk-rest",
    "l = \\\\",
    "m = 1",
    "m",
    "    # in",
    "é = ü",
];

/// What is noise may not be part of a value, so it is a comment.
pub(crate) fn ini_line() -> impl Strategy<Value = Vec<u8>> {
    let comment = noise().prop_map(|noise| [b"#", noise.as_slice()].concat());
    prop_oneof![20 => words(INI), 1 => comment]
}

fn ini_value() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        4 => proptest::sample::select(&["1", "2", "", "a b", "x=y", "# no", " lead", "two\nlines", "\\", "é"][..])
            .prop_map(Value::from),
        2 => (0..4).prop_map(Value::from),
        2 => any::<bool>().prop_map(Value::from),
    ];
    let list = proptest::collection::vec(proptest::sample::select(&["1", "2", "z"][..]), 0..3);
    prop_oneof![4 => scalar, 1 => list.prop_map(Value::from)]
}

pub(crate) fn ini_edit() -> impl Strategy<Value = Edit> {
    let section = || proptest::sample::select(&["", "s", "t", "new"][..]);
    let key = || proptest::sample::select(&["k", "l", "fresh"][..]);
    let set = proptest::collection::vec((section(), key(), ini_value()), 0..3);
    let remove = proptest::collection::vec((section(), proptest::option::of(key())), 0..2);
    (set, remove).prop_map(|(set, remove)| {
        let mut wanted: Map<String, Value> = Map::new();
        for (section, key, value) in set {
            let keys = wanted.entry(section).or_insert_with(|| Map::new().into());
            keys.as_object_mut().unwrap().insert(key.to_owned(), value);
        }
        let remove = remove.into_iter().filter(|(section, _)| !wanted.contains_key(*section));
        let pointer = |(section, key): (&'static str, Option<&'static str>)| {
            Pointer::of([section].into_iter().chain(key))
        };
        let remove: Vec<Pointer> = remove.map(pointer).collect();
        Edit::Ini(Entries { set: wanted, add: Vec::new(), remove })
    })
}
