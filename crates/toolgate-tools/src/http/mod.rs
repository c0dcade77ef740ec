//! HTTP endpoints as tools: templates that the operator wrote, and operations of OpenAPI documents.
//!
//! The model fills in arguments only. Scheme, host, method and headers are the operator's; arguments go
//! into path segments, the query and the body, and nothing in them can change the address.

mod openapi;
mod source;
mod template;

pub use openapi::{OpenApi, OpenApiError};
pub use source::{HttpTool, HttpTools};
pub use template::{Body, HttpTemplate, TemplateError};
