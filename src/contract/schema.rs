//! JSON Schemas in the dialect every client accepts: flat objects, no `$ref`, no unions at the root.

use serde_json::{Map, Value, json};

use super::facts::{INTEGER_MAX, Parameter, SLUG_PATTERN, Scalar, Shape, TEXT_LENGTH_MAX, ToolFacts};

/// The input schema of a tool.
#[must_use]
pub fn input(facts: &ToolFacts) -> Map<String, Value> {
    object(facts.parameters, false)
}

fn object(parameters: &[Parameter], open: bool) -> Map<String, Value> {
    let mut properties = Map::new();
    for parameter in parameters {
        properties.insert(parameter.name.into(), Value::Object(property(parameter)));
    }
    let required: Vec<&str> = parameters.iter().filter(|p| p.required).map(|p| p.name).collect();
    let mut out = Map::new();
    out.insert("type".into(), "object".into());
    out.insert("properties".into(), Value::Object(properties));
    if !required.is_empty() {
        out.insert("required".into(), required.into());
    }
    if !open {
        out.insert("additionalProperties".into(), false.into());
    }
    out
}

/// The schema of one argument.
#[must_use]
pub fn property(parameter: &Parameter) -> Map<String, Value> {
    let mut out = shape(&parameter.shape);
    if let Some(default) = parameter.default {
        out.insert("default".into(), scalar(default));
    }
    if !parameter.text.is_empty() {
        out.insert("description".into(), parameter.text.into());
    }
    out
}

/// A default as JSON.
#[must_use]
pub fn scalar(scalar: Scalar) -> Value {
    match scalar {
        Scalar::Text(text) => text.into(),
        Scalar::Integer(number) => number.into(),
        Scalar::Flag(flag) => flag.into(),
    }
}

fn shape(shape: &Shape) -> Map<String, Value> {
    let value = match shape {
        Shape::Text { length_min, length_max } => text(*length_min, *length_max),
        // So many tools have one that its bounds are not worth their bytes; they are enforced all the same.
        Shape::Name => json!({"type": "string"}),
        Shape::Slug => json!({"type": "string", "pattern": SLUG_PATTERN}),
        Shape::Integer { min, max: INTEGER_MAX } => json!({"type": "integer", "minimum": min}),
        Shape::Integer { min, max } => json!({"type": "integer", "minimum": min, "maximum": max}),
        Shape::Number { min: Some(min) } if min.fract() == 0.0 => json!({"type": "number", "minimum": *min as i64}),
        Shape::Number { min: Some(min) } => json!({"type": "number", "minimum": min}),
        Shape::Number { min: None } => json!({"type": "number"}),
        Shape::Flag => json!({"type": "boolean"}),
        Shape::Choice(choices) => json!({"type": "string", "enum": choices}),
        Shape::Choices(choices) => json!({"type": "array", "items": {"type": "string", "enum": choices}}),
        Shape::Texts { items_min, .. } => {
            let mut array = json!({"type": "array", "items": {"type": "string"}});
            if *items_min > 0 {
                array["items"]["minLength"] = 1.into();
                array["minItems"] = (*items_min).into();
            }
            array
        }
        Shape::Record { fields, open } => Value::Object(object(fields, *open)),
        Shape::Likewise { of, .. } => json!({"type": "object", "description": format!("as for {of}")}),
        Shape::Handle => json!({"type": "string"}),
        Shape::Records { items_min, items_max, fields, open } => {
            let items = object(fields, *open);
            json!({"type": "array", "items": items, "minItems": items_min, "maxItems": items_max})
        }
        Shape::Any => json!({}),
        Shape::FieldValue => json!({"type": ["string", "boolean", "array"], "items": {"type": "string"}}),
        Shape::TextOrRecord { fields } => json!({"anyOf": [{"type": "string", "minLength": 1}, object(fields, false)]}),
        Shape::FlagOrNumber => json!({"type": ["boolean", "number"]}),
        Shape::Integers { items } => {
            json!({"type": "array", "items": {"type": "integer", "minimum": 1}, "minItems": items, "maxItems": items})
        }
        Shape::FlagOrChoice(choices) => json!({"anyOf": [{"type": "boolean"}, {"type": "string", "enum": choices}]}),
    };
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

fn text(length_min: usize, length_max: usize) -> Value {
    let mut out = json!({"type": "string"});
    if length_min > 0 {
        out["minLength"] = length_min.into();
    }
    // The general ceiling is not worth its bytes in every tool; it is enforced all the same.
    if length_max < TEXT_LENGTH_MAX && length_max > 256 {
        out["maxLength"] = length_max.into();
    }
    out
}
