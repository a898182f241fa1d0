//! From merged TOML to typed values, with faults that a program can look at.
//!
//! serde reports an unknown field together with the known ones, but the stock
//! formats flatten that into a sentence. This small deserializer keeps it, and the
//! path to the culprit, from which the file and line are found.

use std::fmt;

use serde::de::{
    self, Deserialize, DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, SeqAccess,
    Visitor, value::StrDeserializer,
};
use serde::forward_to_deserialize_any;
use toml::Value;

/// What is wrong with a value.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Problem {
    /// A key that is not known, and those that are in its place.
    UnknownKey { key: String, known: &'static [&'static str] },
    /// Anything else, in serde's words.
    Other(String),
}

/// A problem and where it is, innermost key first.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) problem: Problem,
    reversed: Vec<String>,
}

impl Fault {
    fn new(problem: Problem) -> Self {
        Self { problem, reversed: Vec::new() }
    }

    fn below(mut self, key: impl Into<String>) -> Self {
        self.reversed.push(key.into());
        self
    }

    /// Returns the keys from the root to the culprit.
    pub(crate) fn path(&self) -> Vec<String> {
        let mut path: Vec<_> = self.reversed.iter().rev().cloned().collect();
        if let Problem::UnknownKey { key, .. } = &self.problem {
            path.push(key.clone());
        }
        path
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.problem {
            Problem::UnknownKey { key, .. } => write!(f, "unknown key `{key}`"),
            Problem::Other(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for Fault {}

impl de::Error for Fault {
    fn custom<T: fmt::Display>(text: T) -> Self {
        Self::new(Problem::Other(text.to_string()))
    }

    fn unknown_field(key: &str, known: &'static [&'static str]) -> Self {
        Self::new(Problem::UnknownKey { key: key.to_owned(), known })
    }
}

/// Reads a typed value.
pub(crate) fn decode<'de, T: Deserialize<'de>>(value: &'de Value) -> Result<T, Fault> {
    T::deserialize(Node(value))
}

struct Node<'de>(&'de Value);

impl<'de> Deserializer<'de> for Node<'de> {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.0 {
            Value::String(text) => visitor.visit_borrowed_str(text),
            Value::Integer(number) => visitor.visit_i64(*number),
            Value::Float(number) => visitor.visit_f64(*number),
            Value::Boolean(truth) => visitor.visit_bool(*truth),
            Value::Datetime(time) => visitor.visit_string(time.to_string()),
            Value::Array(items) => visitor.visit_seq(Items { rest: items.iter(), index: 0 }),
            Value::Table(table) => visitor.visit_map(Entries { rest: table.iter(), next: None }),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        match self.0 {
            Value::String(text) => {
                visitor.visit_enum(IntoDeserializer::<Fault>::into_deserializer(text.as_str()))
            }
            other => Err(de::Error::custom(format_args!(
                "a {} cannot be a {name}: expected a name in quotes",
                other.type_str()
            ))),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

struct Items<'de> {
    rest: std::slice::Iter<'de, Value>,
    index: usize,
}

impl<'de> SeqAccess<'de> for Items<'de> {
    type Error = Fault;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Fault> {
        let Some(item) = self.rest.next() else { return Ok(None) };
        let index = self.index;
        self.index += 1;
        seed.deserialize(Node(item)).map(Some).map_err(|fault| fault.below(index.to_string()))
    }
}

struct Entries<'de> {
    rest: toml::map::Iter<'de, String, Value>,
    next: Option<(&'de String, &'de Value)>,
}

impl<'de> MapAccess<'de> for Entries<'de> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Fault> {
        self.next = self.rest.next();
        let Some((key, _)) = self.next else { return Ok(None) };
        seed.deserialize(StrDeserializer::new(key)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Fault> {
        let Some((key, value)) = self.next.take() else {
            return Err(de::Error::custom("a value was asked for before its key"));
        };
        seed.deserialize(Node(value)).map_err(|fault| fault.below(key))
    }
}
