//! Made-up conversations of a coding agent, as an Anthropic client sends them.
//!
//! The same size gives the same bytes: figures of two runs can be compared.

use std::fmt::Write as _;

/// A request of about `bytes`: instructions, tools, and as much conversation as fits.
pub(crate) fn anthropic_request(bytes: usize) -> String {
    let mut words = Words(7);
    let mut body = String::with_capacity(bytes + 4_096);
    body.push_str(r#"{"model":"claude-sonnet-4-5","max_tokens":32000,"stream":true,"#);
    body.push_str(r#""thinking":{"type":"enabled","budget_tokens":31999},"system":["#);
    for block in 0..3 {
        comma(&mut body, block);
        block_of_text(&mut body, &words.prose(3_000));
    }
    body.push_str(r#"],"tools":["#);
    for (index, name) in TOOLS.iter().enumerate() {
        comma(&mut body, index);
        tool(&mut body, name, &mut words);
    }
    body.push_str(r#"],"messages":["#);
    body.push_str(r#"{"role":"user","content":[{"type":"text","text":"Please find out why the build fails, and mend it."}]}"#);
    let mut step = 0;
    while body.len() + 2 < bytes {
        let size = (bytes - body.len()).min(4_000);
        round(&mut body, step, size, &mut words);
        step += 1;
    }
    body.push_str("]}");
    body
}

const TOOLS: [&str; 18] = [
    "Agent",
    "Bash",
    "Edit",
    "Glob",
    "Grep",
    "KillShell",
    "ListFiles",
    "NotebookEdit",
    "Plan",
    "Read",
    "Search",
    "Skill",
    "TaskCreate",
    "TaskUpdate",
    "WebFetch",
    "WebSearch",
    "Write",
    "mcp__tracker__create_issue",
];

/// The model thinks, says something and calls a tool; the tool answers with a piece of a file.
fn round(body: &mut String, step: usize, size: usize, words: &mut Words) {
    let name = TOOLS[step % TOOLS.len()];
    let id = format!("toolu_tgAbCdEf{step:06}");
    body.push_str(r#",{"role":"assistant","content":["#);
    block_of_text(body, &words.prose(size / 20));
    let path = format!("src/part_{step}/module.rs");
    let _ = write!(
        body,
        r#",{{"type":"tool_use","id":"{id}","name":"{name}","input":{{"file_path":"{path}","limit":{step},"pattern":"fn \\w+\\("}}}}]}}"#
    );
    let _ = write!(
        body,
        r#",{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"{id}","content":"#
    );
    string(body, &words.code(size * 4 / 5));
    body.push_str("}]}");
}

fn tool(body: &mut String, name: &str, words: &mut Words) {
    let _ = write!(body, r#"{{"name":"{name}","description":"#);
    string(body, &words.prose(900));
    body.push_str(
        r#","input_schema":{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"#,
    );
    for (index, property) in ["file_path", "pattern", "limit", "mode", "options"].iter().enumerate()
    {
        comma(body, index);
        let _ = write!(body, r#""{property}":{{"description":"#);
        string(body, &words.prose(80));
        body.push_str(match index {
            2 => r#","type":"integer","minimum":1}"#,
            3 => r#","type":"string","enum":["content","files","count"]}"#,
            4 => r#","type":"array","items":{"type":"object","properties":{"key":{"type":"string"},"value":{"anyOf":[{"type":"string"},{"type":"null"}]}},"required":["key"],"additionalProperties":false}}"#,
            _ => r#","type":"string"}"#,
        });
    }
    body.push_str(r#"},"required":["file_path"],"additionalProperties":false}}"#);
}

fn block_of_text(body: &mut String, text: &str) {
    body.push_str(r#"{"type":"text","text":"#);
    string(body, text);
    body.push('}');
}

fn string(body: &mut String, text: &str) {
    // A string is always JSON.
    body.push_str(&serde_json::to_string(text).unwrap_or_default());
}

fn comma(body: &mut String, index: usize) {
    if index > 0 {
        body.push(',');
    }
}

/// Words from a small generator of pseudo-random numbers.
struct Words(u64);

impl Words {
    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        from[(self.0 >> 33) as usize % from.len()]
    }

    /// Sentences, with a line end or a character beyond ASCII now and then.
    fn prose(&mut self, size: usize) -> String {
        const WORDS: [&str; 16] = [
            "the",
            "build",
            "reads",
            "every",
            "file",
            "once",
            "and",
            "then",
            "writes",
            "what",
            "changed",
            "\u{2014}",
            "never",
            "twice.\n",
            "caf\u{e9}",
            "\"quoted\"",
        ];
        let mut text = String::with_capacity(size + 16);
        while text.len() < size {
            text.push_str(self.pick(&WORDS));
            text.push(' ');
        }
        text
    }

    /// Lines that look like code: short, indented, full of escapes.
    fn code(&mut self, size: usize) -> String {
        const LINES: [&str; 8] = [
            "    let value = table.get(\"key\").copied();\n",
            "    if value.is_none() {\n",
            "        return Err(Error::Missing { at: path.join(\"name\") });\n",
            "    }\n",
            "\n",
            "/// Reads the table once.\n",
            "    out.push_str(\"a\\tb\\n\");\n",
            "    for (index, entry) in table.iter().enumerate() {\n",
        ];
        let mut text = String::with_capacity(size + 64);
        while text.len() < size {
            text.push_str(self.pick(&LINES));
        }
        text
    }
}
