//! Details of results, put together from parts. Pure.

use serde_json::{Map, Value};

/// Returns an object with the members of another one added.
pub(crate) fn with(details: Value, more: Value) -> Value {
    let object = |value| match value {
        Value::Object(object) => object,
        _ => Map::new(),
    };
    let mut details = object(details);
    details.extend(object(more));
    Value::Object(details)
}
