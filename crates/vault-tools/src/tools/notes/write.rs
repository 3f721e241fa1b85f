//! Creates and replaces files: `write_note`, `vault.createFile`, `vault.writeFile`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::edit::{self, frontmatter};
use crate::error::{Error, ErrorKind, Result};
use crate::overlay::{BrokenFrontmatter, WriteOutcome};
use crate::sandbox::{SafePath, View};
use crate::tool::{Context, PathArg, properties_schema};
use crate::tools::obsidian::templates::Templates;
use crate::tools::shared::arguments::{read_lists, yes};
use crate::tools::shared::collision::{Collision, free, taken};
use crate::tools::shared::{expected_version, locate};

#[derive(Deserialize, JsonSchema)]
pub(in crate::tools) struct NoteArgs {
    /// The path of the note, ending in `.md`; missing folders are created.
    path: PathArg,
    /// The whole text in Markdown, including any frontmatter.
    content: String,
    /// What is meant. Default: create a new note; an existing one is replaced only if a person looks at the change and
    /// approves it.
    mode: Option<NoteMode>,
    /// With mode replace, the version that read_note gave: if the note has changed since, nothing is written.
    expected_version: Option<String>,
    /// Whether the frontmatter may become unreadable.
    #[serde(default)]
    allow_broken_frontmatter: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum NoteMode {
    /// A new note; an existing one is an error.
    Create,
    /// The whole text of a note that exists.
    Replace,
}

/// The note.
#[derive(Serialize, JsonSchema)]
pub(in crate::tools) struct WrittenNote {
    /// What was done.
    message: String,
    /// Its path.
    #[schemars(extend("x-vault-path" = true))]
    path: String,
    /// Its new version.
    version: String,
}

pub(in crate::tools) fn note(args: NoteArgs, context: &mut Context<'_, '_>) -> Result<WrittenNote> {
    let path = locate::new_note(&args.path, context)?;
    expected_version::require(args.expected_version.as_deref(), &path, context)?;
    match (args.mode, context.overlay.exists(&path)?) {
        (Some(NoteMode::Replace), false) => return Err(context.missing_file(&path)),
        (Some(NoteMode::Create), true) => return Err(exists(&path)),
        _ => {}
    }
    let written = write(&path, args.content, ("allow_broken_frontmatter", args.allow_broken_frontmatter), context)?;
    if args.mode.is_none() && written == WriteOutcome::Overwritten {
        *context.unless_seen = Some(exists(&path));
    }
    let message = match written {
        WriteOutcome::Created => format!("Note created successfully: {path}"),
        WriteOutcome::Overwritten => format!("Note overwritten successfully: {path} (it was there before)"),
        WriteOutcome::Unchanged => format!("Note unchanged: {path} (it was there with the same text)"),
    };
    Ok(WrittenNote { message, version: expected_version::of(&path, context)?, path: path.to_string() })
}

/// Writes a file for a tool with an argument of this name, which allows frontmatter that cannot be read.
pub(super) fn write(
    path: &SafePath,
    text: String,
    (argument, is_allowed): (&str, bool),
    context: &mut Context<'_, '_>,
) -> Result<WriteOutcome> {
    let broken = if is_allowed { BrokenFrontmatter::Allow } else { BrokenFrontmatter::Refuse };
    let written = context.overlay.write_with(path, text, broken);
    written.map_err(|error| match (error.kind(), error.remedy()) {
        (ErrorKind::Frontmatter, remedy) => {
            let remedy = remedy.unwrap_or("correct the YAML").to_owned();
            error.with_remedy(format!("{remedy}, or set {argument} if it is meant"))
        }
        _ => error,
    })
}

fn exists(path: &SafePath) -> Error {
    Error::new(ErrorKind::Exists, "the note exists already")
        .at(path)
        .with_remedy("to replace its whole text, read it and give mode: replace and its version as expected_version")
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::tools) struct CreateArgs {
    /// Its path with extension; missing folders are created.
    path: PathArg,
    /// Its text.
    content: String,
    /// Whether an existing file is left as it is, which is said, and `created` is false; otherwise it is overwritten if
    /// expectedEtag is its etag, or a person looks at the change and approves it. collisionStrategy takes precedence.
    #[serde(default = "yes")]
    if_not_exists: bool,
    /// What happens if the path exists.
    collision_strategy: Option<Collision>,
    /// A template to begin with, in which date, time and title are filled in: its path, or its name in the vault's
    /// folder of templates. The content follows it.
    template: Option<String>,
    /// Properties for the YAML frontmatter; null for one without a value.
    #[serde(default)]
    #[schemars(schema_with = "properties_schema")]
    frontmatter: Option<Map<String, Value>>,
    /// To overwrite a file: its etag. If the file has changed since, nothing is written.
    expected_etag: Option<String>,
}

/// Returns a template with its variables filled in, and the content after it.
fn from_template(template: &str, content: &str, path: &SafePath, context: &mut Context<'_, '_>) -> Result<String> {
    let begun = Templates::of(context.vault, context.now)?.first_text(template, path, context)?;
    match content.is_empty() {
        true => Ok(begun),
        false => Ok(edit::append_to_end(&begun, content)?.text),
    }
}

/// Adds a notice for a name without an extension, because usually the extension of a note is missing.
fn say_if_no_note(path: &SafePath, context: &mut Context<'_, '_>) {
    if path.extension().is_none() {
        context.overlay.notice(format!("{path} is not a note, because its name does not end in .md"));
    }
}

/// The file.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::tools) struct CreatedFile {
    /// Its path; with create-unique it can differ from the requested one.
    #[schemars(extend("x-vault-path" = true))]
    path: String,
    /// Whether it was created now.
    created: bool,
    /// When it was written, in milliseconds since 1970; null in a preview.
    mtime_ms: Option<i64>,
    /// The hash of its content.
    etag: String,
}

pub(in crate::tools) fn create(mut args: CreateArgs, context: &mut Context<'_, '_>) -> Result<CreatedFile> {
    let mut path = context.path(&args.path)?;
    expected_version::require(args.expected_etag.as_deref(), &path, context)?;
    if args.collision_strategy == Some(Collision::CreateUnique) {
        path = free(&path, context.overlay)?;
    }
    let content = match &args.template {
        Some(template) => from_template(template, &args.content, &path, context)?,
        None => args.content,
    };
    let content = match &mut args.frontmatter {
        Some(properties) if !properties.is_empty() && !path.is_markdown() => {
            let what = "only Markdown notes have frontmatter";
            return Err(Error::new(ErrorKind::InvalidArguments, what).at(path).with_remedy("name a .md file"));
        }
        Some(properties) if !properties.is_empty() => {
            read_lists(&content, properties, "/frontmatter", context)?;
            frontmatter::set(&content, properties)?
        }
        _ => content,
    };
    let created = !context.overlay.exists(&path)?;
    match (args.collision_strategy, args.if_not_exists) {
        _ if created => {
            context.overlay.create(&path, content)?;
            say_if_no_note(&path, context);
        }
        (Some(Collision::Overwrite), _) => drop(context.overlay.write(&path, content)?),
        // Two items of a plan with the same path are an error.
        (None, false) if !context.overlay.is_new(&path)? => {
            let written = context.overlay.write(&path, content)?;
            if args.expected_etag.is_none() && written == WriteOutcome::Overwritten {
                *context.unless_seen = Some(taken(&path));
            }
        }
        (None, true) if args.expected_etag.is_some() => {
            let what = "expectedEtag is that of a file to overwrite, and collisionStrategy does not say so";
            return Err(Error::new(ErrorKind::InvalidArguments, what)
                .at(&path)
                .with_remedy("add ifNotExists: false, or leave out expectedEtag"));
        }
        // Only a file that existed before the plan is left unchanged.
        (None, true) if !context.overlay.is_new(&path)? => {
            context.overlay.notice(format!("{path} exists and is left unchanged"));
        }
        _ => return Err(taken(&path)),
    }
    Ok(CreatedFile {
        created,
        mtime_ms: locate::mtime_ms(&path, &*context.overlay)?,
        etag: expected_version::of(&path, context)?,
        path: path.to_string(),
    })
}

#[derive(Deserialize, JsonSchema)]
pub(in crate::tools) struct TemplateArgs {
    /// The template: its path, or its name in the vault's folder of templates. Date, time and title are filled in.
    template: String,
    /// The path of the new note, ending in `.md`; it must not exist yet.
    path: PathArg,
    /// Text that follows the template.
    #[serde(default)]
    content: String,
    /// Properties that are set in its frontmatter.
    #[serde(default)]
    #[schemars(schema_with = "properties_schema")]
    frontmatter: Option<Map<String, Value>>,
}

pub(in crate::tools) fn create_from_template(args: TemplateArgs, context: &mut Context<'_, '_>) -> Result<CreatedFile> {
    locate::new_note(&args.path, context)?;
    let TemplateArgs { template, path, content, frontmatter } = args;
    let collision_strategy = Some(Collision::Error);
    let (if_not_exists, template, expected_etag) = (true, Some(template), None);
    create(
        CreateArgs { path, content, if_not_exists, collision_strategy, template, frontmatter, expected_etag },
        context,
    )
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::tools) struct FileArgs {
    /// The file; it is created if missing.
    path: PathArg,
    /// The text.
    content: String,
    /// Whether the text replaces the content or is added after it; default overwrite.
    #[serde(default)]
    mode: WriteMode,
    /// The etag of the content to change, from vault.listFiles or an earlier write. If the file has another one now,
    /// nothing is written and the error is CONFLICT.
    expected_etag: Option<String>,
    /// Whether the frontmatter may become unreadable.
    #[serde(default)]
    allow_broken_frontmatter: bool,
}

#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum WriteMode {
    #[default]
    Overwrite,
    Append,
}

/// The file.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::tools) struct WrittenFile {
    /// Its path.
    #[schemars(extend("x-vault-path" = true))]
    path: String,
    /// The hash of its new content.
    etag: String,
    /// When it was written, in milliseconds since 1970; null in a preview.
    mtime_ms: Option<i64>,
    /// The bytes of the given text.
    bytes_written: usize,
}

pub(in crate::tools) fn file(args: FileArgs, context: &mut Context<'_, '_>) -> Result<WrittenFile> {
    let path = context.path(&args.path)?;
    let exists = context.overlay.exists(&path)?;
    expected_version::require(args.expected_etag.as_deref(), &path, context)?;
    let bytes_written = args.content.len();
    let content = match args.mode {
        WriteMode::Append if exists => edit::append(&context.overlay.text(&path)?, &args.content),
        _ => args.content,
    };
    write(&path, content, ("allowBrokenFrontmatter", args.allow_broken_frontmatter), context)?;
    if !exists {
        say_if_no_note(&path, context);
    }
    Ok(WrittenFile {
        etag: expected_version::of(&path, context)?,
        mtime_ms: locate::mtime_ms(&path, &*context.overlay)?,
        bytes_written,
        path: path.to_string(),
    })
}
