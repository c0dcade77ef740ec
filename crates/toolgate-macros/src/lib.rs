//! The attributes of `toolgate`. Use them from there: `use toolgate::{tool, tools}`.
//!
//! ```text
//!   #[tool] fn weather(…)  ──►  fn weather(…)            the function, as it was
//!                               struct weather {}        the tool: Toolset::new().with::<weather>()
//!   #[tool] fn add(&self…) ──►  fn add(&self…)           the method, as it was
//!                               fn add_tool(&Arc<Self>)  the tool
//! ```

mod argument;
mod docs;
mod expand;
mod options;
mod provider;

use proc_macro::TokenStream;

/// Makes a tool of a function or method. It stays what it is and can still be called.
///
/// Documented, with all its options, where it is used: `toolgate::tool`.
#[proc_macro_attribute]
pub fn tool(options: TokenStream, item: TokenStream) -> TokenStream {
    expand::tool(options.into(), &item.into()).into()
}

/// Makes a provider of tools of a type: all methods of this `impl` that are marked `#[tool]`.
///
/// Documented where it is used: `toolgate::tools`.
#[proc_macro_attribute]
pub fn tools(options: TokenStream, item: TokenStream) -> TokenStream {
    provider::tools(&options.into(), &item.into()).into()
}
