//! `#[derive(Properties)]`: from one struct, everything that ccm knows of its
//! properties. See `ccm_model::properties` for what it implements and how the
//! attributes are used.

mod expand;
mod field;

use proc_macro::TokenStream;

/// Implements `Fields`, `FromNode`, `Resolve` and `Serialize` for a struct of
/// properties, and `Properties` when one field is marked `#[property(common)]`.
#[proc_macro_derive(Properties, attributes(property))]
pub fn derive_properties(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    expand::expand(&input).unwrap_or_else(|error| error.to_compile_error()).into()
}
