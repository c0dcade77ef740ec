//! Tools: names, definitions, digests, limits and flags.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use crate::canonical;

/// Longest name of a tool on its server, as the MCP specification sets it.
const MAX_NAME_CHARS: usize = 128;

/// Longest namespace.
const MAX_NAMESPACE_CHARS: usize = 64;

/// Longest description that is offered to a model.
const MAX_DESCRIPTION_BYTES: usize = 4096;

/// Name of a tool: the namespace of its source and its name there.
///
/// Written `namespace.name`. A namespace has no dot and belongs to one source of a registry, so that
/// two tools never have the same name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ToolName {
    namespace: Arc<str>,
    name: Arc<str>,
}

/// A name that is not of the form `namespace.name`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// The namespace is empty, too long or has other characters than `A-Z a-z 0-9 _ -`.
    #[error("invalid namespace `{0}`: use 1 to 64 of A-Z a-z 0-9 _ -")]
    Namespace(String),
    /// The name is empty, too long or has other characters than `A-Z a-z 0-9 _ . -`.
    #[error("invalid tool name `{0}`: use 1 to 128 of A-Z a-z 0-9 _ . -")]
    Name(String),
    /// There is no dot between a namespace and a name.
    #[error("tool name `{0}` has no namespace: write `namespace.name`")]
    NoNamespace(String),
}

impl ToolName {
    /// Returns the name of a tool, checked.
    ///
    /// # Errors
    /// Fails if one of the two parts has characters or a length that are not allowed.
    pub fn new(namespace: &str, name: &str) -> Result<Self, NameError> {
        check_namespace(namespace)?;
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
        if name.is_empty() || name.len() > MAX_NAME_CHARS || !name.chars().all(allowed) {
            return Err(NameError::Name(name.chars().take(MAX_NAME_CHARS).collect()));
        }
        Ok(Self { namespace: namespace.into(), name: name.into() })
    }

    /// The namespace: the source that runs the tool.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The name of the tool on its source.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// Checks the namespace of a source.
pub(crate) fn check_namespace(namespace: &str) -> Result<(), NameError> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if namespace.is_empty()
        || namespace.len() > MAX_NAMESPACE_CHARS
        || !namespace.chars().all(allowed)
    {
        let start = namespace.chars().take(MAX_NAMESPACE_CHARS).collect();
        return Err(NameError::Namespace(start));
    }
    Ok(())
}

impl fmt::Display for ToolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.namespace, self.name)
    }
}

impl FromStr for ToolName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let (namespace, name) =
            text.split_once('.').ok_or_else(|| NameError::NoNamespace(text.to_owned()))?;
        Self::new(namespace, name)
    }
}

/// Definition of a tool, as its source gave it. Schemas are JSON text that nothing rewrites.
#[derive(Clone, Debug)]
pub struct Definition {
    /// Title for people.
    pub title: Option<String>,
    /// Description for the model.
    pub description: Option<String>,
    /// JSON Schema of the arguments.
    pub input_schema: Box<RawValue>,
    /// JSON Schema of the structured result.
    pub output_schema: Option<Box<RawValue>>,
    /// Hints of the source, such as `readOnlyHint`. They are shown and never trusted.
    pub annotations: Option<Box<RawValue>>,
}

impl Definition {
    /// A definition with a description and the schema of its arguments.
    pub fn new(description: impl Into<String>, input_schema: Box<RawValue>) -> Self {
        Self {
            title: None,
            description: Some(description.into()),
            input_schema,
            output_schema: None,
            annotations: None,
        }
    }

    /// Returns the SHA-256 of the definition in canonical JSON, under the tool's name on its source.
    pub fn digest(&self, name: &str) -> Digest {
        let mut hash = Sha256::new();
        let mut member = |label: &str, value: Option<&RawValue>| {
            hash.update(label.as_bytes());
            match value {
                Some(value) => {
                    let text = canonical::text(value);
                    hash.update((text.len() as u64).to_be_bytes());
                    hash.update(text.as_bytes());
                }
                None => hash.update(u64::MAX.to_be_bytes()),
            }
        };
        let string = |text: &str| serde_json::value::to_raw_value(text).ok();
        member("name", string(name).as_deref());
        member("title", self.title.as_deref().and_then(string).as_deref());
        member("description", self.description.as_deref().and_then(string).as_deref());
        member("inputSchema", Some(&self.input_schema));
        member("outputSchema", self.output_schema.as_deref());
        member("annotations", self.annotations.as_deref());
        Digest(hash.finalize().into())
    }

    /// Removes invisible characters from the description and bounds its length.
    ///
    /// Invisible characters carry instructions that a person who reviews the tool does not see.
    pub(crate) fn clean(&mut self) {
        for text in [&mut self.title, &mut self.description].into_iter().flatten() {
            *text = clean_text(text);
        }
    }
}

/// Returns `text` without control, zero-width, bidirectional and tag characters, at most 4 KiB.
fn clean_text(text: &str) -> String {
    let visible = |c: &char| {
        let code = u32::from(*c);
        let invisible = (c.is_control() && !matches!(c, '\n' | '\t'))
            || matches!(code, 0xAD | 0x200B..=0x200F | 0x202A..=0x202E | 0x2060..=0x2069 | 0xFEFF)
            || matches!(code, 0xE0000..=0xE0FFF);
        !invisible
    };
    let mut clean: String = text.chars().filter(visible).collect();
    if clean.len() > MAX_DESCRIPTION_BYTES {
        let mut end = MAX_DESCRIPTION_BYTES;
        while !clean.is_char_boundary(end) {
            end -= 1;
        }
        clean.truncate(end);
    }
    clean
}

/// SHA-256 of a definition.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest(pub(crate) [u8; 32]);

impl Digest {
    /// The bytes of the digest.
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in self.0 {
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// A digest that is not 64 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a digest is 64 hexadecimal digits")]
pub struct DigestError;

impl FromStr for Digest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, DigestError> {
        let mut bytes = [0; 32];
        if text.len() != 64 || !text.is_ascii() {
            return Err(DigestError);
        }
        for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
            let digits = std::str::from_utf8(pair).map_err(|_| DigestError)?;
            *byte = u8::from_str_radix(digits, 16).map_err(|_| DigestError)?;
        }
        Ok(Self(bytes))
    }
}

/// Limits of the calls of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Longest time without news of a call. Progress starts it again.
    pub idle_timeout: Duration,
    /// Longest time of a call, whatever progress it reports.
    pub total_timeout: Duration,
    /// Maximum size of the text and JSON of a result; more is cut out of its middle.
    pub max_result_bytes: usize,
    /// Maximum size of the media of a result, in base64; more is replaced by a line of text.
    pub max_media_bytes: usize,
    /// Calls of the tool that run at the same time.
    pub concurrency: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            idle_timeout: Duration::from_secs(60),
            total_timeout: Duration::from_secs(600),
            max_result_bytes: 256 * 1024,
            max_media_bytes: 8 * 1024 * 1024,
            concurrency: 32,
        }
    }
}

/// Properties of a tool that decide how its calls run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// Calls of the tool run one after another.
    pub sequential: bool,
    /// The same arguments always give the same result, so that results may be cached.
    pub deterministic: bool,
    /// A person has to approve each call.
    pub needs_approval: bool,
}

/// A tool of a registry: one row of a catalogue.
#[derive(Clone, Debug)]
pub struct Tool {
    /// Name of the tool.
    pub name: ToolName,
    /// Client that brought the source; `None` for sources of the operator.
    pub owner: Option<Arc<str>>,
    /// Definition, cleaned of invisible characters.
    pub definition: Definition,
    /// Digest of the definition as the source gave it.
    pub digest: Digest,
    /// Limits of its calls.
    pub limits: Limits,
    /// Properties that decide how its calls run.
    pub flags: Flags,
    /// Sessions that may see the tool; empty for all.
    pub sessions: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn names_have_a_namespace() {
        let name: ToolName = "github.search.code".parse().unwrap();
        assert_eq!((name.namespace(), name.name()), ("github", "search.code"));
        assert_eq!(name.to_string(), "github.search.code");
        for bad in ["search", ".x", "a b.x", "a.", "a.b/c", "a.ü"] {
            assert!(bad.parse::<ToolName>().is_err(), "{bad}");
        }
        assert!(ToolName::new("a.b", "c").is_err());
        assert!(ToolName::new("a", &"x".repeat(129)).is_err());
    }

    #[test]
    fn digests_ignore_spelling_and_notice_meaning() {
        let one = Definition::new("d", raw(r#"{"type":"object","a":1.0,"b":[1, 2]}"#));
        let same = Definition::new("d", raw(r#"{ "b":[1,2], "a":1.0, "type":"obj\u0065ct" }"#));
        assert_eq!(one.digest("t"), same.digest("t"));
        assert_ne!(one.digest("t"), one.digest("u"));
        let other = Definition::new("d", raw(r#"{"type":"object","a":1.0,"b":[2, 1]}"#));
        assert_ne!(one.digest("t"), other.digest("t"));
        let long = Definition::new("d", raw("100000000000000000001"));
        let longer = Definition::new("d", raw("100000000000000000002"));
        assert_ne!(long.digest("t"), longer.digest("t"));
        let digest = one.digest("t");
        assert_eq!(digest.to_string().parse(), Ok(digest));
        assert!("00".parse::<Digest>().is_err());
    }

    #[test]
    fn descriptions_lose_invisible_characters() {
        let mut definition = Definition::new("a\u{200B}b\u{E0041}c\u{202E}\u{7}\nd", raw("{}"));
        definition.clean();
        assert_eq!(definition.description.as_deref(), Some("abc\nd"));
        let mut long = Definition::new("ü".repeat(4000), raw("{}"));
        long.clean();
        assert!(long.description.is_some_and(|it| it.len() <= 4096));
    }
}
