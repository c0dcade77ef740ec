//! Gemini's own tools.

use std::borrow::Cow;

use serde_json::Value;
use toolgate_core::canon::ServerTool;
use toolgate_core::json::Raw;

use super::Toolset;

impl Toolset {
    /// Adds web search.
    #[must_use]
    pub fn google_search(self) -> Self {
        self.server(ServerTool::WebSearch { name: Cow::Borrowed("google_search") })
    }

    /// Adds reading of the URLs in the prompt.
    #[must_use]
    pub fn url_context(self) -> Self {
        self.server(ServerTool::UrlContext { name: Cow::Borrowed("url_context") })
    }

    /// Adds code execution by Google.
    #[must_use]
    pub fn code_execution(self) -> Self {
        self.server(ServerTool::CodeExecution { name: Cow::Borrowed("code_execution") })
    }

    /// Adds any other tool of Gemini by its field and value:
    /// `server_tool("googleMaps", &json!({"enableWidget": true}))`.
    #[must_use]
    pub fn server_tool(self, kind: impl Into<String>, body: &Value) -> Self {
        let body = Raw::of(body).unwrap_or_else(Raw::empty_object);
        self.server(ServerTool::Gemini { kind: Cow::Owned(kind.into()), body })
    }
}
