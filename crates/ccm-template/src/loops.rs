//! The variables of `for_each`.

use std::fmt;
use std::sync::Arc;

use govalue::Value;

use crate::Resolver;
use crate::resolver::Language;
use crate::table;

/// The item of the innermost loop, whatever `as` calls it.
const ITEM: &str = "Item";
const KEY: &str = "Key";
const INDEX: &str = "Index";

/// Names of expressions that an item cannot have.
const RESERVED: [&str; 8] =
    ["Facts", "Data", "Environ", KEY, INDEX, "WorkingDir", "DefaultOnMissing", "RestrictFunctions"];

/// What the items of one loop share: the names of their variables, and the
/// expressions that were compiled with them.
pub struct Loop {
    language: Arc<Language>,
    /// What `as` calls the item.
    name: Arc<str>,
    derived: [Arc<str>; 2],
    /// `Item`, `Key` and `Index`.
    plain: [Arc<str>; 3],
    has_keys: bool,
    /// The keys that lead to what it goes over, if that is data as it is.
    data: Option<Arc<[String]>>,
    /// How many items it has.
    count: usize,
    outer: Option<Arc<LoopItem>>,
}

/// One item of a loop, and those of the loops around it.
pub struct LoopItem {
    pub(crate) language: Arc<Language>,
    pub(crate) variables: Vec<(Arc<str>, Value)>,
    /// What `as` calls it.
    pub name: Arc<str>,
    /// Its place, from 0.
    pub index: usize,
    /// Its key, in a loop over a map.
    pub key: Option<String>,
    /// The keys that lead to the loop in the data, if it goes over data as it is.
    of: Option<Arc<[String]>>,
    /// How many items the loop has.
    pub count: usize,
    /// The item of the loop around this one.
    pub outer: Option<Arc<LoopItem>>,
}

impl Resolver {
    /// A loop whose items are called `name`, and have keys if it goes over a map.
    ///
    /// ```
    /// use ccm_template::{Resolver, Scope};
    ///
    /// let resolver = Resolver::new(Scope::new(&ccm_host::Host::new()));
    /// let sites = resolver.begin_loop(Some("site"), true);
    /// let shop = resolver.with_item(&sites.item(0, Some("shop"), 8081.into()));
    /// assert_eq!(shop.text("{{ Key }} {{ site }} {{ site_index }}")?.text, "shop 8081 0");
    /// assert_eq!(shop.jet("[[ site ]] [[ .Item ]]", None)?, "8081 8081");
    /// # Ok::<(), ccm_template::Error>(())
    /// ```
    pub fn begin_loop(&self, name: Option<&str>, has_keys: bool) -> Loop {
        let name: Arc<str> = name.unwrap_or(ITEM).into();
        let derived = ["key", "index"].map(|word| format!("{name}_{word}").into());
        let mut made = Loop {
            language: Arc::new(Language::with_variables(self.is_restricted(), [])),
            name,
            derived,
            plain: [ITEM, KEY, INDEX].map(Arc::from),
            has_keys,
            data: None,
            count: 0,
            outer: self.item().cloned(),
        };
        // The names are the same for each item.
        let sample = made.variables(0, Some(""), Value::Nil);
        let names = sample.iter().map(|(name, _)| &**name);
        made.language = Arc::new(Language::with_variables(self.is_restricted(), names));
        made
    }

    /// The keys of the data that a placeholder stands for, if it is nothing else:
    /// `{{ Data.sites }}`, or a member of an item that comes from the data.
    fn data_keys(&self, text: &str) -> Option<Vec<String>> {
        let expression = text.trim().strip_prefix("{{")?.strip_suffix("}}")?;
        let always = expression.split_once("??").map_or(expression, |(first, _)| first);
        let mut found = expr::references(always.trim()).ok()?;
        let member = found.members.pop().filter(|_| found.members.is_empty())?;
        if !member.is_complete || !found.calls.is_empty() {
            return None;
        }
        let mut keys = match &*member.root {
            "Data" => Vec::new(),
            name => self.item()?.called(name)?.data()?,
        };
        keys.extend(member.keys);
        Some(keys)
    }
}

impl Loop {
    /// The same loop, which knows how many items it has, and where in the data they
    /// come from.
    #[must_use]
    pub fn over(self, templates: &Resolver, text: Option<&str>, count: usize) -> Self {
        Self { data: text.and_then(|text| templates.data_keys(text)).map(Arc::from), count, ..self }
    }

    /// The item at a place, with its key in a loop over a map.
    pub fn item(&self, index: usize, key: Option<&str>, value: Value) -> Arc<LoopItem> {
        Arc::new(LoopItem {
            language: Arc::clone(&self.language),
            variables: self.variables(index, key, value),
            name: Arc::clone(&self.name),
            index,
            key: key.map(str::to_owned),
            of: self.data.clone(),
            count: self.count,
            outer: self.outer.clone(),
        })
    }

    /// Those of the loops around it that it does not have itself, then its own.
    fn variables(&self, index: usize, key: Option<&str>, value: Value) -> Vec<(Arc<str>, Value)> {
        let index = i64::try_from(index).unwrap_or(i64::MAX);
        let [item_name, plain_key, plain_index] = &self.plain;
        let outer = self.outer.as_ref().map_or(0, |outer| outer.variables.len());
        let mut own = Vec::with_capacity(6 + outer);
        own.push((Arc::clone(plain_index), index.into()));
        let is_named = *self.name != *ITEM;
        let [key_name, index_name] = &self.derived;
        // Messages call a value by the last of its names: by that of `as`.
        let named = is_named.then(|| value.clone());
        own.push((Arc::clone(item_name), value));
        if let Some(value) = named {
            own.push((Arc::clone(&self.name), value));
            own.push((Arc::clone(index_name), index.into()));
        }
        if let Some(key) = key.filter(|_| self.has_keys) {
            let key = Value::from(key);
            own.push((Arc::clone(plain_key), key.clone()));
            if is_named {
                own.push((Arc::clone(key_name), key));
            }
        }
        let is_plain = |name: &str| [ITEM, KEY, INDEX].contains(&name);
        let outer = self.outer.iter().flat_map(|outer| &outer.variables);
        own.extend(outer.filter(|(name, _)| !is_plain(name)).cloned());
        own
    }
}

impl LoopItem {
    /// How messages name it: by its key, or by its place, never by its value.
    pub fn label(&self) -> String {
        match &self.key {
            Some(key) => format!("{key:?}"),
            None => self.index.to_string(),
        }
    }

    /// The keys that lead to it in the data, if it comes from there as it is.
    pub fn data(&self) -> Option<Vec<String>> {
        let own = self.key.clone().unwrap_or_else(|| self.index.to_string());
        Some(self.of.as_ref()?.iter().cloned().chain([own]).collect())
    }

    /// The item that an expression calls this, here or in a loop around.
    pub fn called(&self, name: &str) -> Option<&Self> {
        if name == ITEM || *self.name == *name {
            return Some(self);
        }
        self.outer.as_deref()?.called(name)
    }

    /// The value of a variable.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.variables.iter().find(|(own, _)| **own == *name).map(|(_, value)| value)
    }

    /// The names of all variables.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.variables.iter().map(|(name, _)| &**name)
    }

    /// The variables of this loop itself that say more than the place of the item:
    /// what a name must use one of to be another one for each item.
    pub fn own_names(&self) -> Vec<String> {
        let own = [ITEM, KEY].map(str::to_owned).into_iter();
        own.chain([self.name.to_string(), format!("{}_key", self.name)]).collect()
    }

    /// The variables of this loop that hold its place.
    pub fn index_names(&self) -> [String; 2] {
        [INDEX.to_owned(), format!("{}_index", self.name)]
    }
}

/// Whether an item can be called this.
pub fn is_free_name(name: &str) -> bool {
    let is_word = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let begins_well = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let mut functions = table::FUNCTIONS.iter().flat_map(|function| function.names);
    let is_function =
        functions.any(|known| *known == name) || expr::function_names().any(|known| known == name);
    is_word && begins_well && !RESERVED.contains(&name) && !is_function
}

impl fmt::Debug for LoopItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Its value may be secret.
        f.debug_struct("LoopItem")
            .field("name", &self.name)
            .field("index", &self.index)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Loop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loop").field("name", &self.name).finish_non_exhaustive()
    }
}
