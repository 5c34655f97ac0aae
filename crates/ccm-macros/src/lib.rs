//! `#[derive(Properties)]` and `#[derive(Settings)]`: from one struct, everything
//! that ccm knows of its fields. See `ccm_model::properties` for what they
//! implement and how the attributes are used.

mod expand;
mod field;

use proc_macro::TokenStream;

/// Implements `Fields`, `FromNode`, `Resolve` and `Serialize` for a struct of
/// properties, and `Properties` when one field is marked `#[property(common)]`.
#[proc_macro_derive(Properties, attributes(property))]
pub fn derive_properties(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    expand::properties(&input).unwrap_or_else(|error| error.to_compile_error()).into()
}

/// Implements `Fields` and `Default` for the settings of a program. Each field
/// has its default, its words and its check as attributes.
#[proc_macro_derive(Settings, attributes(property))]
pub fn derive_settings(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    expand::settings(&input).unwrap_or_else(|error| error.to_compile_error()).into()
}
