//! JSON Schemas, rendered from the types and their field tables: what the
//! engine accepts, they accept; what it refuses by its shape, they refuse.

use ccm_engine::{AnyType, Ensure};
use ccm_model::{Event, Field, Format, Phase, Required, Shape};
use serde_json::{Map, Value, json};

/// The dialect of all schemas.
const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";
/// Text with a placeholder in it may become anything.
const PLACEHOLDER: &str = r"\{\{|\$\{";
/// Numbers with units, without a minus.
const DURATION: &str = r"^\+?(0|(([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|ms|s|m|h|d|D|w|W|M|y|Y))+)$";
const MODE: &str = r"^(0[oO])?0*[0-7]{1,3}$";
const ASSIGNMENT: &str = r"^[^=]+=[\s\S]";
const COUNT: &str = r"^\+?0*[1-9][0-9]*$";
/// `type#name`, or a placeholder.
const REFERENCE: &str = r"^[^#]+#.|\{\{|\$\{";

/// Goss rules, which every type refers to.
const RULES: &str = "goss_rules";

/// The schema of manifests.
pub fn manifest(types: &[&'static dyn AnyType]) -> Value {
    let mut definitions = Map::new();
    let mut entries = Map::new();
    for kind in types {
        let resources = format!("{}Resources", kind.name());
        entries.insert(kind.name().into(), reference(&resources));
        definitions.insert(strict(*kind), properties(*kind, SchemaVariant::Strict));
        definitions.insert(named(*kind), properties(*kind, SchemaVariant::Named));
        definitions.insert(loose(*kind), properties(*kind, SchemaVariant::Loose));
        definitions.insert(list(*kind), resource_list(*kind));
        definitions.insert(resources, block(*kind));
    }
    definitions.insert("resource".into(), entry(types, entries));
    definitions.insert(RULES.into(), ccm_goss::schema(PLACEHOLDER));
    let text = |description: &str| json!({"description": description, "type": SCALAR});
    let map = |description: &str| json!({"description": description, "type": ["object", "null"]});
    let ccm = json!({
        "description": "Resources, and settings of the run",
        "type": "object",
        "properties": {
            "pre_message": text("Printed before the run"),
            "post_message": text("Printed after a run without errors"),
            "fail_on_error": {
                "description": "Stop at the first resource that fails",
                "type": ["boolean", "null"],
            },
            "resources": resources("Resources, in the order in which they run"),
            "resources_jet_file": {
                "description": "Jet template that renders the list of resources",
                "type": "string",
                "minLength": 1,
            },
        },
        "oneOf": [{"required": ["resources"]}, {"required": ["resources_jet_file"]}],
        "additionalProperties": false,
    });
    let hierarchy = json!({
        "description": "Which overrides apply, and how ccm merges them",
        "type": "object",
        "properties": {
            "order": {
                "description": "Names of overrides, the most specific first",
                "type": "array",
                "items": {"type": "string"},
            },
            "merge": {
                "description": "`first` uses the first override that matches, `deep` merges all of them",
                // What is no word means `first`, as it does in the original.
                "type": SCALAR,
                "pattern": "^([Ff][Ii][Rr][Ss][Tt]|[Dd][Ee][Ee][Pp])?$",
            },
        },
        "required": ["order"],
        "additionalProperties": false,
    });
    json!({
        "$schema": DIALECT,
        "$id": "urn:ccm:v1:manifest",
        "title": "Manifest",
        "description": "Desired state of a machine",
        "type": "object",
        "properties": {
            "data": map("Data for templates"),
            "hierarchy": hierarchy,
            "overrides": map("Named sets of data that override `data`, chosen by `hierarchy`"),
            "ccm": ccm,
        },
        // Anchors live there.
        "patternProperties": {"^x-": true},
        "required": ["ccm"],
        "additionalProperties": false,
        "$defs": definitions,
    })
}

/// A list of entries.
fn resources(description: &str) -> Value {
    json!({
        "description": description,
        "type": "array",
        "minItems": 1,
        "items": reference("resource"),
    })
}

/// An entry: one type or a list of entries, and the words of a block beside it.
fn entry(types: &[&'static dyn AnyType], mut entries: Map<String, Value>) -> Value {
    entries.insert("resources".into(), resources("Resources of a block"));
    let one: Vec<Value> = entries.keys().map(|name| json!({"required": [name]})).collect();
    entries.insert(
        "for_each".into(),
        json!({
            "description": "List or map; the block is repeated for each of its items",
            "type": ["string", "array", "object"],
        }),
    );
    entries.insert(
        "as".into(),
        json!({
            "description": "Name of the item in expressions",
            "type": "string",
            "pattern": "^[A-Za-z_][A-Za-z0-9_]*$",
        }),
    );
    if let Some(kind) = types.first() {
        let common = properties(*kind, SchemaVariant::Loose);
        for (name, description) in [
            ("tags", "Tags of every resource of the block"),
            ("control", "Conditions under which ccm manages the resources of the block"),
        ] {
            let mut word = common["properties"][name].clone();
            word["description"] = description.into();
            entries.insert(name.into(), word);
        }
    }
    json!({
        "type": "object",
        "properties": entries,
        "oneOf": one,
        "dependentRequired": {"as": ["for_each"]},
        "additionalProperties": false,
    })
}

/// The schema of requests.
pub fn request(types: &[&'static dyn AnyType]) -> Value {
    let offered = types.iter().filter_map(|kind| Some((*kind, kind.command_line()?)));
    let offered: Vec<_> = offered.collect();
    let mut definitions = Map::new();
    let mut cases = Vec::new();
    for (kind, _) in &offered {
        let definition = format!("{}Properties", kind.name());
        cases.push(json!({
            "if": {"properties": {"type": {"const": kind.name()}}},
            "then": {"properties": {"properties": reference(&definition)}},
        }));
        definitions.insert(definition, properties(*kind, SchemaVariant::Named));
    }
    definitions.insert(RULES.into(), ccm_goss::schema(PLACEHOLDER));
    let names: Vec<_> = offered
        .iter()
        .flat_map(|(kind, view)| std::iter::once(kind.name()).chain(view.aliases.iter().copied()))
        .collect();
    json!({
        "$schema": DIALECT,
        "$id": "urn:ccm:v1:resource_ensure_request",
        "title": "Request",
        "description": "Request to apply one resource",
        "type": "object",
        "properties": {
            "protocol": {"description": "Name and version of the request format", "const": ccm_model::Request::PROTOCOL},
            "type": {"description": "Type of the resource", "enum": names},
            "properties": {"description": "Its properties, as in a manifest", "type": "object"},
        },
        "required": ["protocol", "type", "properties"],
        "additionalProperties": false,
        "allOf": cases,
        "$defs": definitions,
    })
}

/// The schema of something that is only written.
pub fn of<T: schemars::JsonSchema>(name: &str, title: &str) -> Value {
    let settings = schemars::generate::SchemaSettings::draft2020_12().for_serialize();
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    if let Some(map) = schema.as_object_mut() {
        map.insert("$id".into(), format!("urn:ccm:v1:{name}").into());
        map.insert("title".into(), title.into());
    }
    schema
}

/// The schema of events.
pub fn event() -> Value {
    of::<Event>("event", "Event")
}

/// Who asks for the properties of a resource.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SchemaVariant {
    /// The name stands elsewhere, nothing else does.
    Strict,
    /// Required properties may be set elsewhere.
    Loose,
    /// The name stands here too.
    Named,
}

/// What a scalar may be where text is wanted: it is taken as written.
const SCALAR: [&str; 4] = ["string", "number", "boolean", "null"];

// The names of definitions are those of the original, so that references to them
// from other schemas stay valid.
fn strict(kind: &dyn AnyType) -> String {
    format!("{}ResourceProperties", kind.name())
}

fn named(kind: &dyn AnyType) -> String {
    format!("{}ResourcePropertiesWithName", kind.name())
}

fn list(kind: &dyn AnyType) -> String {
    format!("{}ResourceList", kind.name())
}

fn loose(kind: &dyn AnyType) -> String {
    format!("{}ResourceDefaults", kind.name())
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/$defs/{name}")})
}

/// Whether a name alone will do: where defaults may bring the rest.
fn is_bare(kind: &'static dyn AnyType, properties: &str) -> bool {
    properties == loose(kind) || !needs_properties(kind)
}

/// A map of resources by their names, and of their defaults.
fn by_name(kind: &'static dyn AnyType, properties: &str) -> Value {
    let mut value = reference(properties);
    if is_bare(kind, properties) {
        value = json!({"anyOf": [value, {"type": "null"}]});
    }
    json!({
        "type": "object",
        "propertyNames": {"minLength": 1},
        "properties": {"defaults": {"anyOf": [reference(&loose(kind)), {"type": "null"}]}},
        "additionalProperties": value,
    })
}

fn has_defaults() -> Value {
    json!({"type": "object", "required": ["defaults"]})
}

/// A list of named resources.
fn resource_list(kind: &'static dyn AnyType) -> Value {
    let item = |properties: &str| {
        let mut item = by_name(kind, properties);
        item["minProperties"] = 1.into();
        item["maxProperties"] = 1.into();
        if !is_bare(kind, properties) {
            return item;
        }
        json!({"anyOf": [item, {"type": ["string", "number", "boolean"], "minLength": 1}]})
    };
    json!({
        "description": kind.about(),
        "type": "array",
        "if": {"contains": has_defaults()},
        "then": {"items": item(&loose(kind))},
        "else": {"items": item(&strict(kind))},
    })
}

/// What may stand below the name of a type: one resource with a name, a list
/// of named ones, or a map of them.
fn block(kind: &'static dyn AnyType) -> Value {
    let has_name = json!({
        "type": "object",
        "required": ["name"],
        "properties": {"name": {"type": ["string", "number", "boolean"]}},
    });
    json!({
        "description": kind.about(),
        "type": ["array", "object"],
        "if": {"type": "array"},
        "then": reference(&list(kind)),
        "else": {
            "if": has_name,
            "then": reference(&named(kind)),
            "else": {
                "if": has_defaults(),
                "then": by_name(kind, &loose(kind)),
                "else": by_name(kind, &strict(kind)),
            },
        },
    })
}

/// Whether a resource with nothing but a name lacks something.
fn needs_properties(kind: &'static dyn AnyType) -> bool {
    kind.fields().iter().any(|field| match field.required {
        Required::Always => field.name != "name",
        Required::UnlessEnsure(words) => !words.contains(&kind.ensure().default()),
        Required::UnlessSet(_) => true,
        Required::Never => false,
    })
}

/// The properties of one resource.
fn properties(kind: &'static dyn AnyType, variant: SchemaVariant) -> Value {
    let fields = kind.fields();
    let mut all = Map::new();
    for field in
        fields.iter().filter(|field| variant == SchemaVariant::Named || field.name != "name")
    {
        let schema = match (field.name, kind.ensure()) {
            ("ensure", Ensure::OneOf(words)) => described(field, one_of(words)),
            ("name", _) => {
                let mut schema = described(field, value(field));
                schema["description"] = kind.name_doc().into();
                schema
            }
            _ => described(field, value(field)),
        };
        for alias in field.aliases {
            all.insert((*alias).into(), schema.clone());
        }
        all.insert(field.name.into(), schema);
    }
    let mut object = json!({
        "description": kind.about(),
        "type": "object",
        "properties": all,
        "additionalProperties": false,
    });
    let mut rules: Vec<Value> = fields.iter().flat_map(|field| conflicts(field, fields)).collect();
    if variant != SchemaVariant::Loose {
        rules.extend(fields.iter().filter_map(|field| required(field, fields, kind.ensure())));
    }
    if variant == SchemaVariant::Named {
        rules.push(given("name"));
    }
    if !rules.is_empty() {
        object["allOf"] = rules.into();
    }
    object
}

fn described(field: &Field, mut schema: Value) -> Value {
    schema["description"] = field.doc.into();
    // For forms; validators pass over keywords that they do not know.
    if let Some(format) = field.format {
        schema["x-ccm-format"] = format.word().into();
    }
    if let Some(group) = field.group {
        schema["x-ccm-group"] = group.into();
    }
    schema
}

fn one_of(words: &[&str]) -> Value {
    let words: Vec<_> = words.iter().copied().chain([""]).collect();
    json!({"anyOf": [{"enum": words}, {"type": "null"}, {"type": "string", "pattern": PLACEHOLDER}]})
}

/// What a field accepts.
fn value(field: &Field) -> Value {
    let Some(format) = field.format.filter(|format| has_rule(*format)) else {
        return shape(&field.shape);
    };
    let may_hold_placeholder = field.phase != Phase::Never;
    match field.shape {
        Shape::List(_) => {
            json!({"type": ["array", "null"], "items": formatted(format, may_hold_placeholder)})
        }
        _ => {
            let text = formatted(format, may_hold_placeholder);
            json!({"anyOf": [{"type": "null"}, text]})
        }
    }
}

/// Whether a format says which texts are right. What a path, a command or a user
/// may be, only the machine knows.
fn has_rule(format: Format) -> bool {
    use Format::{Command, Expression, Group, Path, Url, User};
    !matches!(format, Path | Command | Url | Expression | User | Group)
}

/// Text of a format, and numbers that are one when taken as written. A number
/// for a mode may have been written in octal or in decimal notation.
fn formatted(format: Format, may_hold_placeholder: bool) -> Value {
    let (pattern, smallest, largest) = match format {
        Format::Path
        | Format::Command
        | Format::Url
        | Format::Expression
        | Format::User
        | Format::Group => return json!({"type": SCALAR}),
        Format::OneOf(words) => (format!("^({})$", words.join("|")), 0, -1),
        Format::Duration => (DURATION.to_owned(), 0, 0),
        Format::Mode => (MODE.to_owned(), 0, 777),
        Format::Assignment => (ASSIGNMENT.to_owned(), 0, -1),
        Format::Count => (COUNT.to_owned(), 1, i64::from(i32::MAX)),
        Format::Pattern(pattern) | Format::Name(pattern) => (pattern.to_owned(), 0, -1),
        Format::Within(least, most) => ("^[0-9]+$".to_owned(), least, most),
        Format::Lifetime => (format!("^never$|{DURATION}"), 0, -1),
    };
    let pattern = if may_hold_placeholder { format!("{pattern}|{PLACEHOLDER}") } else { pattern };
    let text = json!({"type": "string", "pattern": pattern});
    if matches!(format, Format::Name(_)) {
        return json!({"anyOf": [text, {"type": "boolean"}]});
    }
    if smallest > largest {
        return text;
    }
    json!({"anyOf": [text, {"type": "integer", "minimum": smallest, "maximum": largest}]})
}

/// What a shape accepts; null is the same as absent everywhere.
fn shape(shape: &Shape) -> Value {
    match shape {
        Shape::Text => json!({"type": SCALAR}),
        Shape::Boolean => json!({"type": ["boolean", "null"]}),
        Shape::Integer => json!({
            "type": ["integer", "string", "null"],
            "pattern": r"^[+-]?[0-9]+$",
        }),
        Shape::Reference => json!({"type": "string", "pattern": REFERENCE}),
        Shape::List(inner) => json!({"type": ["array", "null"], "items": item(inner)}),
        Shape::Texts => {
            json!({"type": ["object", "null"], "additionalProperties": {"type": SCALAR}})
        }
        Shape::Data => json!({"type": ["object", "null"]}),
        Shape::Rules => reference(RULES),
        Shape::TextOr(fields) => {
            json!({"anyOf": [{"type": SCALAR}, item(&Shape::Struct(fields))]})
        }
        Shape::Struct(fields) => {
            let known = fields.iter().flat_map(|field| {
                let schema = described(field, value(field));
                let names = std::iter::once(field.name).chain(field.aliases.iter().copied());
                names.map(move |name| (name.to_owned(), schema.clone()))
            });
            let known: Map<String, Value> = known.collect();
            let needed = fields.iter().filter_map(|field| needed(field, fields));
            let needed = needed.chain(fields.iter().flat_map(|field| conflicts(field, fields)));
            let mut object = json!({
                "type": ["object", "null"],
                "properties": known,
                "additionalProperties": false,
            });
            let needed: Vec<Value> = needed.collect();
            if !needed.is_empty() {
                object["allOf"] = needed.into();
            }
            object
        }
    }
}

/// In a list there is something, or nothing at all.
fn item(inner: &Shape) -> Value {
    let mut schema = shape(inner);
    if !matches!(inner, Shape::Text)
        && let Some(types) = schema.get_mut("type").and_then(Value::as_array_mut)
    {
        types.retain(|name| name != "null");
    }
    schema
}

/// Something is given under this name.
fn given(name: &str) -> Value {
    json!({"required": [name], "properties": {name: {"not": {"type": "null"}}}})
}

/// The field is given under one of its names.
fn given_somehow(field: &Field) -> Value {
    if field.aliases.is_empty() {
        return given(field.name);
    }
    let names = std::iter::once(field.name).chain(field.aliases.iter().copied());
    json!({"anyOf": names.map(given).collect::<Vec<_>>()})
}

/// What must be given whatever `ensure` is.
fn needed(field: &Field, fields: &[Field]) -> Option<Value> {
    match field.required {
        Required::Always => Some(given_somehow(field)),
        Required::UnlessSet(other) => {
            let other = fields.iter().find(|field| field.is_called(other))?;
            Some(json!({"anyOf": [given_somehow(field), given_somehow(other)]}))
        }
        Required::Never | Required::UnlessEnsure(_) => None,
    }
}

fn required(field: &Field, fields: &[Field], ensure: Ensure) -> Option<Value> {
    match field.required {
        Required::Never | Required::Always | Required::UnlessSet(_) => needed(field, fields),
        Required::UnlessEnsure(words) => {
            // A placeholder may turn out to be one of the words.
            let placeholder = json!({"type": "string", "pattern": PLACEHOLDER});
            let words_or_placeholder: Vec<Value> =
                words.iter().map(|word| json!({"const": word})).chain([placeholder]).collect();
            let is_word = json!({"anyOf": words_or_placeholder});
            let mut other = json!({"properties": {"ensure": is_word}, "required": ["ensure"]});
            if words.contains(&ensure.default()) {
                other = json!({"properties": {"ensure": {"anyOf": [is_word, {"type": "null"}]}}});
            }
            Some(json!({"anyOf": [other, given_somehow(field)]}))
        }
    }
}

/// Pairs of fields that cannot be given together.
fn conflicts(field: &'static Field, fields: &'static [Field]) -> impl Iterator<Item = Value> {
    let others = field
        .conflicts
        .iter()
        .filter_map(|other| fields.iter().find(|field| field.is_called(other)));
    others.map(|other| json!({"not": {"allOf": [given_somehow(field), given_somehow(other)]}}))
}
