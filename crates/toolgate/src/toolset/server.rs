//! Tools that Gemini runs itself.

use std::borrow::Cow;

use serde_json::Value;
use toolgate_core::canon::ServerTool;
use toolgate_core::json::Raw;

use super::Toolset;

impl Toolset {
    /// Lets the model search the web.
    #[must_use]
    pub fn google_search(self) -> Self {
        self.server(ServerTool::WebSearch { name: Cow::Borrowed("google_search") })
    }

    /// Lets the model read the pages whose addresses are in the prompt.
    #[must_use]
    pub fn url_context(self) -> Self {
        self.server(ServerTool::UrlContext { name: Cow::Borrowed("url_context") })
    }

    /// Lets the model run code, on Google's side.
    #[must_use]
    pub fn code_execution(self) -> Self {
        self.server(ServerTool::CodeExecution { name: Cow::Borrowed("code_execution") })
    }

    /// Any other tool of Gemini's, by the name of its member and what stands in it:
    /// `server_tool("googleMaps", &json!({"enableWidget": true}))`.
    #[must_use]
    pub fn server_tool(self, kind: impl Into<String>, body: &Value) -> Self {
        let body = Raw::of(body).unwrap_or_else(Raw::empty_object);
        self.server(ServerTool::Gemini { kind: Cow::Owned(kind.into()), body })
    }
}
