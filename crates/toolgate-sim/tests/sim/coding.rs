//! The demo model's coding routine with the tools of different agents.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::*;

const CODE: &str = "def add(a, b):\n    return a - b\n";
const TEST: &str = "from calc import add\nassert add(2, 3) == 5\n";

/// An agent: its tools and what they do with files in memory.
struct Agent {
    tools: Value,
    files: BTreeMap<String, String>,
    /// The read tool wants absolute paths.
    is_strict: bool,
    system: Option<&'static str>,
    /// Names of the tools that were called.
    called: Vec<String>,
}

fn object(properties: &[&str]) -> Value {
    let fields = properties.iter().map(|name| ((*name).to_owned(), json!({"type": "string"})));
    let fields: Map<_, _> = fields.collect();
    json!({"type": "object", "properties": fields, "required": properties})
}

impl Agent {
    fn new(tools: &[(&str, &[&str])]) -> Self {
        let declared: Vec<_> = tools
            .iter()
            .map(|(name, properties)| json!({"name": name, "parametersJsonSchema": object(properties)}))
            .collect();
        let files = [("calc.py", CODE), ("test_calc.py", TEST), ("README.md", "# Calc\n")];
        Self {
            tools: json!([{"functionDeclarations": declared}]),
            files: files.map(|(name, text)| (name.to_owned(), text.to_owned())).into(),
            is_strict: false,
            system: None,
            called: Vec::new(),
        }
    }

    /// Runs a call; an `Err` is the tool's error.
    fn call(&mut self, name: &str, args: &Value) -> Result<String, String> {
        let text = |name: &str| args[name].as_str().unwrap_or_default().to_owned();
        let path = text("path") + &text("file_path");
        match name {
            "Bash" | "exec_command" => self.command(&(text("command") + &text("cmd"))),
            "Read" if self.is_strict && !path.starts_with('/') => {
                Err("must be absolute".to_owned())
            }
            "Read" => self
                .files
                .get(path.strip_prefix("/project/").unwrap_or(&path))
                .cloned()
                .ok_or_else(|| "File does not exist.".to_owned()),
            "list_directory" => Ok(self.files.keys().cloned().collect::<Vec<_>>().join("\n")),
            "Edit" => {
                let file = self.files.get_mut(&path).ok_or("no such file")?;
                assert!(file.contains(&text("old_string")), "{args}");
                *file = file.replacen(&text("old_string"), &text("new_string"), 1);
                Ok("The file has been updated.".to_owned())
            }
            "apply_patch" => {
                let patch = text("input");
                let path = patch.split_once("*** Update File: ").unwrap().1.lines().next().unwrap();
                let lines = |mark: char| {
                    let lines = patch.lines().skip(3).filter(|line| !line.starts_with("*** "));
                    let lines = lines.filter(|line| line.starts_with([' ', mark]));
                    lines.map(|line| &line[1..]).collect::<Vec<_>>().join("\n")
                };
                let file = self.files.get_mut(path).unwrap();
                assert!(file.contains(&lines('-')), "{patch}");
                *file = file.replacen(&lines('-'), &lines('+'), 1);
                Ok("Success. Updated the following files:".to_owned())
            }
            _ => Err(format!("no tool {name}")),
        }
    }

    fn command(&self, command: &str) -> Result<String, String> {
        if command == "ls" {
            return Ok(self.files.keys().cloned().collect::<Vec<_>>().join("\n"));
        }
        if let Some(path) = command.strip_prefix("cat ") {
            return self.files.get(path).cloned().ok_or_else(|| "No such file".to_owned());
        }
        let is_right = self.files["calc.py"].contains("return a + b");
        match command {
            "python3 test_calc.py" if is_right => Ok("passed".to_owned()),
            "python3 test_calc.py" => Ok("Exit code 1\nAssertionError".to_owned()),
            _ => Ok(format!("{command}: command not found")),
        }
    }

    /// Runs a prompt to its end; returns the last text.
    fn run(&mut self, words: &str) -> String {
        let sim = Sim::new(SimConfig::default());
        let mut body = prompt(words, json!({"tools": self.tools}));
        if let Some(system) = self.system {
            body["systemInstruction"] = json!({"parts": [{"text": system}]});
        }
        loop {
            let turn = model_turn(&stream(&sim, "gemini-3.6-flash", &body));
            let parts = turn["parts"].as_array().unwrap().clone();
            let calls: Vec<_> = parts.iter().filter_map(|part| part.get("functionCall")).collect();
            if calls.is_empty() {
                let texts = parts.iter().filter(|part| part["thought"] != json!(true));
                return texts.filter_map(|part| part["text"].as_str()).collect();
            }
            let answers: Vec<_> = calls
                .iter()
                .map(|call| {
                    let name = call["name"].as_str().unwrap();
                    self.called.push(name.to_owned());
                    let response = match self.call(name, &call["args"]) {
                        Ok(output) => json!({"output": output}),
                        Err(error) => json!({"error": error}),
                    };
                    json!({"functionResponse": {"id": call["id"], "name": name, "response": response}})
                })
                .collect();
            let contents = body["contents"].as_array_mut().unwrap();
            assert!(contents.len() < 16, "{words}: it does not end");
            contents.extend([turn, json!({"role": "user", "parts": answers})]);
        }
    }
}

fn agents() -> [Agent; 3] {
    let replacing = [
        ("Bash", &["command", "description"][..]),
        ("Read", &["file_path"]),
        ("Edit", &["file_path", "old_string", "new_string"]),
    ];
    let listing = [replacing[0], replacing[1], replacing[2], ("list_directory", &["path"])];
    let patching = [("exec_command", &["cmd"][..]), ("apply_patch", &["input"])];
    [Agent::new(&replacing), Agent::new(&listing), Agent::new(&patching)]
}

#[test]
fn a_bug_is_fixed_and_the_test_run() {
    for mut agent in agents() {
        let text = agent.run("Read calc.py and fix the bug");
        assert_eq!(
            agent.files["calc.py"], "def add(a, b):\n    return a + b\n",
            "{:?}",
            agent.called
        );
        assert!(text.contains("`return a - b` is now `return a + b`"), "{text}");
        assert!(text.contains("`python3 test_calc.py` succeeded"), "{text}");
        assert_eq!(agent.called.len(), 5, "{:?}", agent.called);
    }
}

#[test]
fn files_are_printed_where_the_read_tool_fails() {
    let [mut agent, ..] = agents();
    agent.is_strict = true;
    let text = agent.run("Read calc.py and fix the bug");
    assert!(agent.files["calc.py"].contains("a + b"), "{text}");
    let folder = "You work on a project. Working directory: /project\n";
    let [mut agent, ..] = agents();
    agent.is_strict = true;
    agent.system = Some(folder);
    agent.tools[0]["functionDeclarations"][1]["parametersJsonSchema"]["properties"]["file_path"]
        ["description"] = json!("The absolute path to the file");
    let text = agent.run("Read calc.py and fix the bug");
    assert!(agent.files["calc.py"].contains("a + b"), "{text}");
    assert_eq!(agent.called, ["Bash", "Read", "Read", "Edit", "Bash"]);
}

#[test]
fn r162_code_is_reviewed_and_the_readme_updated() {
    for mut agent in agents() {
        let text = agent.run("review the code carefully and update readme");
        let readme = &agent.files["README.md"];
        assert!(
            readme.starts_with("# Calc\n\n## Files\n") && readme.contains("| `calc.py` | `add` |"),
            "{readme}"
        );
        assert!(
            text.contains("`add` in `calc.py` looks wrong") && text.contains("failed"),
            "{text}"
        );
        assert_eq!(agent.files["calc.py"], CODE, "a review changes no code");
        let again = agent.run("review the code carefully and update readme");
        assert!(again.contains("The README describes the code already."), "{again}");
    }
}

#[test]
fn commands_are_run_and_other_words_are_answered() {
    for mut agent in agents() {
        assert!(agent.run("Run ls").contains("test_calc.py"));
        assert_eq!(agent.called.len(), 1);
        assert!(agent.run("Hello").starts_with("Hello from toolgate's simulator"));
        assert!(agent.run("Read missing.py").contains("failed: "));
        assert_eq!(agent.called.len(), 2, "{:?}", agent.called);
    }
}
