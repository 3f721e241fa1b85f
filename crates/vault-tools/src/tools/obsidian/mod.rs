//! Reads Obsidian's configuration, so that tools behave like Obsidian: settings, templates, periodic notes, date
//! formats. It defines no tool and writes nothing.

mod moment;
pub(super) mod settings;
pub(super) mod templates;
pub(super) mod periodic_paths;
