//! Expansion of `#[tools]`.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{ImplItem, ItemImpl};

/// Expands to the unchanged block and the list of its tools.
pub(crate) fn tools(options: &TokenStream, item: &TokenStream) -> TokenStream {
    let refuse = |reason: &str| {
        let error = syn::Error::new_spanned(item, reason).into_compile_error();
        quote! { #error #item }
    };
    if !options.is_empty() {
        return refuse("`#[tools]` takes no options; they belong to each `#[tool]`");
    }
    let Ok(block) = syn::parse2::<ItemImpl>(item.clone()) else {
        return refuse("`#[tools]` goes on an `impl` block whose methods are marked `#[tool]`");
    };
    let makers: Vec<_> = block
        .items
        .iter()
        .filter_map(|item| {
            let ImplItem::Fn(method) = item else { return None };
            let is_marked = method.attrs.iter().any(|it| is_tool(it.path()));
            is_marked.then(|| format_ident!("{}_tool", method.sig.ident))
        })
        .collect();
    if makers.is_empty() {
        return refuse("no method of this block is marked `#[tool]`");
    }
    if block.trait_.is_some() {
        return refuse("`#[tools]` goes on the type's own `impl` block, not on a trait's");
    }
    let (generics, _, bounds) = block.generics.split_for_impl();
    let object = &block.self_ty;
    quote! {
        #block

        impl #generics ::toolgate::ToolProvider for #object #bounds {
            fn tools(self: &::std::sync::Arc<Self>) -> ::std::vec::Vec<::toolgate::Tool> {
                ::std::vec![#(self.#makers()),*]
            }
        }
    }
}

fn is_tool(path: &syn::Path) -> bool {
    path.segments.last().is_some_and(|it| it.ident == "tool")
}
