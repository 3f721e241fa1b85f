//! The filter argument of tools, and its conversion to the filter of the index.

use jiff::Zoned;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use vault_index::{DateEdge, Filter, PropertyTest};

use crate::error::{Error, ErrorKind, Result};

/// A filter for notes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct NoteFilter {
    /// Tags that a note must all have, with or without `#`; `project` includes `project/garden`.
    pub tags: Vec<String>,
    /// Only notes modified then or later: ISO 8601, such as 2026-01-31 or 2026-01-31T09:30:00Z.
    pub date_after: Option<String>,
    /// Only notes modified then or earlier; a date includes the whole day.
    pub date_before: Option<String>,
    /// Only notes in this folder, or whose path matches this glob: `Projects`, `Daily/2026-*.md`.
    pub path: Option<String>,
    /// A condition on a frontmatter property: `status`, `status=done`, `rating>=4`, `due<2026-03`.
    pub property: Option<String>,
}

/// Returns the schema of the same filter with a shorter description, for a model that reads the meaning of its fields
/// at `search_notes`.
pub(in crate::tools) fn filter_of_search(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = NoteFilter::json_schema(generator);
    let fields = schema.get_mut("properties").and_then(Value::as_object_mut);
    for field in fields.into_iter().flat_map(|fields| fields.values_mut()) {
        field["description"] = "As in search_notes.".into();
    }
    schema
}

impl NoteFilter {
    /// Returns whether every note passes.
    pub(in crate::tools) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Converts it to the filter of the index. Both dates are inclusive.
    ///
    /// # Errors
    /// A date, glob, tag or property with invalid syntax, with its field.
    pub(in crate::tools) fn for_index(&self, now: &Zoned) -> Result<Filter> {
        let mut filter = Filter::default();
        for (number, tag) in self.tags.iter().enumerate() {
            filter.add_tag(tag).map_err(|error| wrong(&format!("/filter/tags/{number}"), &error))?;
        }
        if let Some(path) = &self.path {
            filter.add_path(path).map_err(|error| wrong("/filter/path", &error))?;
        }
        if let Some(property) = &self.property {
            let test = property.parse::<PropertyTest>().map_err(|error| wrong("/filter/property", &error))?;
            filter.properties.push(test);
        }
        if let Some(date) = &self.date_after {
            let start = DateEdge::Start.parse(date, now).map_err(|error| wrong("/filter/date_after", &error))?;
            filter.after = Some(start);
        }
        if let Some(date) = &self.date_before {
            let edge = |edge: DateEdge| edge.parse(date, now).map_err(|error| wrong("/filter/date_before", &error));
            let (start, end) = (edge(DateEdge::Start)?, edge(DateEdge::End)?);
            // The index takes the first moment outside the range; for a time that is the next nanosecond.
            let outside =
                if start == end { end.checked_add(jiff::Span::new().nanoseconds(1)).unwrap_or(end) } else { end };
            filter.before = Some(outside);
        }
        Ok(filter)
    }
}

fn wrong(pointer: &str, error: &vault_index::Error) -> Error {
    Error::new(ErrorKind::InvalidArguments, error.to_string()).at(pointer)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Zoned {
        "2026-03-18T12:00:00+01:00[Europe/Zurich]".parse().unwrap()
    }

    #[test]
    fn both_dates_are_inclusive() {
        let filter = NoteFilter {
            date_after: Some("2026-03-01".into()),
            date_before: Some("2026-03-10".into()),
            ..NoteFilter::default()
        };
        let filter = filter.for_index(&now()).unwrap();
        assert_eq!(filter.after.unwrap().to_string(), "2026-02-28T23:00:00Z");
        assert_eq!(filter.before.unwrap().to_string(), "2026-03-10T23:00:00Z");
        let moment = NoteFilter { date_before: Some("2026-03-10T10:00:00Z".into()), ..NoteFilter::default() };
        assert_eq!(moment.for_index(&now()).unwrap().before.unwrap().to_string(), "2026-03-10T10:00:00.000000001Z");
    }

    #[test]
    fn errors_name_their_field() {
        fn check(filter: &NoteFilter, pointer: &str) {
            assert_eq!(filter.for_index(&now()).unwrap_err().path(), Some(pointer));
        }
        check(&NoteFilter { date_after: Some("soon".into()), ..NoteFilter::default() }, "/filter/date_after");
        check(&NoteFilter { tags: vec!["a".into(), "#".into()], ..NoteFilter::default() }, "/filter/tags/1");
        check(&NoteFilter { path: Some("a[".into()), ..NoteFilter::default() }, "/filter/path");
        check(&NoteFilter { property: Some("=x".into()), ..NoteFilter::default() }, "/filter/property");
    }
}
