//! The built-in tools as three tables, one for each toolset: name, risk, description, and the function that does it.
//!
//! An operation is written once, in a file of its own; where toolsets offer it under several names, the file has a
//! function for each shape of arguments and output. To add a tool, write its function and add a line to a table.

mod locate;
mod excerpt;
mod collision;
mod known_notes;
mod note_filter;

mod read;
mod write;
mod edit_note;
mod append;
mod frontmatter;
mod rename;
mod delete;
mod folder;
mod list_files;
mod search_notes;
mod search_text;
mod search_by_tag;
mod links;
mod metadata;
mod random_note;
mod moment;
mod daily_settings;
mod daily_note;
mod editor;
mod workspace;
mod commands;
mod bullets;
mod slug;

use crate::policy::Risk::{Command, Delete, Read, Write};
use crate::policy::Toolset;
use crate::tool::Tool;

pub(crate) use locate::fill_in_times;

/// Every built-in tool, in the order in which they are listed.
pub(crate) fn all() -> Vec<Tool> {
    let toolsets = [(Toolset::Notes, notes()), (Toolset::Chat, chat()), (Toolset::Actions, actions())];
    toolsets.into_iter().flat_map(|(toolset, tools)| tools.into_iter().map(move |tool| tool.toolset(toolset))).collect()
}

/// For a model that works on notes.
fn notes() -> Vec<Tool> {
    vec![
        Tool::new(
            "read_note",
            Read,
            "Get the whole text of one note, frontmatter included. Choose it when you know the path, from the user \
             or from a search; to find notes first, use search_notes.",
            read::note,
        ),
        Tool::new(
            "search_notes",
            Read,
            "Find notes about a topic: ranks all notes by meaning and by words and gives each one's best passage \
             with heading, line and score. Choose it when you do not know which note holds the answer. Filters by \
             tag, date, folder and property. For notes that just bear a tag, use search_by_tag.",
            search_notes::search_notes,
        ),
        Tool::new(
            "write_note",
            Write,
            "Make a new note, or replace the whole text of an existing one. To change a part of a note use \
             edit_note, to add to it append_to_note, for its properties update_frontmatter: those keep everything \
             else as it is.",
            write::note,
        ),
        Tool::new(
            "update_frontmatter",
            Write,
            "Set or remove properties in a note's YAML frontmatter (tags, status, aliases and so on) without \
             touching its text, its other properties or their comments. A list replaces the whole list: to add a \
             tag, give all tags.",
            frontmatter::update_frontmatter,
        ),
        Tool::new(
            "list_backlinks",
            Read,
            "List every link that leads to this note, its own links to itself included, with its words, kind and \
             line, ordered by the title of the note it stands in. Choose it to see what refers to a note.",
            links::list_backlinks,
        ),
        Tool::new(
            "list_forward_links",
            Read,
            "List the links a note has, in its order, with the file each leads to (null when no such file is there \
             yet). Choose it to follow a note's references.",
            links::list_forward_links,
        ),
        Tool::new(
            "create_daily_note",
            Write,
            "Make sure that the daily note of a day (today unless told) is there, with the folder, name and \
             template that the vault has set for daily notes, and add content at its end if any is given. A note \
             that is there already keeps its text.",
            daily_note::create_daily_note,
        ),
        Tool::new(
            "search_by_tag",
            Read,
            "List the notes that bear all (or any) of the given tags, in the order of their paths. Exact and \
             complete: choose it over search_notes when tags are what matters.",
            search_by_tag::search_by_tag,
        ),
        Tool::new(
            "get_note_metadata",
            Read,
            "Get what is known about a note without its text: frontmatter, title, aliases, tags, headings with \
             lines, word count, dates, and how many links go out and come in. Choose it to decide whether, or \
             where, to read or edit.",
            metadata::get_note_metadata,
        ),
        Tool::new(
            "rename_note",
            Write,
            "Rename a note or move it to another folder, and rewrite every link in the vault so that it still \
             leads to the same note. Choose it over writing a copy and deleting the original.",
            rename::note,
        ),
        Tool::new(
            "delete_note",
            Delete,
            "Move a note to the trash, from which it can be taken back, and say which links now lead nowhere. Only \
             when the user asked for it.",
            delete::note,
        ),
        Tool::new(
            "get_random_note",
            Read,
            "Pick a note by chance, of all notes or of those that pass a filter, and show how it begins. For \
             rediscovering and for surprise.",
            random_note::get_random_note,
        ),
        Tool::new(
            "edit_note",
            Write,
            "Replace one passage of a note and keep all else as it is. Give the passage exactly as it stands, with \
             enough around it to be the only one; if it stands nowhere or several times you are told where to \
             look.",
            edit_note::edit_note,
        ),
        Tool::new(
            "append_to_note",
            Write,
            "Add text at the end of a note, or at the end of the section under a heading, which is made if it is \
             missing. Choose it for logs, lists and inboxes: nothing that is there is changed.",
            append::append_to_note,
        ),
    ]
}

/// For a conversation in which a person decides what is shared.
fn chat() -> Vec<Tool> {
    vec![
        Tool::new(
            "vault_search",
            Read,
            "Look for files whose name or text holds the query, names first, then those with the most matches. \
             Gives paths and previews; read whole files with file_read. The user may withhold results.",
            search_text::files,
        ),
        Tool::new(
            "file_read",
            Read,
            "Read whole files by their paths, for example those that vault_search found. The user chooses which of \
             them are shared.",
            read::files,
        ),
    ]
}

/// For plans.
fn actions() -> Vec<Tool> {
    vec![
        Tool::new(
            "vault.ensureFolder",
            Write,
            "Make a folder, and those above it, unless it is there already.",
            folder::ensure_folder,
        ),
        Tool::new(
            "vault.createFile",
            Write,
            "Make a new file with the given text and, if wanted, frontmatter. A path that is taken is an error \
             unless collisionStrategy or ifNotExists says otherwise. The path needs its ending: .md for a note.",
            write::create,
        ),
        Tool::new("vault.readFile", Read, "Read the text of a file, or no more than maxBytes of it.", read::file),
        Tool::new(
            "vault.writeFile",
            Write,
            "Write a file as a whole, or add text at its end on a line of its own. With expectedEtag only if \
             nobody else changed it since.",
            write::file,
        ),
        Tool::new(
            "vault.rename",
            Write,
            "Rename or move a file or a folder with all that is in it, and rewrite every link so that it still \
             leads to the same file.",
            rename::path,
        ),
        Tool::new(
            "vault.delete",
            Delete,
            "Delete a file or a folder with all that is in it; it goes to the trash unless told otherwise.",
            delete::path,
        ),
        Tool::new(
            "vault.searchText",
            Read,
            "Find every place where a text or a regular expression stands in the notes, with line and columns. \
             Exact; for questions by meaning use search_notes.",
            search_text::matches,
        ),
        Tool::new(
            "vault.listFiles",
            Read,
            "List the files and folders in a folder (with recursive, all below it), with size, time and etag. \
             Hidden files are not there.",
            list_files::list_files,
        ),
        Tool::new(
            "editor.getSelection",
            Read,
            "Get the text the user selected, and where it stands.",
            editor::get_selection,
        ),
        Tool::new(
            "editor.replaceSelection",
            Write,
            "Replace the text the user selected; with nothing selected, insert at the cursor.",
            editor::replace_selection,
        ),
        Tool::new(
            "editor.insertAtCursor",
            Write,
            "Insert text into the active file where the cursor is, or behind the selection.",
            editor::insert_at_cursor,
        ),
        Tool::new(
            "editor.getActiveFilePath",
            Read,
            "Get the path of the file the user is in, and whether it is there.",
            editor::get_active_file_path,
        ),
        Tool::new(
            "workspace.openFile",
            Read,
            "Show a file to the user and make it the active one.",
            workspace::open_file,
        ),
        Tool::new(
            "workspace.getContext",
            Read,
            "Get the active file, the open files and a summary of the selection.",
            workspace::get_context,
        ),
        Tool::new(
            "commands.list",
            Read,
            "List the commands that commands.run can run; without a program around the vault there are none.",
            commands::list,
        ),
        Tool::new(
            "commands.run",
            Command,
            "Run a command of the program around the vault by its id. It cannot be previewed or undone; prefer \
             other tools.",
            commands::run,
        ),
        Tool::new(
            "util.parseMarkdownBullets",
            Read,
            "Take the items of Markdown lists (bullets, numbers, tasks) apart, for a loop over them.",
            bullets::parse,
        ),
        Tool::new(
            "util.slugifyTitle",
            Read,
            "Turn a title into a file name in lower case with - between words.",
            slug::slugify,
        ),
    ]
}
