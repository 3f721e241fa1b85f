//! The commands that people type to change notes, and their options.

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(super) enum NoteCommand {
    /// Rename a note, and update every link to it
    #[command(after_long_help = "Without a folder in NEW, the note stays in its folder; with one, it also moves. \
You can leave out .md, here and in the other commands.\n\n\
Examples:\n  vault-tools rename Compost 'Hot compost'\n  vault-tools rename Compost Garden/Soil/Compost --dry-run\n  \
vault-tools undo")]
    Rename(RenameArgs),
    /// Move notes to a folder, and update every link to them
    #[command(after_long_help = "A missing folder is created; / is the vault's root.\n\n\
Examples:\n  vault-tools move Compost Mulch Garden/Soil\n  vault-tools move 'Inbox/Ideas for spring' /")]
    Move(MoveArgs),
    /// Move notes to the trash
    #[command(
        after_long_help = "Asks first. --yes skips the confirmation, if the setting allow_delete permits that.\n\n\
Examples:\n  vault-tools delete 'Old plan'\n  vault-tools delete Draft Scratch --dry-run"
    )]
    Delete(DeleteArgs),
    /// Merge notes into another one, and update every link to them
    #[command(
        after_long_help = "The text is appended, properties are combined, and the merged notes go to the trash. \
Asks first, as delete does.\n\nExample:\n  vault-tools merge 'Compost heap' Composting Compost"
    )]
    Merge(MergeArgs),
    /// Add, remove and rename tags
    #[command(subcommand)]
    Tag(TagCommand),
    /// Set and remove properties (frontmatter)
    #[command(subcommand)]
    Prop(PropCommand),
    /// Create a note
    #[command(after_long_help = "Examples:\n  vault-tools new Garden/Mulch '# Mulch'\n  \
vault-tools new 'People/Ada Lovelace' --template Person\n  pbpaste | vault-tools new Inbox/Clip -")]
    New(NewArgs),
    /// Append text to a note or section
    #[command(after_long_help = "Examples:\n  vault-tools append Log '- pruned the roses'\n  \
vault-tools append Log --heading Done '- weeded'\n  date | vault-tools append Log - --yes")]
    Append(AppendArgs),
    /// Print the path of a daily note, and create the note if it is missing
    #[command(after_long_help = "Folder, name and template come from Obsidian's settings.\n\n\
Examples:\n  vault-tools daily\n  vault-tools daily yesterday\n  $EDITOR \"$(vault-tools daily --yes)\"")]
    Daily(DailyArgs),
}

#[derive(Debug, Subcommand)]
pub(super) enum TagCommand {
    /// Add tags to a note
    #[command(after_long_help = "Example:\n  vault-tools tag add Compost garden soil/living")]
    Add(TagsArgs),
    /// Remove tags from a note
    #[command(after_long_help = "Tags nested below them are kept.\n\nExample:\n  vault-tools tag remove Compost draft")]
    Remove(TagsArgs),
    /// Rename a tag in all notes, with the tags nested below it
    #[command(after_long_help = "Example:\n  vault-tools tag rename garden allotment")]
    Rename(RenameTagArgs),
}

#[derive(Debug, Subcommand)]
pub(super) enum PropCommand {
    /// Set a property of a note
    #[command(after_long_help = "VALUE is YAML: 3 is a number, true a boolean, [a, b] a list, 2026-03-02 a date.\n\n\
Examples:\n  vault-tools prop set Compost status done\n  vault-tools prop set Compost aliases '[Humus, Heap]'\n  \
vault-tools prop set Compost edition 2 --text")]
    Set(SetArgs),
    /// Remove a property of a note
    #[command(after_long_help = "Example:\n  vault-tools prop remove Compost status")]
    Remove(RemoveArgs),
}

/// Options for how a change is made.
#[derive(Debug, Clone, Args)]
pub(super) struct ChangeArgs {
    /// Skip confirmation
    #[arg(long)]
    pub yes: bool,
    /// Show what would be done, and do nothing
    #[arg(long, conflicts_with = "yes")]
    pub dry_run: bool,
    /// Print the outcome as JSON; for several notes, one event per line
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub(super) struct RenameArgs {
    /// The note: its name, path or alias, as in a link
    pub old: String,
    /// Its new name, or its new path from the vault's root
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    pub new: String,
    #[command(flatten)]
    pub change: ChangeArgs,
}

#[derive(Debug, Args)]
pub(super) struct MoveArgs {
    /// The notes
    #[arg(value_name = "NOTE", required = true)]
    pub notes: Vec<String>,
    /// The folder, from the vault's root
    #[arg(required = true, value_parser = NonEmptyStringValueParser::new())]
    pub folder: String,
    #[command(flatten)]
    pub change: ChangeArgs,
}

#[derive(Debug, Args)]
pub(super) struct DeleteArgs {
    /// The notes
    #[arg(value_name = "NOTE", required = true)]
    pub notes: Vec<String>,
    #[command(flatten)]
    pub change: ChangeArgs,
}

#[derive(Debug, Args)]
pub(super) struct MergeArgs {
    /// The notes to merge, which are moved to the trash
    #[arg(value_name = "SOURCE", required = true)]
    pub sources: Vec<String>,
    /// The note to merge into
    #[arg(required = true)]
    pub into: String,
    #[command(flatten)]
    pub change: ChangeArgs,
}

#[derive(Debug, Args)]
pub(super) struct TagsArgs {
    /// The note
    pub note: String,
    /// The tags, with or without #
    #[arg(value_name = "TAG", required = true)]
    pub tags: Vec<String>,
    #[command(flatten)]
    pub change: ChangeArgs,
}

#[derive(Debug, Args)]
pub(super) struct RenameTagArgs {
    /// The tag, with or without #
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    pub old: String,
    /// Its new name
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    pub new: String,
    #[command(flatten)]
    pub change: ChangeArgs,
}

#[derive(Debug, Args)]
pub(super) struct SetArgs {
    /// The note
    pub note: String,
    /// The property
    pub key: String,
    /// Its value
    #[arg(allow_hyphen_values = true)]
    pub value: String,
    /// Treat the value as text, not as YAML
    #[arg(long)]
    pub text: bool,
    #[command(flatten)]
    pub change: ChangeArgs,
}

#[derive(Debug, Args)]
pub(super) struct RemoveArgs {
    /// The note
    pub note: String,
    /// The property
    pub key: String,
    #[command(flatten)]
    pub change: ChangeArgs,
}

#[derive(Debug, Args)]
pub(super) struct NewArgs {
    /// The path of the note, from the vault's root
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    pub path: String,
    /// Its text; `-` reads standard input
    #[arg(allow_hyphen_values = true)]
    pub text: Option<String>,
    /// The template of the note, by name or path
    ///
    /// A name that no note has is looked up in the templates folder.
    #[arg(long, value_name = "TEMPLATE")]
    pub template: Option<String>,
    #[command(flatten)]
    pub change: ChangeArgs,
}

#[derive(Debug, Args)]
pub(super) struct AppendArgs {
    /// The note
    pub note: String,
    /// The text; `-` reads standard input
    #[arg(allow_hyphen_values = true, value_parser = NonEmptyStringValueParser::new())]
    pub text: String,
    /// Append to the section under this heading
    ///
    /// A missing section is created.
    #[arg(long, value_name = "HEADING")]
    pub heading: Option<String>,
    #[command(flatten)]
    pub change: ChangeArgs,
}

#[derive(Debug, Args)]
pub(super) struct DailyArgs {
    /// The day: YYYY-MM-DD, yesterday or tomorrow [default: today]
    pub date: Option<String>,
    #[command(flatten)]
    pub change: ChangeArgs,
}

impl NoteCommand {
    /// The name of the command as it is typed, such as `tag add`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Rename(_) => "rename",
            Self::Move(_) => "move",
            Self::Delete(_) => "delete",
            Self::Merge(_) => "merge",
            Self::Tag(TagCommand::Add(_)) => "tag add",
            Self::Tag(TagCommand::Remove(_)) => "tag remove",
            Self::Tag(TagCommand::Rename(_)) => "tag rename",
            Self::Prop(PropCommand::Set(_)) => "prop set",
            Self::Prop(PropCommand::Remove(_)) => "prop remove",
            Self::New(_) => "new",
            Self::Append(_) => "append",
            Self::Daily(_) => "daily",
        }
    }

    pub fn change(&self) -> &ChangeArgs {
        match self {
            Self::Rename(args) => &args.change,
            Self::Move(args) => &args.change,
            Self::Delete(args) => &args.change,
            Self::Merge(args) => &args.change,
            Self::Tag(TagCommand::Add(args) | TagCommand::Remove(args)) => &args.change,
            Self::Tag(TagCommand::Rename(args)) => &args.change,
            Self::Prop(PropCommand::Set(args)) => &args.change,
            Self::Prop(PropCommand::Remove(args)) => &args.change,
            Self::New(args) => &args.change,
            Self::Append(args) => &args.change,
            Self::Daily(args) => &args.change,
        }
    }
}
