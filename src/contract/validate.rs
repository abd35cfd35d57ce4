//! Raw arguments in, checked ones out, or every problem at once.

use serde_json::{Map, Value};

use super::facts::{NAME_LENGTH_MAX, Parameter, SLUG_PATTERN, Shape};
use super::schema::scalar;
use crate::fault::{Code, Fault, Problem};

/// The longest field name shown back, in characters.
const FIELD_LENGTH_MAX: usize = 64;

/// Arguments that passed the tool's table, defaults filled in. The getters take the names of that
/// table; asking for a name that is not in it, or by another type, gives the empty value.
#[derive(Debug, Clone, Default)]
pub struct Arguments(Map<String, Value>);

impl Arguments {
    /// The text of an argument, empty when it was not given.
    #[must_use]
    pub fn text(&self, name: &str) -> &str {
        self.optional_text(name).unwrap_or_default()
    }

    #[must_use]
    pub fn optional_text(&self, name: &str) -> Option<&str> {
        self.0.get(name).and_then(Value::as_str)
    }

    #[must_use]
    pub fn integer(&self, name: &str) -> Option<u64> {
        self.0.get(name).and_then(as_integer)
    }

    #[must_use]
    pub fn number(&self, name: &str) -> Option<f64> {
        self.0.get(name).and_then(Value::as_f64)
    }

    #[must_use]
    pub fn flag(&self, name: &str) -> Option<bool> {
        self.0.get(name).and_then(Value::as_bool)
    }

    #[must_use]
    pub fn texts(&self, name: &str) -> Vec<String> {
        let items = self.0.get(name).and_then(Value::as_array);
        items.into_iter().flatten().filter_map(|v| v.as_str().map(str::to_owned)).collect()
    }

    /// The members of an open record, each a text; empty when it was left out.
    ///
    /// # Errors
    /// `LIMIT_EXCEEDED` for more than `members_max`, `INVALID_ARGUMENTS` with every member that is none.
    pub fn text_members(&self, name: &str, members_max: usize) -> Result<Map<String, Value>, Fault> {
        let members = self.0.get(name).and_then(Value::as_object).cloned().unwrap_or_default();
        if members.len() > members_max {
            return Err(Fault::new(Code::LimitExceeded).with("limit", members_max).with("name", name));
        }
        let wrong = members.iter().filter(|(_, value)| !value.is_string());
        let problems: Vec<Problem> = wrong.map(|(key, _)| Problem::new(join(name, key), "must be a string")).collect();
        if problems.is_empty() { Ok(members) } else { Err(Fault::invalid(&problems)) }
    }

    #[must_use]
    pub fn value(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    #[must_use]
    pub fn as_map(&self) -> &Map<String, Value> {
        &self.0
    }
}

/// Checks `raw` against `parameters`. An explicit `null` counts as not given.
///
/// # Errors
/// Every problem found; they hold names and rules, never values.
pub fn arguments(parameters: &[Parameter], raw: Map<String, Value>) -> Result<Arguments, Fault> {
    let mut problems = Vec::new();
    let mut checked = record(parameters, raw, "", false, &mut problems);
    for parameter in parameters {
        if let Some(default) = parameter.default
            && !checked.contains_key(parameter.name)
        {
            checked.insert(parameter.name.into(), scalar(default));
        }
    }
    if problems.is_empty() {
        return Ok(Arguments(checked));
    }
    Err(refusal(parameters, &checked, &problems))
}

/// All problems under one name; a lone one that the contract has a name for goes by that.
fn refusal(parameters: &[Parameter], given: &Map<String, Value>, problems: &[Problem]) -> Fault {
    let [problem] = problems else { return Fault::invalid(problems) };
    let parameter = parameters.iter().find(|parameter| parameter.name == problem.field);
    let text = given.get(&problem.field).and_then(Value::as_str);
    match (parameter.map(|parameter| (&parameter.shape, parameter.name)), text) {
        (Some((Shape::Slug, _)), Some(_)) => Fault::new(Code::InvalidSlug).with("pattern", SLUG_PATTERN),
        (Some((Shape::Choice(supported), "channel")), Some(channel)) => {
            Fault::new(Code::UnknownChannel).with("channel", channel).with("supported", supported.to_vec())
        }
        _ => Fault::invalid(problems),
    }
}

fn record(
    parameters: &[Parameter],
    raw: Map<String, Value>,
    path: &str,
    open: bool,
    problems: &mut Vec<Problem>,
) -> Map<String, Value> {
    let mut out = Map::new();
    for (name, value) in raw {
        let field = join(path, &name);
        match parameters.iter().find(|p| p.name == name) {
            Some(_) if value.is_null() => {}
            Some(parameter) => {
                check(&parameter.shape, &value, &field, problems);
                out.insert(name, value);
            }
            None if open => {
                out.insert(name, value);
            }
            None => {
                let accepted: Vec<&str> = parameters.iter().map(|p| p.name).collect();
                problems.push(Problem::new(field, format!("unknown argument; accepted are {}", listed(&accepted))));
            }
        }
    }
    for parameter in parameters.iter().filter(|p| p.required) {
        if !out.contains_key(parameter.name) && problems.iter().all(|p| p.field != join(path, parameter.name)) {
            problems.push(Problem::new(join(path, parameter.name), "is required"));
        }
    }
    out
}

const HANDLE: Shape = Shape::Text { length_min: 1, length_max: NAME_LENGTH_MAX };

fn check(shape: &Shape, value: &Value, field: &str, problems: &mut Vec<Problem>) {
    match shape {
        Shape::Record { fields, open } => nested(fields, *open, value, field, problems),
        Shape::Likewise { fields, .. } => nested(fields, false, value, field, problems),
        Shape::Handle => check(&HANDLE, value, field, problems),
        Shape::Records { items_min, items_max, fields, open } => match value.as_array() {
            Some(items) if (*items_min..=*items_max).contains(&items.len()) => {
                for (position, item) in items.iter().enumerate() {
                    nested(fields, *open, item, &format!("{field}.{position}"), problems);
                }
            }
            _ => problems.push(Problem::new(field, format!("must be an array of {items_min} to {items_max} objects"))),
        },
        Shape::TextOrRecord { fields } if !value.is_string() => nested(fields, false, value, field, problems),
        shape => {
            let wrong = scalar_problem(shape, value).or_else(|| array_problem(shape, value));
            problems.extend(wrong.map(|wrong| Problem::new(field, wrong)));
        }
    }
}

fn text_problem(value: &Value, length_min: usize, length_max: usize) -> Option<String> {
    let Some(text) = value.as_str() else { return Some("must be a string".into()) };
    let length = text.chars().take(length_max + 1).count();
    let long = || (length > length_max).then(|| format!("must be at most {length_max} characters long"));
    (length < length_min).then(|| "must not be empty".into()).or_else(long)
}

/// What is wrong with a value that should be one thing.
fn scalar_problem(shape: &Shape, value: &Value) -> Option<String> {
    match shape {
        Shape::Text { length_min, length_max } => text_problem(value, *length_min, *length_max),
        Shape::Name => text_problem(value, 1, NAME_LENGTH_MAX),
        Shape::TextOrRecord { .. } => (value.as_str() == Some("")).then(|| "must not be empty".into()),
        Shape::Slug => (!value.as_str().is_some_and(is_slug)).then(|| format!("must match {SLUG_PATTERN}")),
        Shape::Integer { min, max } => {
            let fits = as_integer(value).is_some_and(|n| (*min..=*max).contains(&n));
            (!fits).then(|| format!("must be a whole number from {min} to {max}"))
        }
        Shape::Number { min } => match value.as_f64() {
            None => Some("must be a number".into()),
            Some(number) => min.filter(|min| number < *min).map(|min| format!("must be at least {min}")),
        },
        Shape::FieldValue => {
            let texts = value.as_array().is_some_and(|items| items.iter().all(Value::is_string));
            let fits = texts || value.is_string() || value.is_boolean();
            (!fits).then(|| "must be a string, true, false or an array of strings".into())
        }
        Shape::Flag => (!value.is_boolean()).then(|| "must be true or false".into()),
        Shape::FlagOrNumber => {
            (!value.is_boolean() && !value.is_number()).then(|| "must be true, false or a number".into())
        }
        Shape::Choice(choices) => {
            let fits = value.as_str().is_some_and(|text| choices.contains(&text));
            (!fits).then(|| format!("must be one of {}", listed(choices)))
        }
        Shape::FlagOrChoice(choices) => {
            let fits = value.is_boolean() || value.as_str().is_some_and(|text| choices.contains(&text));
            (!fits).then(|| format!("must be true, false or one of {}", listed(choices)))
        }
        _ => None,
    }
}

/// What is wrong with a value that should be an array.
fn array_problem(shape: &Shape, value: &Value) -> Option<String> {
    let items = value.as_array();
    match shape {
        Shape::Integers { items: count } => {
            let positive = |item: &Value| as_integer(item).is_some_and(|n| n > 0);
            let fits = items.is_some_and(|items| items.len() == *count && items.iter().all(positive));
            (!fits).then(|| format!("must be an array of {count} whole numbers of at least 1"))
        }
        Shape::Choices(choices) => {
            let chosen = |item: &Value| item.as_str().is_some_and(|text| choices.contains(&text));
            let fits = items.is_some_and(|items| items.iter().all(chosen));
            (!fits).then(|| format!("must be an array of {}", listed(choices)))
        }
        Shape::Texts { items_min, items_max } => {
            let filled = |item: &Value| item.as_str().is_some_and(|text| *items_min == 0 || !text.is_empty());
            let counted = |items: &&Vec<Value>| (*items_min..=*items_max).contains(&items.len());
            let fits = items.filter(counted).is_some_and(|items| items.iter().all(filled));
            (!fits).then(|| format!("must be an array of {items_min} to {items_max} strings"))
        }
        _ => None,
    }
}

fn nested(fields: &[Parameter], open: bool, value: &Value, field: &str, problems: &mut Vec<Problem>) {
    match value.as_object() {
        Some(map) => {
            record(fields, map.clone(), field, open, problems);
        }
        None => problems.push(Problem::new(field, "must be an object")),
    }
}

/// Clients that know only floating numbers write `3.0` for 3.
fn as_integer(value: &Value) -> Option<u64> {
    let whole = |number: f64| (number.fract() == 0.0 && (0.0..=9.0e15).contains(&number)).then_some(number as u64);
    value.as_u64().or_else(|| value.as_f64().and_then(whole))
}

/// Whether `text` is a name by the contract's slug grammar.
#[must_use]
pub fn is_slug(text: &str) -> bool {
    let tail = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    (2..=32).contains(&text.len()) && text.starts_with(|c: char| c.is_ascii_lowercase()) && text.chars().all(tail)
}

/// The name of what lies at `path`, as it is shown back: callers may give a name of any length.
pub(crate) fn join(path: &str, name: &str) -> String {
    let name: String = name.chars().take(FIELD_LENGTH_MAX).collect();
    if path.is_empty() { name } else { format!("{path}.{name}") }
}

fn listed(names: &[&str]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
