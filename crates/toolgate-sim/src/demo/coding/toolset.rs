//! Tools of a coding agent by what they do.

use serde_json::{Map, Value, json};
use toolgate_validate::Function;

use crate::demo::choose::name_words;
use crate::demo::fill::Filler;
use crate::demo::prompt::Prompt;

const COMMAND_PARAMETERS: &[&str] = &["command", "cmd", "script"];
const PATH_PARAMETERS: &[&str] =
    &["filepath", "path", "absolutepath", "file", "filename", "targetfile"];
const FOLDER_PARAMETERS: &[&str] =
    &["dirpath", "directorypath", "path", "directory", "folder", "dir"];
const OLD_PARAMETERS: &[&str] = &["oldstring", "oldstr", "oldtext", "old"];
const NEW_PARAMETERS: &[&str] = &["newstring", "newstr", "newtext", "new"];
const CONTENT_PARAMETERS: &[&str] = &["content", "contents", "filetext", "text"];
const PATCH_PARAMETERS: &[&str] = &["input", "patch", "patchtext", "diff"];
/// Optional parameters that take a sentence about the call.
const PROSE_PARAMETERS: &[&str] = &["description", "instruction", "explanation"];

/// A function and the call that it is used for.
pub(super) type ToolCall = (String, Map<String, Value>);

/// Tools of an agent.
#[derive(Debug)]
pub(super) struct Toolset<'r> {
    shell: Tool<'r>,
    read: Option<Tool<'r>>,
    list: Option<Tool<'r>>,
    change: Change<'r>,
    write: Option<Write<'r>>,
    /// Working folder, for tools that want absolute paths.
    folder: Option<&'r str>,
}

/// A function with the parameter for a command, path or patch.
#[derive(Clone, Copy, Debug)]
struct Tool<'r> {
    function: &'r Function,
    parameter: &'r str,
}

/// The tool that changes a file.
#[derive(Debug)]
enum Change<'r> {
    /// Replaces a text.
    Replace { tool: Tool<'r>, old: &'r str, new: &'r str },
    /// Replaces texts that are given as a list.
    ReplaceAll { tool: Tool<'r>, list: &'r str, old: &'r str, new: &'r str },
    /// Applies a patch.
    Patch(Tool<'r>),
    /// Writes the file again.
    Write,
}

/// The tool that writes a file.
#[derive(Clone, Copy, Debug)]
struct Write<'r> {
    tool: Tool<'r>,
    content: &'r str,
}

/// Kind of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Shell,
    Read,
    List,
    Change,
    Other,
}

impl<'r> Toolset<'r> {
    /// Finds the tools; `None` unless commands can be run and files be changed.
    pub(super) fn of(functions: &[&'r Function], folder: Option<&'r str>) -> Option<Self> {
        let find = |test: &dyn Fn(&[String]) -> bool, parameters: &[&str]| {
            functions.iter().find_map(|function| {
                let is_it = test(&name_words(&function.name));
                let parameter = parameter(function, parameters).filter(|_| is_it)?;
                Some(Tool { function, parameter })
            })
        };
        let has =
            |words: &[String], any: &[&str]| words.iter().any(|it| any.contains(&it.as_str()));
        let shell = find(
            &|words| {
                has(words, &["bash", "shell", "exec", "execute", "command", "terminal", "run"])
            },
            COMMAND_PARAMETERS,
        )?;
        let read = find(
            &|words| {
                has(words, &["read", "view", "cat"]) && !has(words, &["image", "write", "edit"])
            },
            PATH_PARAMETERS,
        );
        let listing = ["list", "ls", "dir", "directory", "files", "folder"];
        let list = find(
            &|words| words.iter().all(|word| listing.contains(&word.as_str())),
            FOLDER_PARAMETERS,
        );
        let write = find(&|words| has(words, &["write", "create"]), PATH_PARAMETERS);
        let write = write.and_then(|tool| {
            Some(Write { tool, content: parameter(tool.function, CONTENT_PARAMETERS)? })
        });
        let replace = functions.iter().find_map(|function| replacing(function));
        let patch = find(&|words| has(words, &["patch"]), PATCH_PARAMETERS);
        let change = match (replace, patch, write) {
            (Some(replace), _, _) => replace,
            (None, Some(patch), _) => Change::Patch(patch),
            (None, None, Some(_)) => Change::Write,
            (None, None, None) => return None,
        };
        Some(Self { shell, read, list, change, write, folder })
    }

    /// Kind of a call with this name.
    pub(super) fn kind(&self, name: &str) -> Kind {
        let is = |tool: Option<Tool<'_>>| tool.is_some_and(|tool| tool.function.name == name);
        let changes = match &self.change {
            Change::Replace { tool, .. }
            | Change::ReplaceAll { tool, .. }
            | Change::Patch(tool) => is(Some(*tool)),
            Change::Write => false,
        };
        if is(Some(self.shell)) {
            Kind::Shell
        } else if is(self.read) {
            Kind::Read
        } else if is(self.list) {
            Kind::List
        } else if changes || is(self.write.map(|write| write.tool)) {
            Kind::Change
        } else {
            Kind::Other
        }
    }

    /// Command, path or patch of a call.
    pub(super) fn subject<'a>(&self, name: &str, args: &'a Map<String, Value>) -> &'a str {
        let tools = [Some(self.shell), self.read, self.list].into_iter().flatten();
        let tool = tools.into_iter().find(|tool| tool.function.name == name);
        let subject = tool.and_then(|tool| args.get(tool.parameter)?.as_str()).unwrap_or("");
        let inside = self.folder.and_then(|folder| subject.strip_prefix(folder)?.strip_prefix('/'));
        inside.unwrap_or(subject)
    }

    /// Runs a command.
    pub(super) fn run(&self, command: &str, about: &str) -> ToolCall {
        self.shell.call(command, about)
    }

    /// A call with a path, which is absolute where the tool wants that.
    fn at(&self, tool: Tool<'_>, path: &str, about: &str) -> ToolCall {
        let schema = tool.function.schema.as_ref();
        let wish = schema.and_then(|it| it["properties"][tool.parameter]["description"].as_str());
        let wish = wish.unwrap_or("").to_lowercase();
        match self.folder {
            Some(folder) if wish.contains("absolute") && !path.starts_with('/') => {
                let path = if path == "." { folder.to_owned() } else { format!("{folder}/{path}") };
                tool.call(&path, about)
            }
            Some(_) | None => tool.call(path, about),
        }
    }

    /// Lists the current folder.
    pub(super) fn look(&self) -> ToolCall {
        match self.list {
            Some(list) => self.at(list, ".", "List the files of the folder"),
            None => self.run("ls", "List the files of the folder"),
        }
    }

    /// Reads a file.
    pub(super) fn read(&self, path: &str) -> ToolCall {
        let about = format!("Read {path}");
        match self.read {
            Some(read) => self.at(read, path, &about),
            None => self.print(path),
        }
    }

    /// Reads a file with a command.
    pub(super) fn print(&self, path: &str) -> ToolCall {
        self.run(&format!("cat {}", quoted(path)), &format!("Print the file {path}"))
    }

    /// Replaces lines of a file; `content` is the whole file.
    pub(super) fn replace(
        &self,
        path: &str,
        content: &str,
        (old, new): (&str, &str),
        about: &str,
    ) -> Option<ToolCall> {
        let with = |tool: Tool<'_>, more: &[(&str, Value)]| {
            let (name, mut args) = self.at(tool, path, about);
            args.extend(more.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
            (name, args)
        };
        Some(match &self.change {
            Change::Replace { tool, old: from, new: to } => {
                with(*tool, &[(from, json!(old)), (to, json!(new))])
            }
            Change::ReplaceAll { tool, list, old: from, new: to } => {
                let mut edit = Map::new();
                edit.insert((*from).to_owned(), json!(old));
                edit.insert((*to).to_owned(), json!(new));
                with(*tool, &[(list, json!([edit]))])
            }
            Change::Patch(tool) => tool.call(&update_patch(path, old, new), about),
            Change::Write => return self.create(path, &content.replacen(old, new, 1), about),
        })
    }

    /// Writes a new file.
    pub(super) fn create(&self, path: &str, content: &str, about: &str) -> Option<ToolCall> {
        if let Some(Write { tool, content: parameter }) = self.write {
            let (name, mut args) = self.at(tool, path, about);
            args.insert(parameter.to_owned(), json!(content));
            return Some((name, args));
        }
        let Change::Patch(tool) = self.change else { return None };
        let lines: String = content.lines().map(|line| format!("+{line}\n")).collect();
        let patch = format!("*** Begin Patch\n*** Add File: {path}\n{lines}*** End Patch\n");
        Some(tool.call(&patch, about))
    }
}

impl Tool<'_> {
    /// A call with the required arguments.
    fn call(self, value: &str, about: &str) -> ToolCall {
        let schema = self.function.schema.as_ref();
        let required: Vec<&str> = schema
            .and_then(|schema| schema["required"].as_array())
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let prompt = Prompt::new(about);
        let mut args = Filler::new(&prompt, Vec::new(), Vec::new()).arguments(schema);
        args.retain(|name, _| required.contains(&name.as_str()));
        for name in properties(self.function) {
            if PROSE_PARAMETERS.contains(&normal(name).as_str()) {
                args.insert(name.to_owned(), json!(about));
            }
        }
        args.insert(self.parameter.to_owned(), json!(value));
        (self.function.name.clone(), args)
    }
}

/// A function that replaces a text in a file.
fn replacing(function: &Function) -> Option<Change<'_>> {
    let tool = Tool { function, parameter: parameter(function, PATH_PARAMETERS)? };
    if let (Some(old), Some(new)) =
        (parameter(function, OLD_PARAMETERS), parameter(function, NEW_PARAMETERS))
    {
        return Some(Change::Replace { tool, old, new });
    }
    let list = parameter(function, &["edits", "replacements"])?;
    let items = &function.schema.as_ref()?["properties"][list]["items"]["properties"];
    let within = |known: &[&str]| {
        let names = items.as_object()?.keys().map(String::as_str);
        names.into_iter().find(|name| known.contains(&normal(name).as_str()))
    };
    let (old, new) = (within(OLD_PARAMETERS)?, within(NEW_PARAMETERS)?);
    Some(Change::ReplaceAll { tool, list, old, new })
}

fn properties(function: &Function) -> impl Iterator<Item = &str> {
    let schema = function.schema.as_ref();
    let properties = schema.and_then(|schema| schema["properties"].as_object());
    properties.into_iter().flatten().map(|(name, _)| name.as_str())
}

/// First of the known parameters that a function has; earlier ones are preferred.
fn parameter<'r>(function: &'r Function, known: &[&str]) -> Option<&'r str> {
    known.iter().find_map(|known| properties(function).find(|name| normal(name) == *known))
}

/// A parameter's name without its spelling: `old_string`, `oldString` → `oldstring`.
fn normal(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|it| it.to_ascii_lowercase()).collect()
}

/// A patch in the format of `apply_patch`: unchanged lines are context.
fn update_patch(path: &str, old: &str, new: &str) -> String {
    let (old, new): (Vec<_>, Vec<_>) = (old.lines().collect(), new.lines().collect());
    let before = old.iter().zip(&new).take_while(|(one, other)| one == other).count();
    let (old_rest, new_rest) = (&old[before..], &new[before..]);
    let pairs = old_rest.iter().rev().zip(new_rest.iter().rev());
    let after = pairs.take_while(|(one, other)| one == other).count();
    let mut patch = format!("*** Begin Patch\n*** Update File: {path}\n@@\n");
    let mut push = |mark: char, lines: &[&str]| {
        for line in lines {
            patch.push(mark);
            patch.push_str(line);
            patch.push('\n');
        }
    };
    push(' ', &old[..before]);
    push('-', &old_rest[..old_rest.len() - after]);
    push('+', &new_rest[..new_rest.len() - after]);
    push(' ', &old_rest[old_rest.len() - after..]);
    patch.push_str("*** End Patch\n");
    patch
}

/// A path for a shell.
pub(super) fn quoted(path: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-/".contains(c);
    if !path.is_empty() && path.chars().all(is_plain) {
        return path.to_owned();
    }
    format!("'{}'", path.replace('\'', r"'\''"))
}
