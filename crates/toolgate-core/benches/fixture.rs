//! A tool set of the size and shape that a coding agent sends: twenty tools, about 40 kB.
//!
//! The text is ours. Shared by the benches.

/// One tool.
#[derive(Debug)]
pub(crate) struct Tool {
    /// The tool's name.
    pub(crate) name: &'static str,
    /// A long description of its purpose.
    pub(crate) description: String,
    /// The schema of its arguments.
    pub(crate) schema: String,
}

/// The whole set.
pub(crate) fn tools() -> Vec<Tool> {
    TOOLS
        .iter()
        .map(|(name, length, schema)| Tool {
            name,
            description: prose(name, *length),
            schema: schema.replace('\n', " "),
        })
        .collect()
}

/// The set as the `tools` of an Anthropic request.
pub(crate) fn anthropic() -> String {
    let tools: Vec<String> = tools()
        .iter()
        .map(|tool| {
            format!(
                r#"{{"name":"{}","description":"{}","input_schema":{}}}"#,
                tool.name, tool.description, tool.schema
            )
        })
        .collect();
    format!("[{}]", tools.join(","))
}

/// Plain sentences, as many as are asked for.
fn prose(name: &str, length: usize) -> String {
    const SENTENCES: [&str; 8] = [
        "Use this when the task calls for it and nothing simpler will do.",
        "Paths are absolute, and results are returned as plain text with one entry on each line.",
        "The call fails with a short message where the place does not exist or may not be read.",
        "Prefer one call with exact arguments over several with loose ones.",
        "Large results are cut at the end, and the last line says how much is missing.",
        "Nothing outside the working directory is changed unless the user has agreed to it.",
        "Several independent calls may be made in the same turn; they run side by side.",
        "Say in the next message what was found, in the user's own language.",
    ];
    let mut text = format!("{name}: what it says.");
    for sentence in SENTENCES.iter().cycle() {
        if text.len() >= length {
            break;
        }
        text.push(' ');
        text.push_str(sentence);
    }
    text
}

const TOOLS: &[(&str, usize, &str)] = &[
    (
        "RunCommand",
        2000,
        r#"{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{
        "command":{"description":"The command line, given to a shell as it is","type":"string"},
        "timeout":{"description":"How long to wait, in milliseconds, ten minutes at most","type":"number"},
        "summary":{"description":"What the command does, in five to ten words, for the person who reads along","type":"string"},
        "background":{"description":"Do not wait for it; its output can be read later","type":"boolean"}},
        "required":["command"],"additionalProperties":false}"#,
    ),
    (
        "ReadFile",
        900,
        r#"{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{
        "path":{"description":"Which file, as an absolute path","type":"string"},
        "offset":{"description":"The first line to return, counted from zero","type":"integer","minimum":0,"maximum":9007199254740991},
        "limit":{"description":"How many lines to return","type":"integer","exclusiveMinimum":0,"maximum":9007199254740991},
        "pages":{"description":"Which pages of a document, such as 1-5","type":"string","maxLength":40}},
        "required":["path"],"additionalProperties":false}"#,
    ),
    (
        "WriteFile",
        300,
        r#"{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{
        "path":{"description":"Which file, as an absolute path","type":"string"},
        "content":{"description":"All that shall stand in it","type":"string"}},
        "required":["path","content"],"additionalProperties":false}"#,
    ),
    (
        "EditFile",
        500,
        r#"{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{
        "path":{"description":"Which file, as an absolute path","type":"string"},
        "old":{"description":"The text that goes, exactly as it stands","type":"string"},
        "new":{"description":"The text that comes in its place","type":"string"},
        "everywhere":{"description":"Replace every occurrence and not only the first","default":false,"type":"boolean"}},
        "required":["path","old","new"],"additionalProperties":false}"#,
    ),
    (
        "FindFiles",
        250,
        r#"{"type":"object","properties":{
        "pattern":{"description":"A pattern for file names, with stars","type":"string"},
        "path":{"description":"Where to look; the working directory if left out","type":"string"}},
        "required":["pattern"],"additionalProperties":false}"#,
    ),
    (
        "SearchText",
        700,
        r#"{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{
        "pattern":{"description":"A regular expression for lines","type":"string"},
        "path":{"description":"A file or directory to search in","type":"string"},
        "names":{"description":"Only files whose names match this pattern","type":"string"},
        "mode":{"description":"Whether to return lines, names or counts","type":"string","enum":["lines","names","counts"]},
        "-B":{"description":"Lines to show before each match","type":"number"},
        "-A":{"description":"Lines to show after each match","type":"number"},
        "-C":{"description":"Lines to show around each match","type":"number"},
        "-n":{"description":"Show line numbers","type":"boolean"},
        "-i":{"description":"Upper and lower case are the same","type":"boolean"},
        "kind":{"description":"Only files of this kind, such as rust","type":"string"},
        "limit":{"description":"Stop after so many lines","type":"number","default":250},
        "across_lines":{"description":"The expression may match over several lines","type":"boolean"}},
        "required":["pattern"],"additionalProperties":false}"#,
    ),
    (
        "StartAgent",
        3300,
        r#"{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{
        "title":{"description":"The task in three to five words","type":"string"},
        "prompt":{"description":"The whole task, for somebody who has not followed the conversation","type":"string"},
        "kind":{"description":"Which sort of helper","type":"string"},
        "model":{"description":"Which model the helper runs on; as the caller if left out","type":"string","enum":["small","medium","large"]},
        "effort":{"description":"How hard the helper thinks","type":"string","enum":["low","medium","high","most"]},
        "isolation":{"description":"Give the helper a copy of the repository","const":"worktree"}},
        "required":["title","prompt"],"additionalProperties":false}"#,
    ),
    (
        "TodoWrite",
        2600,
        r#"{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{
        "todos":{"description":"The list as it shall be from now on","type":"array","items":{"type":"object","properties":{
            "content":{"type":"string","minLength":1},"status":{"type":"string","enum":["pending","in_progress","completed"]},
            "activeForm":{"type":"string","minLength":1}},"required":["content","status","activeForm"],"additionalProperties":false}}},
        "required":["todos"],"additionalProperties":false}"#,
    ),
    (
        "AskUser",
        1200,
        r#"{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{
        "questions":{"description":"One to four questions","minItems":1,"maxItems":4,"type":"array","items":{"type":"object","properties":{
            "question":{"description":"The whole question, with a question mark at its end","type":"string"},
            "header":{"description":"A label of at most twelve characters","type":"string"},
            "options":{"description":"Two to four answers to choose from","minItems":2,"maxItems":4,"type":"array","items":{"type":"object","properties":{
                "label":{"description":"One to five words","type":"string"},"description":{"description":"What choosing it means","type":"string"},
                "preview":{"description":"Text to show beside it","type":"string"}},"required":["label","description"],"additionalProperties":false}},
            "several":{"description":"More than one may be chosen","default":false,"type":"boolean"}},
            "required":["question","header","options","several"],"additionalProperties":false}},
        "answers":{"description":"Filled in by the client","type":"object","propertyNames":{"type":"string"},"additionalProperties":{"type":"string"}}},
        "required":["questions"],"additionalProperties":false}"#,
    ),
    (
        "FetchPage",
        600,
        r#"{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{
        "url":{"description":"Which page","type":"string","format":"uri"},
        "prompt":{"description":"What to look for on it","type":"string"},
        "offset":{"description":"The first character to return","type":"integer","minimum":0,"maximum":9007199254740991}},
        "required":["url","prompt"],"additionalProperties":false}"#,
    ),
    (
        "SearchWeb",
        500,
        r#"{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{
        "query":{"description":"What to look for","type":"string","minLength":2},
        "only":{"description":"Results from these hosts only","type":"array","items":{"type":"string"}},
        "never":{"description":"No results from these hosts","type":"array","items":{"type":"string"}}},
        "required":["query"],"additionalProperties":false}"#,
    ),
    (
        "EditNotebook",
        700,
        r#"{"type":"object","properties":{
        "path":{"description":"Which notebook, as an absolute path","type":"string"},
        "cell":{"description":"The cell's id","type":"string"},"source":{"description":"The cell's new text","type":"string"},
        "cell_kind":{"type":"string","enum":["code","markdown"]},"mode":{"type":"string","enum":["replace","insert","delete"]}},
        "required":["path","source"],"additionalProperties":false}"#,
    ),
    (
        "Watch",
        4000,
        r#"{"type":"object","properties":{
        "description":{"description":"What is being watched, shown to the person","type":"string"},
        "timeout_ms":{"description":"When to stop","default":300000,"type":"number","minimum":1000,"maximum":3600000},
        "command":{"description":"A command whose lines are events","type":"string"},
        "socket":{"type":"object","properties":{"url":{"type":"string"},"protocols":{"type":"array","items":{"type":"string","pattern":"^[a-z0-9.-]+$"}}},"required":["url"],"additionalProperties":false}},
        "required":["description","timeout_ms"],"additionalProperties":false}"#,
    ),
    (
        "Schedule",
        3000,
        r#"{"type":"object","properties":{
        "when":{"description":"Five fields: minute, hour, day, month, day of the week","type":"string"},
        "prompt":{"description":"What to do then","type":"string"},"again":{"description":"Every time and not only once","type":"boolean"}},
        "required":["when","prompt"],"additionalProperties":false}"#,
    ),
    (
        "ListSchedules",
        120,
        r#"{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{},"additionalProperties":false}"#,
    ),
    (
        "Report",
        900,
        r#"{"type":"object","properties":{"level":{"type":"string","enum":["low","medium","high"]},
        "findings":{"description":"The worst first","maxItems":32,"type":"array","items":{"type":"object","properties":{
            "file":{"description":"A path in the repository","type":"string"},"line":{"type":"integer","minimum":-9007199254740991,"maximum":9007199254740991},
            "summary":{"type":"string","maxLength":200},"category":{"type":"string","maxLength":40},
            "verdict":{"type":"string","enum":["CERTAIN","LIKELY"]}},"required":["file","summary"],"additionalProperties":false}}},
        "required":["findings"],"additionalProperties":false}"#,
    ),
    (
        "SendMessage",
        3500,
        r#"{"type":"object","properties":{
        "to":{"description":"Whom","type":"string","allOf":[{"pattern":"^[^\\n\\r]*$"},{"pattern":"^[\\s\\S]{0,300}$"}]},
        "message":{"default":"","description":"What to say","type":"string"},"notify":{"type":"boolean"}},
        "required":["to","message"],"additionalProperties":false}"#,
    ),
    (
        "mcp__tracker__create_issue",
        700,
        r##"{"type":"object","properties":{
        "title":{"type":"string"},"labels":{"type":"array","items":{"type":"string"},"uniqueItems":true},
        "assignee":{"anyOf":[{"$ref":"#/$defs/Person"},{"type":"null"}],"default":null,"title":"Assignee"},
        "parent":{"$ref":"#/$defs/Issue","description":"The issue that this one belongs to"},
        "priority":{"enum":[0,1,2,3],"type":"integer"}},"required":["title"],
        "$defs":{"Person":{"type":"object","properties":{"name":{"type":"string"},"email":{"type":"string","format":"email"}},"required":["name"]},
            "Issue":{"type":"object","properties":{"id":{"type":"integer"},"children":{"type":"array","items":{"$ref":"#/$defs/Issue"}}},"required":["id"]}}}"##,
    ),
    (
        "mcp__store__query",
        900,
        r#"{"type":"object","properties":{"table":{"type":"string"},
        "where":{"type":"array","items":{"type":"array","prefixItems":[{"type":"string"},{"enum":["==","!=","<",">"]},{}]}},
        "order":{"oneOf":[{"type":"string"},{"type":"object","properties":{"by":{"type":"string"},"down":{"type":"boolean"}},"required":["by"]}]},
        "limit":{"type":["integer","null"],"exclusiveMinimum":0}},"required":["table"]}"#,
    ),
    (
        "mcp__store__put",
        400,
        r#"{"type":"object","properties":{"table":{"type":"string"},"row":{"type":"object","additionalProperties":true},
        "if_absent":{"type":"boolean","nullable":true}},"required":["table","row"]}"#,
    ),
];
