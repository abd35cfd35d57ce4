//! Whether a value is what a schema says, in the dialect that tools publish for their results. A word
//! of a schema that this does not know fails, so that nothing is published that nobody checks.

use serde_json::Value;

/// Everything that is wrong with `value`, each with the place where.
#[must_use]
pub fn problems(schema: &Value, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    check(schema, value, "", &mut found);
    found
}

fn check(schema: &Value, value: &Value, at: &str, found: &mut Vec<String>) {
    for (word, rule) in schema.as_object().expect("a schema is an object") {
        let holds = match word.as_str() {
            "type" => is_of(rule, value),
            "const" => value == rule,
            "enum" => value.is_null() || rule.as_array().is_some_and(|choices| choices.contains(value)),
            "required" => {
                let names = rule.as_array().into_iter().flatten().filter_map(Value::as_str);
                let missing: Vec<&str> = names.filter(|name| value.get(name).is_none()).collect();
                found.extend(missing.iter().map(|name| format!("{at}/{name} is missing")));
                true
            }
            "properties" => {
                for (name, schema) in rule.as_object().expect("properties are an object") {
                    if let Some(member) = value.get(name) {
                        check(schema, member, &format!("{at}/{name}"), found);
                    }
                }
                true
            }
            "items" => {
                for (position, item) in value.as_array().into_iter().flatten().enumerate() {
                    check(rule, item, &format!("{at}/{position}"), found);
                }
                true
            }
            _ => false,
        };
        if !holds {
            let shown: String = value.to_string().chars().take(200).collect();
            found.push(format!("{at}: {word} {rule} does not hold of {shown}"));
        }
    }
}

fn is_of(rule: &Value, value: &Value) -> bool {
    let one = |name: &str| match name {
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "boolean" => value.is_boolean(),
        "object" => value.is_object(),
        "array" => value.is_array(),
        "null" => value.is_null(),
        _ => false,
    };
    match rule {
        Value::String(name) => one(name),
        Value::Array(names) => names.iter().filter_map(Value::as_str).any(one),
        _ => false,
    }
}
