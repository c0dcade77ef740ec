//! Attribute macros of `toolgate`, which re-exports them: `use toolgate::{tool, tools}`.
//!
//! ```text
//!   #[tool] fn weather(…)  ──►  fn weather(…)            the function, unchanged
//!                               struct weather {}        the tool: Toolset::new().with::<weather>()
//!   #[tool] fn add(&self…) ──►  fn add(&self…)           the method, unchanged
//!                               fn add_tool(&Arc<Self>)  the tool
//! ```

mod argument;
mod docs;
mod expand;
mod options;
mod provider;

use proc_macro::TokenStream;

/// Makes a tool from a function or method.
///
/// Documented at `toolgate::tool`.
#[proc_macro_attribute]
pub fn tool(options: TokenStream, item: TokenStream) -> TokenStream {
    expand::tool(options.into(), &item.into()).into()
}

/// Collects all methods of an `impl` block that are marked `#[tool]`.
///
/// Documented at `toolgate::tools`.
#[proc_macro_attribute]
pub fn tools(options: TokenStream, item: TokenStream) -> TokenStream {
    provider::tools(&options.into(), &item.into()).into()
}
