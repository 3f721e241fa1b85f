//! Conditions that must hold before ranking: tags, paths, dates, properties.

use jiff::Timestamp;

use crate::error::{Error, ErrorKind, Result};
use crate::search::query::dates::DateRange;
use crate::search::query::path_pattern::PathPattern;
use crate::search::query::property_condition::PropertyTest;

/// Conditions on notes. Tags, dates and properties must all hold, and one of the paths.
///
/// ```
/// use vault_index::{Filter, Query};
///
/// let filter = Filter::default().tag("#garden")?.path("Notes/**")?.property("rating>=4".parse()?);
/// let query = Query::literal("pruning roses").filter(filter);
/// assert_eq!(query.filter.tags, ["garden"]);
/// # Ok::<(), vault_index::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Filter {
    /// Tags without `#`; `inbox` also matches `inbox/x`. All must match.
    pub tags: Vec<String>,
    /// Globs on vault-relative paths, or names of folders and notes. One must match.
    pub paths: Vec<String>,
    /// Modified at this moment or later.
    pub after: Option<Timestamp>,
    /// Modified before this moment.
    pub before: Option<Timestamp>,
    /// Conditions on frontmatter properties. All must hold.
    pub properties: Vec<PropertyTest>,
    /// Ranges of days that must all contain the note's date: its property `date`, else the date in its name, else its
    /// property `created`.
    pub dates: Vec<DateRange>,
}

impl Filter {
    /// Whether the filter accepts every note.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Adds a tag, with or without its `#`.
    ///
    /// # Errors
    /// [`ErrorKind::Query`] when the tag is empty.
    pub fn tag(mut self, tag: &str) -> Result<Self> {
        self.add_tag(tag)?;
        Ok(self)
    }

    /// Adds a tag like [`Filter::tag`], in place.
    ///
    /// # Errors
    /// The errors of [`Filter::tag`].
    pub fn add_tag(&mut self, tag: &str) -> Result<()> {
        self.tags.push(checked_tag(tag)?);
        Ok(())
    }

    /// Adds a path: a glob, or the name of a folder or note.
    ///
    /// # Errors
    /// [`ErrorKind::Query`] when the path is empty, or the glob is invalid.
    pub fn path(mut self, glob: &str) -> Result<Self> {
        self.add_path(glob)?;
        Ok(self)
    }

    /// Adds a path like [`Filter::path`], in place.
    ///
    /// # Errors
    /// The errors of [`Filter::path`].
    pub fn add_path(&mut self, glob: &str) -> Result<()> {
        self.paths.push(checked_path(glob)?);
        Ok(())
    }

    /// Adds a condition on a property.
    #[must_use]
    pub fn property(mut self, test: PropertyTest) -> Self {
        self.properties.push(test);
        self
    }

    /// Adds a range of days that must contain the note's date.
    #[must_use]
    pub fn date(mut self, range: DateRange) -> Self {
        self.dates.push(range);
        self
    }

    /// Sets the moment at or after which notes must have been modified.
    #[must_use]
    pub fn after(self, moment: Timestamp) -> Self {
        Self { after: Some(moment), ..self }
    }

    /// Sets the moment before which notes must last have been modified.
    #[must_use]
    pub fn before(self, moment: Timestamp) -> Self {
        Self { before: Some(moment), ..self }
    }
}

/// Checks that a path glob is valid.
///
/// # Errors
/// [`ErrorKind::Query`] when it is empty, or the glob is invalid.
pub(crate) fn checked_path(glob: &str) -> Result<String> {
    PathPattern::new(glob)?;
    Ok(glob.to_string())
}

/// Returns a tag without its `#`.
///
/// # Errors
/// [`ErrorKind::Query`] when the rest is empty.
pub(crate) fn checked_tag(text: &str) -> Result<String> {
    let tag = text.trim().trim_start_matches('#').trim_end_matches('/');
    if tag.is_empty() {
        return Err(Error::new(ErrorKind::Query, format!("`{text}` is not a tag"))
            .with_remedy("write a tag's name, such as garden or garden/roses; `vault-index tags` lists them"));
    }
    Ok(tag.to_string())
}
