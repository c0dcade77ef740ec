//! How much one request may hold.
//!
//! Every part and every tool of a request costs a few hundred bytes while it is translated, however
//! short it is. These bounds keep that within a small multiple of the body: about sixteen times its
//! length and ten megabytes. They are far above what agents send.

use super::{BadRequest, Request, Tool, ToolName};
use crate::json::Path;

/// Maximum number of parts of a request, beside one for each [`BYTES_PER_PART`] bytes of its body.
pub const MAX_PARTS: usize = 16_384;

/// Length of body for which a request may have one part more than [`MAX_PARTS`].
pub const BYTES_PER_PART: usize = 64;

/// Maximum number of tools of a request. Gemini takes 512 functions.
pub const MAX_TOOLS: usize = 4_096;

/// Maximum bytes of the name of a model, a tool or a namespace. Answers, logs and tables of names
/// repeat them; no vendor takes names longer than a few hundred bytes.
pub const MAX_NAME_BYTES: usize = 1_024;

/// Checks the name of a model, a tool or a namespace.
pub(crate) fn check_name(name: &str, at: &Path<'_>) -> Result<(), BadRequest> {
    if name.is_empty() {
        return Err(at.bad("must not be empty"));
    }
    if name.len() > MAX_NAME_BYTES {
        return Err(at.bad(format!("longer than {MAX_NAME_BYTES} bytes")));
    }
    Ok(())
}

/// Maximum number of parts of a request whose body has `body_len` bytes.
pub(crate) fn max_parts(body_len: usize) -> usize {
    MAX_PARTS + body_len / BYTES_PER_PART
}

/// The error for a request with more parts than its body may have.
pub(crate) fn too_many_parts(body_len: usize, at: &str) -> BadRequest {
    let reason = format!(
        "more than {} parts, the most that a request of {body_len} bytes may have",
        max_parts(body_len)
    );
    BadRequest { at: at.to_owned(), reason }
}

/// The error for a request with too many tools.
pub(crate) fn too_many_tools() -> BadRequest {
    let reason = format!("more than {MAX_TOOLS} tools, the most that a request may have");
    BadRequest { at: "tools".to_owned(), reason }
}

impl Request<'_> {
    /// Checks a decoded request against the bounds. `at` is the field that holds the conversation.
    pub(crate) fn check_bounds(&self, body_len: usize, at: &str) -> Result<(), BadRequest> {
        let parts: usize = self.turns.iter().map(|turn| turn.parts.len().max(1)).sum();
        if parts > max_parts(body_len) {
            return Err(too_many_parts(body_len, at));
        }
        if self.tools.len() > MAX_TOOLS {
            return Err(too_many_tools());
        }
        let tools = Path::Root.field("tools");
        for (index, tool) in self.tools.iter().enumerate() {
            let (name, place) = match tool {
                Tool::Function(function) => (&function.name, Some(&*function.at)),
                Tool::Freeform { name, .. } => (name, None),
                Tool::Server(_) => continue,
            };
            let ToolName { namespace, name } = name;
            for name in [Some(name), namespace.as_ref()].into_iter().flatten() {
                match place {
                    Some(place) => check_name(name, &Path::Root.field(place).field("name"))?,
                    None => check_name(name, &tools.index(index).field("name"))?,
                }
            }
        }
        Ok(())
    }
}
