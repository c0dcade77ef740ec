//! The next step of the routine.

use toolgate_validate::{Content, Data, Function, Request};

use super::bug::{self, Fix};
use super::history::{Step, command_output, steps};
use super::intent::Intent;
use super::report;
use super::source::{
    self, Source, is_readme, is_source, is_test, listed, test_command, without_pytest,
};
use super::toolset::{Kind, ToolCall, Toolset};
use crate::demo::choose;
use crate::demo::prompt::Prompt;

/// Maximum number of files that are read.
const MAX_FILES: usize = 6;
/// Lists the files of all folders.
const FIND: &str = "find . -type f -not -path '*/.*' -not -path '*/node_modules/*' | head -200";

/// Next turn of the model.
#[derive(Debug)]
pub(in crate::demo) enum Next {
    /// A sentence, then calls.
    Call(String, Vec<ToolCall>),
    /// The final answer.
    Answer(String),
}

/// Decides the next turn; `None` where the user asks for something else.
pub(in crate::demo) fn next(request: &Request, prompt: &Prompt, since: &[Content]) -> Option<Next> {
    let functions = choose::callable(request);
    if functions.iter().any(|function| is_named(function, prompt)) {
        return None;
    }
    let tools = Toolset::of(&functions, working_folder(request))?;
    let intent = Intent::of(prompt)?;
    let steps = steps(since);
    Some(Session::new(&tools, prompt, &intent, &steps).next())
}

/// Openings of the sentence in which agents name the working folder.
const FOLDER_MARKS: [&str; 5] =
    ["orking directory: ", "orking directory is ", "in the directory: ", "<cwd>", "pwd\n"];

/// The working folder that the agent names in its instructions.
fn working_folder(request: &Request) -> Option<&str> {
    let contents = request.system.iter().chain(&request.contents);
    let texts = contents.flat_map(|content| &content.parts).filter_map(|part| match &part.data {
        Data::Text(text) => Some(text.as_str()),
        Data::None
        | Data::Media { .. }
        | Data::Call { .. }
        | Data::Response { .. }
        | Data::Server(..) => None,
    });
    texts.into_iter().find_map(|text| {
        FOLDER_MARKS.iter().find_map(|mark| {
            let (_, rest) = text.split_once(mark)?;
            let end = rest.find(|c: char| c.is_whitespace() || "<`\"'".contains(c));
            let folder = rest[..end.unwrap_or(rest.len())].trim_end_matches(['.', '/']);
            folder.starts_with('/').then_some(folder)
        })
    })
}

/// Functions that the demo model may choose by the user's words: for a coding agent, whose tools have long
/// descriptions, only those that the user names.
pub(in crate::demo) fn choosable<'r>(
    mut functions: Vec<&'r Function>,
    prompt: &Prompt,
) -> Vec<&'r Function> {
    if Toolset::of(&functions, None).is_some() {
        functions.retain(|function| is_named(function, prompt));
    }
    functions
}

/// Whether the user names a tool that is no plain word: `TodoWrite`, `run_shell_command`.
fn is_named(function: &Function, prompt: &Prompt) -> bool {
    let name = &function.name;
    let is_plain = name.chars().skip(1).all(|c| c.is_ascii_lowercase());
    !is_plain && prompt.mentions(name)
        || prompt.quoted.iter().any(|quoted| quoted == name)
        || prompt.mentions(&format!("{name} tool"))
}

/// State of the routine, derived from the calls so far.
struct Session<'r> {
    tools: &'r Toolset<'r>,
    prompt: &'r Prompt,
    intent: &'r Intent,
    steps: &'r [Step<'r>],
    /// Files that were listed.
    listed: Vec<String>,
    /// Files that were read.
    read: Vec<Source>,
    /// Whether all folders were listed.
    has_searched: bool,
    has_looked: bool,
    changes: Vec<&'r Step<'r>>,
    /// Commands that were run for their result.
    runs: Vec<(&'r str, &'r Step<'r>)>,
}

impl<'r> Session<'r> {
    fn new(
        tools: &'r Toolset<'r>,
        prompt: &'r Prompt,
        intent: &'r Intent,
        steps: &'r [Step<'r>],
    ) -> Self {
        let mut session = Self {
            tools,
            prompt,
            intent,
            steps,
            listed: Vec::new(),
            read: Vec::new(),
            has_searched: false,
            has_looked: false,
            changes: Vec::new(),
            runs: Vec::new(),
        };
        for step in steps {
            session.take(step);
        }
        session
    }

    fn take(&mut self, step: &'r Step<'r>) {
        let subject = self.tools.subject(step.name, step.args);
        match self.tools.kind(step.name) {
            Kind::List => self.look(step),
            Kind::Read => self.open(subject, step),
            Kind::Shell if subject == FIND => {
                self.has_searched = true;
                self.look(step);
            }
            Kind::Shell if subject == "ls" && !matches!(self.intent, Intent::Run(_)) => {
                self.look(step);
            }
            Kind::Shell
                if subject.starts_with("cat ") && !matches!(self.intent, Intent::Run(_)) =>
            {
                self.open(subject["cat ".len()..].trim_matches('\''), step);
            }
            Kind::Shell => self.runs.push((subject, step)),
            Kind::Change => self.changes.push(step),
            Kind::Other => {}
        }
    }

    fn look(&mut self, step: &Step<'_>) {
        self.has_looked = true;
        for path in listed(&command_output(&step.output)) {
            if !self.listed.contains(&path) {
                self.listed.push(path);
            }
        }
    }

    fn open(&mut self, path: &str, step: &Step<'_>) {
        if !step.failed {
            self.read.push(Source::new(path, &step.output));
        }
    }

    fn next(&self) -> Next {
        match self.intent {
            Intent::Run(command) => self.run_command(command),
            Intent::Read => self.read_named(),
            Intent::Create => self.create_named(),
            Intent::Fix | Intent::Document | Intent::Test | Intent::Review => self.routine(),
        }
    }

    fn run_command(&self, command: &str) -> Next {
        match self.runs.last() {
            Some((command, step)) => Next::Answer(report::of_run(command, step)),
            None => Next::Call(
                format!("I'll run `{command}`."),
                vec![self.tools.run(command, &format!("Run {command}"))],
            ),
        }
    }

    fn read_named(&self) -> Next {
        if self.steps.is_empty() {
            let paths = self.prompt.paths.iter().take(MAX_FILES);
            let calls: Vec<_> = paths.map(|path| self.tools.read(path)).collect();
            return Next::Call("I'll read it.".to_owned(), calls);
        }
        Next::Answer(report::of_files(&self.read, self.steps))
    }

    fn create_named(&self) -> Next {
        if let Some(step) = self.changes.last() {
            let verdict = if step.failed { "failed" } else { "succeeded" };
            let output = report::short(&step.output);
            return Next::Answer(format!(
                "Writing the file {verdict}: {output}\n\n{}",
                report::ORIGIN
            ));
        }
        let path = self.prompt.paths.first().map_or("notes.txt", String::as_str);
        let content = self.prompt.quoted.iter().find(|quoted| *quoted != path);
        let content = content.cloned().unwrap_or_else(|| self.prompt.gist());
        match self.tools.create(path, &format!("{content}\n"), &format!("Write {path}")) {
            Some(call) => Next::Call(format!("I'll write `{path}`."), vec![call]),
            None => Next::Answer(format!("No tool here writes a new file.\n\n{}", report::ORIGIN)),
        }
    }

    fn routine(&self) -> Next {
        if !self.has_looked {
            let words = "I'll look at the folder first.".to_owned();
            return Next::Call(words, vec![self.tools.look()]);
        }
        let has_code = self.listed.iter().any(|path| is_source(path));
        if !has_code && !self.has_searched && self.read.is_empty() {
            let call = self.tools.run(FIND, "List the files of all folders");
            return Next::Call("No code at the top; I'll look deeper.".to_owned(), vec![call]);
        }
        let has_read = self.steps.iter().any(|step| self.is_read(step));
        let wanted = self.wanted();
        if !has_read && !wanted.is_empty() {
            let names: Vec<_> = wanted.iter().map(|path| format!("`{path}`")).collect();
            let calls = wanted.iter().map(|path| self.tools.read(path)).collect();
            return Next::Call(format!("I'll read {}.", names.join(", ")), calls);
        }
        if self.read.is_empty()
            && !wanted.is_empty()
            && !self.steps.iter().any(|it| self.is_print(it))
        {
            let words = "The files cannot be read that way; I'll print them.".to_owned();
            let calls = wanted.iter().map(|path| self.tools.print(path)).collect();
            return Next::Call(words, calls);
        }
        if self.changes.is_empty()
            && self.runs.is_empty()
            && let Some(next) = self.change()
        {
            return next;
        }
        if *self.intent != Intent::Review
            && let Some(next) = self.test()
        {
            return next;
        }
        Next::Answer(self.summary())
    }

    fn is_read(&self, step: &Step<'_>) -> bool {
        self.tools.kind(step.name) == Kind::Read || self.is_print(step)
    }

    fn is_print(&self, step: &Step<'_>) -> bool {
        self.tools.kind(step.name) == Kind::Shell
            && self.tools.subject(step.name, step.args).starts_with("cat ")
    }

    /// Files to read: those that the user names, the code, and the tests.
    fn wanted(&self) -> Vec<String> {
        if *self.intent == Intent::Test {
            let tests = self.listed.iter().filter(|path| is_test(path));
            return tests.take(1).cloned().collect();
        }
        let named = self.prompt.paths.iter().filter(|path| is_source(path) || is_readme(path));
        let mut wanted: Vec<String> = named.cloned().collect();
        let mut add = |path: &String| {
            if wanted.len() < MAX_FILES
                && !wanted.iter().any(|it| source::name(it) == source::name(path))
            {
                wanted.push(path.clone());
            }
        };
        let is_alone = self.prompt.paths.iter().any(|path| is_source(path));
        let readme = self.listed.iter().filter(|path| is_readme(path)).take(1);
        if *self.intent != Intent::Fix {
            readme.for_each(&mut add);
        }
        let code = self.listed.iter().filter(|path| is_source(path) && !is_test(path));
        if !is_alone {
            code.for_each(&mut add);
        }
        self.listed.iter().filter(|path| is_test(path)).take(2).for_each(&mut add);
        wanted
    }

    /// The bug in the files that were read.
    fn fix(&self) -> Option<Fix> {
        let code = self.read.iter().filter(|source| is_source(&source.path));
        let (tests, code): (Vec<_>, Vec<_>) = code.partition(|source| is_test(&source.path));
        // A file may hold its own tests.
        let examples: Vec<_> = tests.iter().chain(&code).copied().collect();
        bug::find(&code, &examples)
    }

    fn change(&self) -> Option<Next> {
        match self.intent {
            Intent::Fix => {
                let fix = self.fix()?;
                let content = self.read.iter().find(|source| source.path == fix.path)?;
                let about = format!("Fix {} in {}", fix.function, fix.path);
                let texts = (fix.old.as_str(), fix.new.as_str());
                let call = self.tools.replace(&fix.path, &content.text, texts, &about)?;
                let words = format!(
                    "`{}` in `{}` returns the wrong result: `{}` should be `{}`. I'll change it.",
                    fix.function, fix.path, fix.line.0, fix.line.1
                );
                Some(Next::Call(words, vec![call]))
            }
            Intent::Document => {
                let section = report::section(&self.read, self.test_command().as_deref());
                let about = "Describe the files in the README";
                let readme = self.read.iter().find(|source| is_readme(&source.path));
                let call = match readme {
                    Some(readme) if readme.text.contains(report::HEADING) => return None,
                    Some(readme) => {
                        let first = readme.text.lines().find(|line| !line.trim().is_empty())?;
                        let new = format!("{first}\n\n{}", section.trim_end());
                        self.tools.replace(&readme.path, &readme.text, (first, &new), about)?
                    }
                    None => {
                        self.tools.create("README.md", &format!("# Project\n\n{section}"), about)?
                    }
                };
                Some(Next::Call("I'll describe the code in the README.".to_owned(), vec![call]))
            }
            Intent::Test | Intent::Run(_) | Intent::Read | Intent::Create | Intent::Review => None,
        }
    }

    fn test_command(&self) -> Option<String> {
        let code = self.read.iter().any(|source| is_test(&source.path));
        let project = ["Cargo.toml", "go.mod", "package.json"];
        let has_project = self.listed.iter().any(|path| project.contains(&path.as_str()));
        let command = test_command(&self.listed, &self.read)?;
        // Without tests, only a program that was fixed is worth running.
        (code || has_project || *self.intent == Intent::Fix && !self.changes.is_empty())
            .then_some(command)
    }

    /// Runs the tests; once more without pytest where that is not installed.
    fn test(&self) -> Option<Next> {
        let command = match self.runs.as_slice() {
            [] => self.test_command()?,
            [(command, step)] if step.output.contains("No module named pytest") => {
                without_pytest(command)?
            }
            _ => return None,
        };
        let words = if self.runs.is_empty() {
            "I'll run the tests."
        } else {
            "pytest is not installed; I'll call the test functions."
        };
        Some(Next::Call(words.to_owned(), vec![self.tools.run(&command, "Run the tests")]))
    }

    fn summary(&self) -> String {
        let failed = self.changes.iter().find(|step| step.failed);
        let found = match self.intent {
            Intent::Fix if self.changes.is_empty() => {
                "I found no bug that I can tell from the text.".to_owned()
            }
            Intent::Fix | Intent::Document if failed.is_some() => {
                let why = failed.map_or("", |step| step.output.as_str());
                format!("The change failed: {}", report::short(why))
            }
            Intent::Fix => self.fix().map_or_else(
                || "I changed the code.".to_owned(),
                |fix| {
                    let Fix { path, function, line: (old, new), .. } = fix;
                    format!("I fixed `{function}` in `{path}`: `{old}` is now `{new}`.")
                },
            ),
            Intent::Document if self.changes.is_empty() => {
                "The README describes the code already.".to_owned()
            }
            Intent::Document => "I updated the README with what each file holds.".to_owned(),
            Intent::Test | Intent::Run(_) | Intent::Read | Intent::Create | Intent::Review => {
                String::new()
            }
        };
        let review = match self.intent {
            Intent::Review | Intent::Document => report::of_review(&self.read, self.fix().as_ref()),
            Intent::Fix | Intent::Test | Intent::Run(_) | Intent::Read | Intent::Create => {
                String::new()
            }
        };
        let run = self.runs.last().map(|(command, step)| report::of_run(command, step));
        let none = (self.runs.is_empty() && *self.intent == Intent::Test)
            .then(|| "I found no tests here.".to_owned());
        let parts = [found, review, run.or(none).unwrap_or_default(), report::ORIGIN.to_owned()];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n\n")
    }
}
