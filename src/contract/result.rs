//! What a tool answers with, as data: the fields of `data` in a reply that succeeds.
//!
//! A tool may always answer with more than its row says, since the contract is additive; it never
//! answers with less. Every reply that a test sees is checked against the schema made from these rows.

use serde_json::{Map, Value, json};

/// The shape of a result.
#[derive(Debug, Clone, Copy)]
pub enum Returns {
    Object(&'static [Field]),
    /// An array of objects with these fields.
    Array(&'static [Field]),
}

/// One field of a result.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    pub name: &'static str,
    pub kind: FieldKind,
    pub nullable: bool,
    /// Whether it is there in every result.
    pub always: bool,
}

/// What a field holds.
#[derive(Debug, Clone, Copy)]
pub enum FieldKind {
    Text,
    Integer,
    Number,
    Flag,
    /// The flag that only says that it was done.
    True,
    Choice(&'static [&'static str]),
    Object,
    Objects,
    Texts,
    Any,
}

impl Field {
    const fn new(name: &'static str, kind: FieldKind) -> Self {
        Self { name, kind, nullable: false, always: true }
    }

    #[must_use]
    pub const fn text(name: &'static str) -> Self {
        Self::new(name, FieldKind::Text)
    }

    #[must_use]
    pub const fn integer(name: &'static str) -> Self {
        Self::new(name, FieldKind::Integer)
    }

    #[must_use]
    pub const fn number(name: &'static str) -> Self {
        Self::new(name, FieldKind::Number)
    }

    #[must_use]
    pub const fn flag(name: &'static str) -> Self {
        Self::new(name, FieldKind::Flag)
    }

    #[must_use]
    pub const fn yes(name: &'static str) -> Self {
        Self::new(name, FieldKind::True)
    }

    #[must_use]
    pub const fn choice(name: &'static str, choices: &'static [&'static str]) -> Self {
        Self::new(name, FieldKind::Choice(choices))
    }

    #[must_use]
    pub const fn object(name: &'static str) -> Self {
        Self::new(name, FieldKind::Object)
    }

    #[must_use]
    pub const fn objects(name: &'static str) -> Self {
        Self::new(name, FieldKind::Objects)
    }

    #[must_use]
    pub const fn texts(name: &'static str) -> Self {
        Self::new(name, FieldKind::Texts)
    }

    #[must_use]
    pub const fn any(name: &'static str) -> Self {
        Self::new(name, FieldKind::Any)
    }

    #[must_use]
    pub const fn or_null(mut self) -> Self {
        self.nullable = true;
        self
    }

    /// Not there in every result.
    #[must_use]
    pub const fn maybe(mut self) -> Self {
        self.always = false;
        self
    }
}

/// The session that the call worked on.
pub const SESSION_ID: Field = Field::text("session_id");
/// The address of the tab that the call worked on.
pub const URL: Field = Field::text("url");
/// The tab that the call worked on.
pub const TAB_ID: Field = Field::text("tab_id");
/// The selector as it was given.
pub const SELECTED: Field = Field::text("selector");
pub const OK: Field = Field::yes("ok");
/// What every page of a list ends with.
pub const NEXT_CURSOR: Field = Field::text("next_cursor");
pub const HAS_MORE: Field = Field::flag("has_more");
pub const RETAINED_COUNT: Field = Field::integer("retained_count").or_null();
pub const DROPPED_COUNT: Field = Field::integer("dropped_count");
pub const RETENTION_LOST: Field = Field::flag("retention_lost");

impl Returns {
    #[must_use]
    pub fn fields(&self) -> &'static [Field] {
        match self {
            Returns::Object(fields) | Returns::Array(fields) => fields,
        }
    }

    /// The fields that `data` should hold and does not.
    #[must_use]
    pub fn missing(&self, data: &Value) -> Vec<&'static str> {
        let rows = match (self, data) {
            (Returns::Array(_), Value::Array(rows)) => rows.as_slice(),
            _ => std::slice::from_ref(data),
        };
        let always = self.fields().iter().filter(|field| field.always).map(|field| field.name);
        always.filter(|name| rows.iter().any(|row| row.get(name).is_none())).collect()
    }

    /// The schema of the whole envelope. It says what fields there are and leaves out which of them are
    /// always there: `data` is missing in failures, and every byte stands in every client's context.
    #[must_use]
    pub fn schema(&self) -> Map<String, Value> {
        let data = match self {
            Returns::Object(fields) => object(fields),
            Returns::Array(fields) => json!({"type": "array", "items": object(fields)}),
        };
        let mut out = Map::new();
        out.insert("type".into(), "object".into());
        out.insert("properties".into(), json!({ "data": data }));
        out
    }
}

fn object(fields: &[Field]) -> Value {
    let mut out = json!({"type": "object"});
    if !fields.is_empty() {
        out["properties"] =
            fields.iter().map(|field| (field.name.to_owned(), one(field))).collect::<Map<_, _>>().into();
    }
    out
}

fn one(field: &Field) -> Value {
    let name = match field.kind {
        FieldKind::Text | FieldKind::Choice(_) => "string",
        FieldKind::Integer => "integer",
        FieldKind::Number => "number",
        FieldKind::Flag => "boolean",
        FieldKind::Object => "object",
        FieldKind::Objects | FieldKind::Texts => "array",
        FieldKind::Any => return json!({}),
        FieldKind::True => return json!({"const": true}),
    };
    let mut out = if field.nullable { json!({"type": [name, "null"]}) } else { json!({"type": name}) };
    match field.kind {
        FieldKind::Choice(choices) => out["enum"] = json!(choices),
        FieldKind::Objects => out["items"] = json!({"type": "object"}),
        FieldKind::Texts => out["items"] = json!({"type": "string"}),
        _ => {}
    }
    out
}

/// What a field holds, for people.
#[must_use]
pub fn kind_text(field: &Field) -> String {
    let kind = match field.kind {
        FieldKind::Text => "string".to_owned(),
        FieldKind::Integer => "integer".to_owned(),
        FieldKind::Number => "number".to_owned(),
        FieldKind::Flag => "boolean".to_owned(),
        FieldKind::True => "true".to_owned(),
        FieldKind::Choice(choices) => format!("one of {}", choices.join(", ")),
        FieldKind::Object => "object".to_owned(),
        FieldKind::Objects => "object[]".to_owned(),
        FieldKind::Texts => "string[]".to_owned(),
        FieldKind::Any => "any".to_owned(),
    };
    if field.nullable { format!("{kind} or null") } else { kind }
}
