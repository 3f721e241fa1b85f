//! The built-in tools as five tables, one for each toolset: name, risk, description, and the implementing function.
//!
//! To add a tool, write its function in the module of its subject and add a line to a table.

use super::{checks, editor, find, links, notes, text};
use crate::change::SeparableParts;
use crate::policy::Risk::{Command, Delete, Read, Write};
use crate::policy::Toolset;
use crate::tool::Tool;

/// Returns every built-in tool, in the order in which they are listed.
pub fn all() -> Vec<Tool> {
    let toolsets = [
        (Toolset::Notes, notes()),
        (Toolset::Chat, chat()),
        (Toolset::Actions, actions()),
        (Toolset::Bulk, bulk()),
        (Toolset::Library, library()),
    ];
    toolsets.into_iter().flat_map(|(toolset, tools)| tools.into_iter().map(move |tool| tool.toolset(toolset))).collect()
}

/// Returns the tools for a model that works on notes.
fn notes() -> Vec<Tool> {
    vec![
        Tool::new(
            "read_note",
            Read,
            "Get the text of a note, frontmatter included, or a part of it: a section, a block, lines, or its outline; or \
             several notes. Choose it when you know the path, from the user or from a search; to find notes first, use \
             search_notes.",
            notes::read::notes,
        ),
        Tool::new(
            "search_notes",
            Read,
            "Find notes about a topic: ranks all notes by meaning and by words and gives each one's best passage \
             with heading, line and score; weak ones are marked. Choose it when you do not know which note holds \
             the answer. Filters by tag, date, folder and property. For notes with a given tag, use search_by_tag.",
            find::search_notes::search_notes,
        ),
        Tool::new(
            "write_note",
            Write,
            "Create a note, or with mode replace the whole text of an existing one. To change part of a note use edit_note, \
             to add text append_to_note, for properties update_frontmatter: those keep everything else as it is.",
            notes::write::note,
        ),
        Tool::new(
            "update_frontmatter",
            Write,
            "Set or remove properties in a note's YAML frontmatter (tags, status, aliases and so on) without \
             touching its text, its other properties or their comments. A list replaces the whole list: give \
             all of its items. For single tags use edit_tags.",
            notes::frontmatter::update_frontmatter,
        ),
        Tool::new(
            "list_backlinks",
            Read,
            "List every link to this note, including its links to itself, with text, kind and line, ordered by the \
             title of the linking note. Choose it to see what refers to a note.",
            links::backlinks::list_backlinks,
        ),
        Tool::new(
            "list_forward_links",
            Read,
            "List the links of a note in their order, with the file each one leads to (null if it does not exist \
             yet). Choose it to follow a note's references.",
            links::backlinks::list_forward_links,
        ),
        Tool::new(
            "create_daily_note",
            Write,
            "Create the daily note of a day (default: today) with the folder, name and template of the vault's \
             settings, unless it exists, and add content at its end if given. An existing note keeps its text.",
            notes::periodic_note::create_daily_note,
        ),
        Tool::new(
            "search_by_tag",
            Read,
            "List the notes with all (or any) of the given tags, in the order of their paths. Exact and complete: \
             choose it over search_notes when tags are what matters.",
            find::search_by_tag::search_by_tag,
        ),
        Tool::new(
            "get_note_metadata",
            Read,
            "Describe a note without its text: frontmatter, title, aliases, tags, headings with lines, word count, \
             dates, and the number of links from and to it. Choose it to decide whether, or where, to read or edit.",
            find::metadata::get_note_metadata,
        ),
        Tool::new(
            "rename_note",
            Write,
            "Rename a note or move it to another folder, and rewrite every link in the vault so that it still \
             leads to the same note. Choose it over writing a copy and deleting the original.",
            notes::rename::note,
        ),
        Tool::new(
            "delete_note",
            Delete,
            "Move a note to the trash, from which it can be restored, and list the links that now lead nowhere. \
             Only when the user asked for it.",
            notes::delete::note,
        ),
        Tool::new(
            "get_random_note",
            Read,
            "Pick a random note, from all notes or from those that pass a filter, and show how it begins. For \
             rediscovery and surprise.",
            find::random_note::get_random_note,
        ),
        Tool::new(
            "edit_note",
            Write,
            "Replace a passage of a note, or several, and keep everything else. Give each exactly as it is in the note, \
             with enough context to be unique, or with all: true to replace every occurrence; otherwise the error says where to \
             look.",
            notes::edit::edit_note,
        ),
        Tool::new(
            "append_to_note",
            Write,
            "Add text at the end of a note, or of the section under a heading, which is created if missing; or at another \
             place of a note, a section or a block. Choose it for logs, lists and inboxes: existing text is not changed.",
            notes::insert::append_to_note,
        ),
        Tool::new(
            "list_folder",
            Read,
            "List the folders and files in a folder. Choose it to see how the vault is laid out.",
            find::list_files::list_folder,
        ),
        Tool::new(
            "edit_tags",
            Write,
            "Add, remove and rename tags of one note, in its frontmatter and its text; case is ignored. Code and links \
             are not touched.",
            notes::tags::of_note,
        ),
    ]
}

/// Returns the tools for a conversation in which a person decides which notes are shared.
fn chat() -> Vec<Tool> {
    vec![
        Tool::new(
            "vault_search",
            Read,
            "Find notes by their names, words and meaning, the best first. Returns paths and previews; read whole \
             files with file_read. The user may withhold results.",
            find::search_notes::files,
        ),
        Tool::new(
            "file_read",
            Read,
            "Read whole files by their paths, for example those that vault_search found. The user chooses which of \
             them are shared.",
            notes::read::files,
        ),
    ]
}

/// Returns the tools for plans.
fn actions() -> Vec<Tool> {
    vec![
        Tool::new(
            "vault.ensureFolder",
            Write,
            "Create a folder, and those above it, unless it exists.",
            notes::folder::ensure_folder,
        ),
        Tool::new(
            "vault.createFile",
            Write,
            "Create a file with the given text and optional frontmatter. An existing file is left as it is unless \
             collisionStrategy or ifNotExists says otherwise. The path needs its extension: .md for a note.",
            notes::write::create,
        ),
        Tool::new(
            "vault.readFile",
            Read,
            "Read the text of a file, or no more than maxBytes of it.",
            notes::read::file,
        ),
        Tool::new(
            "vault.writeFile",
            Write,
            "Write a whole file, or add lines at its end; with expectedEtag only if the file has not changed since.",
            notes::write::file,
        ),
        Tool::new(
            "vault.rename",
            Write,
            "Rename or move a file, or a folder with its contents, and rewrite every link so that it still leads to \
             the same file.",
            notes::rename::path,
        )
        .may_delete_if(|args| args["collisionStrategy"] == "overwrite"),
        Tool::new(
            "vault.delete",
            Delete,
            "Delete a file, or a folder with its contents; by default it goes to the trash.",
            notes::delete::path,
        ),
        Tool::new(
            "vault.searchText",
            Read,
            "Find every occurrence of a text or regular expression in the notes, with line and columns. Exact; for \
             questions by meaning use search_notes.",
            find::search_text::matches,
        ),
        Tool::new(
            "vault.listFiles",
            Read,
            "List the files and folders in a folder (with recursive, all below it), with size, time and etag. \
             Hidden and excluded files are left out.",
            find::list_files::list_files,
        ),
        Tool::new(
            "editor.getSelection",
            Read,
            "Get the text the user selected and its position.",
            editor::selection::get_selection,
        ),
        Tool::new(
            "editor.replaceSelection",
            Write,
            "Replace the text the user selected; with nothing selected, insert at the cursor.",
            editor::selection::replace_selection,
        ),
        Tool::new(
            "editor.insertAtCursor",
            Write,
            "Insert text into the active file at the cursor, or after the selection.",
            editor::selection::insert_at_cursor,
        ),
        Tool::new(
            "editor.getActiveFilePath",
            Read,
            "Get the path of the active file, and whether it exists.",
            editor::selection::get_active_file_path,
        ),
        Tool::new(
            "workspace.openFile",
            Read,
            "Show a file to the user and make it the active one.",
            editor::workspace::open_file,
        ),
        Tool::new(
            "workspace.getContext",
            Read,
            "Get the active file, the open files and a summary of the selection.",
            editor::workspace::get_context,
        ),
        Tool::new(
            "commands.list",
            Read,
            "List the commands that commands.run can run; without an editor around the vault there are none.",
            editor::commands::list,
        ),
        Tool::new(
            "commands.run",
            Command,
            "Run a command of the editor around the vault by its id. It cannot be previewed or undone; prefer other \
             tools.",
            editor::commands::run,
        ),
        Tool::new(
            "util.parseMarkdownBullets",
            Read,
            "Split Markdown lists (bullets, numbers, tasks) into items, to loop over them.",
            text::bullets::parse,
        ),
        Tool::new(
            "util.slugifyTitle",
            Read,
            "Turn a title into a lower-case file name with - between words.",
            text::slug::slugify,
        ),
    ]
}

/// Returns the tools for work on many notes, which are called in the loops of plans.
fn bulk() -> Vec<Tool> {
    vec![
        Tool::new(
            "edit_list_property",
            Write,
            "Add items to a list in a note's frontmatter, or remove some; the others, their order and comments stay. For \
             tags use edit_tags.",
            notes::frontmatter::edit_list_property,
        ),
        Tool::new(
            "rename_tag",
            Write,
            "Rename a tag in all notes, in frontmatter and text, with the tags nested below it. Code and links are not \
             touched. A note that cannot be changed keeps it and is named.",
            notes::tags::of_vault,
        )
        .separable(SeparableParts::Files),
        Tool::new(
            "insert_in_note",
            Write,
            "Add text at a given place in a note: at its top or end, at the top or end of a section, before a heading, before \
             or after a block. Existing text is not changed.",
            notes::insert::insert_in_note,
        ),
        Tool::new(
            "replace_section",
            Write,
            "Replace the text under a heading, subsections included, and keep the heading and the rest of the note. For a \
             smaller passage use edit_note.",
            notes::replace_section::replace_section,
        ),
        Tool::new(
            "merge_notes",
            Delete,
            "Merge a note into another one: its text is added there, its properties are joined, links to it lead to what is \
             left, and it goes to the trash.",
            notes::merge::merge_notes,
        )
        .separable(SeparableParts::Nothing),
        Tool::new(
            "move_lines",
            Write,
            "Move lines of a note to another note or section: done or open tasks, or lines that match a pattern, each with \
             what is nested below it. Links are kept.",
            notes::move_lines::move_lines,
        )
        .separable(SeparableParts::Nothing),
        Tool::new(
            "list_attachments",
            Read,
            "List images, PDFs and other files that are no notes, with type, size and the links to each; or only those \
             that nothing uses. Also lists the embeds that lead to no file.",
            find::attachments::list_attachments,
        ),
        Tool::new(
            "make_link",
            Read,
            "Write a link to a file as the vault writes links: wikilink or Markdown, with the shortest, a relative or the \
             full path. Choose it in plans that write notes with links.",
            links::make_link::make_link,
        ),
        Tool::new(
            "create_periodic_note",
            Write,
            "Create the note of a week, month, quarter or year (or day) with the folder, name and template that the vault's \
             settings say, unless it exists, and add content at its end if given.",
            notes::periodic_note::create_periodic_note,
        ),
    ]
}

/// Returns the tools for maintaining a vault.
fn library() -> Vec<Tool> {
    vec![
        Tool::new(
            "list_tags",
            Read,
            "List all tags with the number of notes that have each.",
            find::list_tags::list_tags,
        ),
        Tool::new(
            "list_broken_links",
            Read,
            "List the links that lead to no file, heading or block, with where each was probably meant to lead and how sure \
             that is. Repair them with set_link.",
            links::graph::list_broken_links,
        ),
        Tool::new(
            "suggest_links",
            Read,
            "List links that notes lack, the best first: where a note names another one without linking it and, for a single \
             note, which notes it means without naming them. Make them with set_link.",
            links::graph::suggest_links,
        ),
        Tool::new(
            "set_link",
            Write,
            "Make words of a note a link, add a link at the end of a line, or point a link elsewhere; it is written as the \
             vault writes links.",
            links::set_link::set_link,
        ),
        Tool::new(
            "list_orphans",
            Read,
            "List the notes that no link leads to, that link to nothing, or both.",
            links::graph::list_orphans,
        ),
        Tool::new(
            "list_hubs",
            Read,
            "List the notes that are linked with most others, in both directions.",
            links::graph::list_hubs,
        ),
        Tool::new(
            "list_neighbors",
            Read,
            "List the files that are a few links away from a note, in both directions, the nearest first.",
            links::graph::list_neighbors,
        ),
        Tool::new(
            "find_similar_notes",
            Read,
            "List the notes that are most like a note in meaning and words, linked or not.",
            find::similar_notes::find_similar_notes,
        ),
        Tool::new(
            "find_duplicates",
            Read,
            "List pairs of notes that say the same, word for word, in most of their text.",
            find::similar_notes::find_duplicates,
        ),
        Tool::new(
            "query_notes",
            Read,
            "List the notes that fit all of several conditions on properties, tags, folder and age, with the properties asked \
             for. Exact and complete.",
            find::query_notes::query_notes,
        ),
        Tool::new(
            "list_history",
            Read,
            "List what was changed through these tools, the newest first: in the vault, or in one note.",
            notes::history::list_history,
        ),
        Tool::new(
            "restore_note",
            Write,
            "Make one note what it was before a change; all else that the change did stays. To revert a change as a whole, use \
             undo.",
            notes::history::restore_note,
        ),
        Tool::new(
            "move_file",
            Write,
            "Move or rename an attachment or a folder, and rewrite every link so that it still leads there.",
            notes::rename::move_file,
        ),
        Tool::new(
            "lint_vault",
            Read,
            "Check the vault: broken links, headings and blocks, frontmatter that cannot be read, links by a name that several \
             files have, tags that differ in case, attachments that nothing uses.",
            checks::lint::lint_vault,
        ),
        Tool::new(
            "list_templates",
            Read,
            "List the templates of the vault: the notes in the folders of templates that its settings name.",
            find::list_templates::list_templates,
        ),
        Tool::new(
            "create_from_template",
            Write,
            "Create a note from a template, with date, time and title filled in.",
            notes::write::create_from_template,
        ),
    ]
}
